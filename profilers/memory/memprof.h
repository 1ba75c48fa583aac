/*
** The memory profiler: one VM's allocations into a session, its own or that of
** the CPU profiler. One recording a process at a time. Behind its Lua
** (memprof_lua.c) and its C interface (memprof_c.c).
**
** The recorder (record.c) stands between the VM and its allocator only
** while it records; memprof.c starts and stops it.
*/
#ifndef LJP_MEMPROF_H
#define LJP_MEMPROF_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/output.h"

struct lua_State;

enum { LJP_MEMPROF_SAMPLE_BYTES = 512 * 1024 };
#define LJP_MEMPROF_SAMPLE_MAX (UINT64_C(1) << 40)

struct ljp_memprof_options {
  struct ljp_output output; /* if not shared */
  uint64_t sample_bytes;    /* mean distance of two samples; 0: every event */
  bool native;              /* C frames in the stacks */
  uint32_t depth;
  bool shared; /* into the session of the CPU profiler, which runs */
};

void ljp_memprof_options_init(struct ljp_memprof_options *options);

enum ljp_status ljp_memprof_start(struct lua_State *L,
                                  const struct ljp_memprof_options *options,
                                  struct ljp_failure *why);
enum ljp_status ljp_memprof_stop(struct lua_State *L, struct ljp_failure *why);

/* A point in time with a name; value: bytes in use. */
enum ljp_status ljp_memprof_mark(struct lua_State *L, const char *name,
                                 size_t bytes, struct ljp_failure *why);

/* Of the recording that runs, else of the last one. */
struct ljp_memprof_counts {
  uint64_t allocs, frees, reallocs, failed; /* events recorded */
  uint64_t alloc_bytes, free_bytes;         /* by them; sampled: estimates */
  uint64_t lost[LJP_LOSS_COUNT];            /* samples */
  uint64_t untold; /* events that did not get into the stream: it says why */
  uint64_t cut;    /* stacks that are not whole */
  /* Of LJPROF_MEMPROF_CHECK: answers that were compared, and that differed. */
  uint64_t remembered, checked, differed;
  uint64_t cycles;
};

struct ljp_memprof_status {
  const char *state;                /* "idle", "running", "stopped", "failed" */
  bool running;                     /* maybe "failed", not yet stopped */
  char path[LJP_OUTPUT_PATH_BYTES]; /* "" if shared */
  uint64_t sample_bytes, bytes;
  uint64_t heap_bytes; /* of the VM that is recorded */
  bool native;
  struct ljp_memprof_counts counts;
};
void ljp_memprof_status(struct ljp_memprof_status *out);

#endif
