/*
** The C interface of the profilers, installed beside lua.h. Names and types are
** those of Tarantool's LuaJIT, so that its hosts compile here.
**
** Every function returns one of the PROFILE_* codes; if it is not
** PROFILE_SUCCESS, errno says more. In a library without profilers each
** function returns PROFILE_ERRUSE with errno ENOTSUP.
*/
#ifndef LMISCLIB_H
#define LMISCLIB_H

#include <stddef.h>
#include <stdint.h>

#include "lua.h"

#ifndef LUAMISC_API
#define LUAMISC_API extern __attribute__((visibility("default")))
#endif

/* -- Metrics --------------------------------------------------------------- */
/* Counts since the VM was made, and sizes now. */
struct luam_Metrics {
  size_t strhash_hit;  /* strings that were wanted and existed already */
  size_t strhash_miss; /* strings that were made */

  /* Objects, dead ones too until the collector frees them. */
  size_t gc_strnum;
  size_t gc_tabnum;
  size_t gc_udatanum;
  size_t gc_cdatanum;

  size_t gc_total; /* bytes in use: allocated less freed */
  size_t gc_freed;
  size_t gc_allocated;

  /* Steps of the collector, by its state. */
  size_t gc_steps_pause;
  size_t gc_steps_propagate;
  size_t gc_steps_atomic;
  size_t gc_steps_sweepstring;
  size_t gc_steps_sweep;
  size_t gc_steps_finalize;

  size_t jit_snap_restore; /* exits of traces to the interpreter */
  size_t jit_trace_abort;
  size_t jit_mcode_size; /* bytes of memory for machine code */
  unsigned int jit_trace_num;
};

/* On the VM's own thread. In a library without profilers, too. */
LUAMISC_API void luaM_metrics(lua_State *L, struct luam_Metrics *metrics);

/* -- Results of the profilers' functions ----------------------------------- */
#define PROFILE_SUCCESS 0
#define PROFILE_ERRUSE 1 /* wrong arguments, or not supported */
#define PROFILE_ERRRUN 2 /* running already, or not running */
#define PROFILE_ERRMEM 3 /* out of memory */
#define PROFILE_ERRIO 4  /* the output failed */

/* -- CPU profiler ---------------------------------------------------------- */
/*
** Takes len bytes at *data: a stream of ljprof, for `ljprof report` and others.
** Returns the number of bytes taken (len or more: all), 0 on error. Sets *data
** to NULL to end the stream. With a buffer in the options, *data is that
** buffer; the writer may replace it by another one of the same size. ctx comes
** from the options.
*/
typedef size_t (*luam_Sysprof_writer)(const void **data, size_t len, void *ctx);

/* Called once when the session has ended; returns 0 on success. */
typedef int (*luam_Sysprof_on_stop)(void *ctx, uint8_t *buf);

/*
** Walks the host stack: calls frame_writer for each frame, innermost first,
** until it returns NULL. Runs in a signal handler.
*/
typedef void (*luam_Sysprof_backtracer)(void *(*frame_writer)(int frame_no,
                                                              void *addr));

#define LUAM_SYSPROF_DEFAULT 0   /* "D": counters only */
#define LUAM_SYSPROF_LEAF 1      /* "L": counters and innermost frames */
#define LUAM_SYSPROF_CALLGRAPH 2 /* "C": counters and whole stacks */

struct luam_Sysprof_Options {
  uint8_t mode;
  uint64_t interval; /* milliseconds; from 2^31 on: the timer never expires */
  uint8_t *buf;      /* may be used to collect output, if not NULL */
  size_t len;        /* its size in bytes */
  void *ctx;         /* for writer and on_stop */
};

