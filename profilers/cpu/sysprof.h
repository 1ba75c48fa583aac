/*
** The CPU profiler: one session at a time in a process. The Lua and the C
** interface (profilers/api/sysprof_*.c) call it. Any thread may; no signal
** handler may.
*/
#ifndef LJP_SYSPROF_H
#define LJP_SYSPROF_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/cpu/sampler.h"
#include "profilers/session/output.h"
#include "src/session/session.h"

struct lua_State;

enum ljp_sysprof_threads {
  LJP_THREADS_LUA, /* every thread, from when it first runs Lua */
  LJP_THREADS_ALL, /* every thread */
  LJP_THREADS_THIS /* the thread that starts the session */
};

enum { LJP_INTERVAL_MIN_NS = 50000, LJP_INTERVAL_DEFAULT_NS = 1000000 };
#define LJP_INTERVAL_MAX_NS UINT64_C(60000000000)

struct ljp_sysprof_options {
  struct ljp_output output; /* may lead nowhere in mode "D" */
  enum ljp_sampler_mode mode;
  bool wall;
  enum ljp_timer timer; /* NONE: the best that there is; TRAP: perf */
  enum ljp_sysprof_threads threads;
  uint64_t interval_ns;
  double max_overhead; /* share of a thread's time; 0: no limit */
  uint32_t depth;
  int signal;             /* 0: that of the timer, or a default */
  int asked;              /* 0, or a signal of others that asks for a sample */
  bool jitdump;           /* files for perf: doc/guide/perf.md */
  const int *jitdump_fds; /* a client's dump and map; NULL: opened here */
  bool joint; /* ljp_sysprof_commit() follows when others have joined */
  /* The process that has joined this one and begins the session, by its own
  ** number; 0: the program begins it. On a thread of ours, which is not sampled:
  ** the session has no first thread and no VM (RFC 8). */
  pid_t client;
  void (*backtracer)(void *(*frame_writer)(int frame_no, void *addr));
};

void ljp_sysprof_options_init(struct ljp_sysprof_options *options);

enum ljp_status ljp_sysprof_start(struct lua_State *L,
                                  const struct ljp_sysprof_options *options,
                                  struct ljp_failure *why);
/* With `joint`: nothing can be refused any more, so the new file replaces the
** old one. On failure the caller stops the other profilers, then this one. */
enum ljp_status ljp_sysprof_commit(struct ljp_failure *why);
enum ljp_status ljp_sysprof_stop(struct lua_State *L, struct ljp_failure *why);
/* Stops a session that a client has begun, which ljp_sysprof_stop() refuses. */
enum ljp_status ljp_sysprof_stop_joined(struct ljp_failure *why);

/* Puts a mark on the timeline, from outside of all VMs. */
enum ljp_status ljp_sysprof_mark(const char *name, size_t bytes,
                                 struct ljp_failure *why);

/* From now on no VM owns the session: it ends with the program, or when any VM
** stops it. */
void ljp_sysprof_disown(void);

/* Describes the running session, or else the last one. */
struct ljp_sysprof_report {
  uint64_t samples, lfunc, overruns, deferred, outside, idle, looks, moved,
      time_ns;
  uint64_t handler_ns, watcher_ns;
  /* CPU time of threads that were not sampled, because they block the signal or
  ** ended before they were found. */
  uint64_t unsampled_ns;
  uint64_t state[LJP_SAMPLER_STATES], cut[16], lost[LJP_LOSS_COUNT];
};
void ljp_sysprof_report(struct ljp_sysprof_report *out);

struct ljp_sysprof_status {
  bool running;      /* also when "failed", until it is stopped */
  const char *state; /* "idle", "running", "stopped", "failed" */
  const char *timer; /* "perf", "tick", "posix"; NULL if idle */
  char path[4096];
  uint64_t asked_ns;    /* the interval that the user asked for */
  uint64_t interval_ns; /* the longest in force */
  uint64_t bytes;
  uint32_t threads;
  uint64_t marks_cut; /* markers left out, since the process began */
  uint32_t blocked;   /* threads not sampled: they block the signal */
  enum ljp_sampler_mode mode;
  bool wall, throttled;
  int signal;
  pid_t client; /* see the options; 0 if nothing is running */
};
void ljp_sysprof_status(struct ljp_sysprof_status *out);
/* Why the jitdump of a client is not complete; NULL: it is. */
const char *ljp_sysprof_dump_error(void);
bool ljp_sysprof_running(void); /* its `running` */

#endif
