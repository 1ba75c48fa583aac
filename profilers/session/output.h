/*
** Output: where a session's stream goes and how it is written, and the steps in
** which a profiler opens and closes the session that writes it.
**
** The caller holds the lock of the profiler that owns the session, unless a
** comment says otherwise.
*/
#ifndef LJP_OUTPUT_H
#define LJP_OUTPUT_H

#include "profilers/session/failure.h"
#include "profilers/session/lock.h"
#include "src/base/clock.h"
#include "src/luajit/functions.h"
#include "src/session/session.h"

/* How a session ended that the program did not stop (INFO `session.end`). */
#define LJP_END_EXIT "exit"
#define LJP_END_CLOSE "VM closed"

/* The first member of each profiler's options. Without a path or a callback the
** stream is discarded. */
struct ljp_output {
  const char *path;
  bool use_fd; /* into fd, which stays the caller's; the path is for messages */
  int fd;
  ljp_sink_callback callback;
  void *callback_ctx;
  /* Called once, when the session has ended. left: the writer thread hangs, and
  ** if it ever comes back, it calls `callback` again. */
  void (*on_stop)(void *ctx, bool left);
  void *on_stop_ctx;
  bool left;       /* set by ljp_output_stop() */
  const char *end; /* How the session ended; NULL: the program stopped it. */
  bool ljm;        /* a file of Tarantool's format ljm; memory events only */
  bool follow_fork;
  uint32_t flush_ms;
  int zstd_level;
  bool sync;
  /* Rotation, of files: PATH, PATH.s1, PATH.s2 ...; 0: no limit. */
  uint64_t segment_bytes, segment_ms;
  uint32_t keep_segments;
  /* The path is the folder of a store, and the service's files there may take
  ** ring_bytes together; as in session.h. Valid until the session has started. */
  const char *service;
  uint64_t ring_bytes;
  /* The writer thread needs descriptors of the program's table: those of perf
  ** events, or of a file that another thread opens. */
  bool shares_table;
  /* Rotation of fd: valid until the session has ended. NULL: none. */
  const struct ljp_sink_next *next;
  uint64_t until_ns; /* The session ends then, by itself; 0: it does not. */
};

/* Is the session's time over? */
static inline bool ljp_output_over(const struct ljp_output *output)
{
  return output->until_ns && ljp_clock_ns() >= output->until_ns;
}

/* Copies the output's path into room, and points the output to the copy. */
enum { LJP_OUTPUT_PATH_BYTES = 4096 };
enum ljp_status ljp_output_keep_path(struct ljp_output *output,
                                     char room[LJP_OUTPUT_PATH_BYTES],
                                     struct ljp_failure *why);

/* Makes a session, but does not start it. Its writer describes the functions
** that this hold keeps. */
enum ljp_status ljp_output_new(const struct ljp_output *output,
                               void (*round)(void *ctx),
                               void (*fork_child)(void *ctx, bool recording),
                               const struct ljp_guest_hold *hold,
                               struct ljp_session **session,
                               struct ljp_failure *why);
/* Starts the session. On failure it is freed and *session is NULL. An existing
** file stays until the commit, so that the caller can first do everything that
** may be refused. */
enum ljp_status ljp_output_start(const struct ljp_output *output,
                                 struct ljp_session **session,
                                 struct ljp_failure *why);
/* Puts the file in place. On failure the caller stops the session. */
enum ljp_status ljp_output_commit(const struct ljp_output *output,
                                  struct ljp_session *session,
                                  struct ljp_failure *why);
/* What to tell the user when the session has refused something with this
** status. Returns the status. */
enum ljp_status ljp_output_refused(const struct ljp_output *output,
                                   struct ljp_session *session,
                                   enum ljp_status status,
                                   struct ljp_failure *why);

/* Stops and frees the session. Before that, writes into its stream how many
** functions the hold has left without a name. *bytes: the number of bytes
** written. */
enum ljp_status ljp_output_stop(struct ljp_output *output,
                                const struct ljp_guest_hold *hold,
                                struct ljp_session **session, uint64_t *bytes,
                                struct ljp_failure *why);

/* After the stop: reports to the caller the events that are missing from a file
** whose format cannot say so. */
enum ljp_status ljp_output_lost(const struct ljp_output *output,
                                uint64_t events, struct ljp_failure *why);

/* Many entries wait for a session's writer: wakes the writer if the session
** runs. Called on a VM's thread inside its collector. Takes the lock. If this
** thread already holds it, does nothing: then the thread is starting or
** stopping a session, which makes the writer do enough rounds. */
void ljp_output_wake_writer(struct ljp_profiler_lock *lock, const bool *running,
                            struct ljp_session *const *session);

/* The session has ended: the unlock calls on_stop. */
void ljp_output_ended(struct ljp_output *output,
                      struct ljp_profiler_lock *lock);

#endif