/* Samples by the state of the VM, and all of them. vmst_interp has those
** outside of any VM, too, so the states add up to samples. */
struct luam_Sysprof_Counters {
  uint64_t vmst_interp;
  uint64_t vmst_lfunc;
  uint64_t vmst_ffunc;
  uint64_t vmst_cfunc;
  uint64_t vmst_gc;
  uint64_t vmst_exit;
  uint64_t vmst_record;
  uint64_t vmst_opt;
  uint64_t vmst_asm;
  uint64_t vmst_trace;
  uint64_t samples;
};

LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer);
LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop);
/* NULL restores the built-in one. */
LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer);
/* While the session runs, a SIGPROF of somebody else takes a sample of its
** thread, unless the program handles or ignores SIGPROF. */
LUAMISC_API int luaM_sysprof_start(lua_State *L,
                                   const struct luam_Sysprof_Options *opt);
LUAMISC_API int luaM_sysprof_stop(lua_State *L);
LUAMISC_API int luaM_sysprof_report(struct luam_Sysprof_Counters *counters);

/* -- Memory profiler ------------------------------------------------------- */
struct luam_Memprof_Options {
  void *ctx;    /* for writer and on_stop */
  uint8_t *buf; /* may be used to collect output, if not NULL */
  size_t len;   /* its size in bytes */
  /* See luam_Sysprof_writer. */
  size_t (*writer)(const void **data, size_t len, void *ctx);
  /* Called exactly once for each session that was started, by the thread that
  ** ends it; may start another session. Returns 0 on success; otherwise stop
  ** returns PROFILE_ERRIO. */
  int (*on_stop)(void *ctx, uint8_t *buf);
};

LUAMISC_API int luaM_memprof_start(lua_State *L,
                                   const struct luam_Memprof_Options *opt);
LUAMISC_API int luaM_memprof_stop(const lua_State *L);
/* Is a session running? 1 or 0. */
LUAMISC_API int luaM_memprof_isrunning(void);

/* -- Heap snapshots -------------------------------------------------------- */
struct luam_Heap_Options {
  unsigned strings; /* bytes of each string's contents to keep, at most 4096 */
  int wait;         /* return when the file is complete */
  int in_place;     /* make no copy of the process */
};

/* As misc.memprof.snapshot(). path NULL: into the stream of the running memory
** session. opt NULL: the defaults of the Lua interface. */
LUAMISC_API int luaM_heap_snapshot(lua_State *L, const char *path,
                                   const struct luam_Heap_Options *opt);

/* -- Joining --------------------------------------------------------------- */
/* As misc.profile.listen(): from now on `ljprof record -p PATH` can join this
** program by a socket at the path. NULL: no longer. Any thread. */
LUAMISC_API int luaM_listen(lua_State *L, const char *path);

/* -- Labels ---------------------------------------------------------------- */
/* As misc.profile.label{key = value}, for the coroutine L: says what its work is
** until the next call. value NULL: takes the label away. On the VM's own thread. */
LUAMISC_API int luaM_label(lua_State *L, const char *key, const char *value);
/* As misc.profile.publish_labels(): shows the labels of this VM's work to other
** profilers, or (on 0) no longer. On the VM's own thread. */
LUAMISC_API int luaM_publish_labels(lua_State *L, int on);

/* Names of the first design of Tarantool's memory profiler. There the numbers
** were others, and ERR was said of a profiler that runs already, too. */
#define luam_Prof_options luam_Memprof_Options
#define LUAM_PROFILE_SUCCESS PROFILE_SUCCESS
#define LUAM_PROFILE_ERR PROFILE_ERRUSE
#define LUAM_PROFILE_ERRRUN PROFILE_ERRRUN
#define LUAM_PROFILE_ERRMEM PROFILE_ERRMEM
#define LUAM_PROFILE_ERRIO PROFILE_ERRIO

/* -- The Lua interface ----------------------------------------------------- */
#define LUAM_MISCLIBNAME "misc"

/* For hosts that open libraries one by one; luaL_openlibs calls it too. */
LUAMISC_API int luaopen_misc(lua_State *L);

#endif
