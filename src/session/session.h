/*
** Session: one recording, from start to stop, shared by all profilers that
** write into it. Owns the writer thread, the producers and the sink.
**
**   idle --start--> running --stop--> stopped
**     \               \--write error--> failed --stop--> failed
**      \--start fails--> failed
**
** Any number of sessions may run at once, on different sinks. Nothing here is
** signal-safe, but all of it may be called from any thread. What happens to
** the host: one thread ("ljprof-writer", all signals blocked, never keeps the
** process from ending), the sink's descriptor (close-on-exec), and a fork
** handler. Nothing is written to stdout or stderr, no exit handler is set.
**
** How a profiler plugs in:
**   1. ljp_session_new, ljp_session_start.
**   2. For each thread: ljp_session_add_thread; for each VM:
**      ljp_session_add_vm; then a ljp_session_add_producer for each context
**      that records (one for the signal handler, one for ordinary code).
**   3. Push (producer.h, event.h).
**   4. Stop the source of events; ljp_producer_retire for each producer (or
**      none: stop drains all). Then ljp_session_stop, ljp_session_free.
*/
#ifndef LJP_SESSION_H
#define LJP_SESSION_H

#include "src/base/describe.h"
#include "src/push/producer.h"
#include "src/writer/sink.h"

#define LJP_SESSION_STATE_LIST(_)                                              \
  _(IDLE, 0, "idle")                                                           \
  _(RUNNING, 1, "running")                                                     \
  _(STOPPED, 2, "stopped")                                                     \
  _(FAILED, 3, "failed")

enum ljp_session_state {
#define LJP_X(name, number, text) LJP_SESSION_##name = number,
  LJP_SESSION_STATE_LIST(LJP_X)
#undef LJP_X
};

struct ljp_session;

/* Zeroed, it is a session with all defaults and no sink. */
struct ljp_session_options {
  /* One of the three. */
  const char *path; /* Replaced once the session has really started. */
  bool use_fd;
  int fd; /* Stays the host's: not closed, flags untouched. */
  ljp_sink_callback callback; /* Called on the writer thread. */
  void *callback_ctx;

  struct ljp_describe describe;
  /* At the start of each round, on the writer thread; may add and end threads,
  ** VMs and producers. May be NULL. */
  void (*round)(void *ctx);
  void *round_ctx;
  uint32_t flush_ms; /* Data is at most so far behind; 0: 250. */
  int zstd_level;    /* 0: stored as it is. */
  bool sync;         /* fdatasync after each block: survives power loss. */
  /* Rotation, files only: PATH, PATH.s1, PATH.s2 ... */
  uint64_t segment_bytes, segment_ms;
  uint32_t keep_segments; /* 0: all. */
  /* In a fork's child: record into PATH.PID (files only), or not at all. The
  ** file appears after the first flush interval, so that fork and exec leaves
  ** none. Only the forking thread's producers go on. */
  bool record_child;
  /* In the child, when the session is as it will be there; may be NULL. Timers
  ** are not inherited: this is where to arm them again. */
  void (*fork_child)(void *ctx, bool recording);
  void *fork_ctx;
};

/* Copies the options. LJP_ERR_USE: no sink, several, or rotation without a
** file. LJP_ERR_NOTSUP: no libzstd.so.1 here. */
enum ljp_status ljp_session_new(struct ljp_session **out,
                                const struct ljp_session_options *options);

/* Returns when the first block is in the sink, or with the reason why not: for
** a sink that is stuck after ten seconds, like stop. The first block of a plain
** file is written by the caller itself. */
enum ljp_status ljp_session_start(struct ljp_session *s);

/* Writes all that was pushed, ends the stream and the thread. Returns what went
** wrong during the session, if anything did; *error: its errno, or 0. Waits for
** a sink that is stuck no longer than ten seconds. */
enum ljp_status ljp_session_stop(struct ljp_session *s, int *error);

/* Stops it if need be; all its producers cease to exist. */
void ljp_session_free(struct ljp_session *s);

enum ljp_session_state ljp_session_state(struct ljp_session *s);
const char *ljp_session_state_text(enum ljp_session_state state);

/* "option.interval_us" = "1000" and the like. */
enum ljp_status ljp_session_info(struct ljp_session *s, const char *key,
                                 const char *value);

/* Ids are 1, 2 ... and never used again in the session. */
enum ljp_status ljp_session_add_thread(struct ljp_session *s, pid_t tid,
                                       const char *name, uint32_t *id);
/* A thread has another name now (15 bytes of it): it is defined once more. */
void ljp_session_name_thread(struct ljp_session *s, uint32_t id,
                             const char *name);
enum ljp_status ljp_session_add_vm(struct ljp_session *s, uint32_t thread,
                                   const char *name, uint32_t *id);
enum ljp_status ljp_session_end_thread(struct ljp_session *s, uint32_t id);
enum ljp_status ljp_session_end_vm(struct ljp_session *s, uint32_t id);

/* thread: an id from add_thread, or 0. ring_bytes: rounded up to a power of
** two; 0: default of the kind. All its memory is mapped and touched here. Only
** while running. Valid until retired or until the session is freed. */
enum ljp_status ljp_session_add_producer(struct ljp_session *s,
                                         enum ljp_producer_kind kind,
                                         uint32_t thread, uint64_t interval_ns,
                                         size_t ring_bytes,
                                         struct ljp_producer **out);

/* No push may be running or come any more. What was pushed is still written. */
void ljp_producer_retire(struct ljp_producer *producer);

/* Asks the writer to come now. */
void ljp_session_wake(struct ljp_session *s);

/* Whole bytes in the current segment, for tests and figures. */
uint64_t ljp_session_bytes(struct ljp_session *s);

#endif
