/*
** The memory profiler: records the allocations of one VM, or of all VMs of the
** process, into a session, its own or the one that the CPU profiler shares. One
** session at a time in a process. The Lua and the C interface
** (profilers/api/memprof_*.c) call it.
**
** While a session runs, a recorder (record.c) stands between each VM and its
** allocator; followed.c puts it there. Any thread may call this, except
** where a lua_State is passed: then the thread that runs the VM. No signal
** handler may.
*/
#ifndef LJP_MEMPROF_H
#define LJP_MEMPROF_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/output.h"

struct lua_State;

enum { LJP_MEMPROF_SAMPLE_BYTES = 512 * 1024 };
enum { LJP_MEMPROF_SAMPLES_MAX = 1000000 };
#define LJP_MEMPROF_SAMPLE_MAX (UINT64_C(1) << 40)

struct ljp_memprof_options {
  struct ljp_output output; /* of a session of its own */
  uint64_t sample_bytes;    /* mean distance between samples; 0: record every
                            ** event */
  uint32_t max_samples;     /* a second, by a VM; 0: no limit */
  bool native;              /* C frames in the stacks */
  uint32_t depth;
  bool all; /* all VMs, those made later too; else the one that starts it */
  bool snapshot;          /* of the heap of the VM that starts it, at the end */
  uint64_t snapshot_ns;   /* ... and at such intervals; 0: no others */
  uint32_t snapshot_text; /* bytes of each string in it */
  bool shared; /* record into the session that another profiler offers
               ** (session/shared.h) */
  /* The process that has joined this one and begins the session, by its own
  ** number; 0: the program begins it. Then no VM owns the session, and stubs
  ** reach the VMs that there are (stubs.h); `all` is set. */
  pid_t client;
};

/* options.c: puts the options into the stream. */
void ljp_memprof_info(struct ljp_session *session,
                      const struct ljp_memprof_options *options);
void ljp_memprof_options_init(struct ljp_memprof_options *options);

/* L: NULL if a client begins the session. */
enum ljp_status ljp_memprof_start(struct lua_State *L,
                                  const struct ljp_memprof_options *options,
                                  struct ljp_failure *why);
/* Says that a session runs already. */
enum ljp_status ljp_memprof_busy(struct ljp_failure *why);
enum ljp_status ljp_memprof_stop(struct lua_State *L, struct ljp_failure *why);
/* Stops a session that a client has begun, which ljp_memprof_stop() refuses. That
** the program has replaced an allocator is no failure here: the stream says so. */
enum ljp_status ljp_memprof_stop_joined(struct ljp_failure *why);

/* The running session belongs to no VM from now on: any VM may stop it, and it
** goes on when its first VM is closed. */
void ljp_memprof_disown(void);

/* This thread runs the VM at the moment, so a session of all VMs can follow it
** from now on if the VM is older than the session. */
void ljp_memprof_meet(struct lua_State *L);

/* Puts a mark on the timeline, with the bytes in use by this VM as its
** value. */
enum ljp_status ljp_memprof_mark(struct lua_State *L, const char *name,
                                 size_t bytes, struct ljp_failure *why);

/* The same from outside of all VMs, with the bytes in use by all that are
** recorded. */
enum ljp_status ljp_memprof_mark_all(const char *name, size_t bytes,
                                     struct ljp_failure *why);

/* Of the running session, else of the last one. */
struct ljp_memprof_counts {
  uint64_t allocs, frees, reallocs, failed; /* events recorded */
  uint64_t alloc_bytes, free_bytes;         /* of these events; estimates if
                                            ** sampled */
  uint64_t lost[LJP_LOSS_COUNT];            /* samples */
  uint64_t untold;        /* lost events; a stream has the reasons */
  uint64_t untold_phases; /* the same, of the collector's phases */
  uint64_t cut;           /* stacks that end early */
  /* Remembered stacks, and with LJPROF_MEMPROF_CHECK=1 those that were checked
  ** and those that differed from a full walk. */
  uint64_t remembered, checked, differed;
  uint64_t cycles;
};

struct ljp_memprof_status {
  const char *state; /* "idle", "running", "stopped", "failed" */
  bool running;      /* also when "failed", until it is stopped */
  char path[LJP_OUTPUT_PATH_BYTES]; /* "" if shared */
  bool ljm;                         /* the file's format */
  uint64_t sample_bytes, bytes;
  uint32_t max_samples;
  uint64_t sample_now; /* grows beyond sample_bytes with max_samples */
  uint64_t heap_bytes; /* in use by the recorded VMs */
  bool native;
  bool unwritten; /* "failed" because of the output */
  pid_t client;   /* see the options; 0 if nothing is running */
  struct ljp_memprof_counts counts;
};
void ljp_memprof_status(struct ljp_memprof_status *out);
bool ljp_memprof_running(void); /* its `running` */

#endif
