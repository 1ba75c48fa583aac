/*
** Output: where a session's stream goes and how it is written, and the steps in
** which a profiler opens and closes the session that writes it.
**
** The caller holds the lock of the profiler whose session it is, unless said
** otherwise.
*/
#ifndef LJP_OUTPUT_H
#define LJP_OUTPUT_H

#include "profilers/session/failure.h"
#include "profilers/session/lock.h"
#include "src/luajit/functions.h"
#include "src/session/session.h"

/* The first member of each profiler's options. Without a path and a callback
** the stream is thrown away. */
struct ljp_output {
  const char *path;
  ljp_sink_callback callback;
  void *callback_ctx;
  /* Called once, when the session has ended. */
  void (*on_stop)(void *ctx);
  void *on_stop_ctx;
  bool follow_fork;
  uint32_t flush_ms;
  int zstd_level;
  bool sync;
  /* Rotation, files only: PATH, PATH.s1, PATH.s2 ...; 0: no limit. */
  uint64_t segment_bytes, segment_ms;
  uint32_t keep_segments;
};

/* Copies the output's path into room, and makes the output point there. */
enum { LJP_OUTPUT_PATH_BYTES = 4096 };
enum ljp_status ljp_output_keep_path(struct ljp_output *output,
                                     char room[LJP_OUTPUT_PATH_BYTES],
                                     struct ljp_failure *why);

/* Makes a session that has not started yet. Its writer describes what this hold
** keeps. */
enum ljp_status ljp_output_new(const struct ljp_output *output,
                               void (*round)(void *ctx),
                               void (*fork_child)(void *ctx, bool recording),
                               const struct ljp_guest_hold *hold,
                               struct ljp_session **session,
                               struct ljp_failure *why);
/* Starts the session. On failure it is freed and *session is NULL. A file that
** was there stays until the commit: the caller first does all that can be
** refused. */
enum ljp_status ljp_output_start(const struct ljp_output *output,
                                 struct ljp_session **session,
                                 struct ljp_failure *why);
/* Puts the file in place. On failure the caller stops the session. */
enum ljp_status ljp_output_commit(const struct ljp_output *output,
                                  struct ljp_session *session,
                                  struct ljp_failure *why);
/* Stops and frees the session. Before that its stream is told how many
** functions the hold has left without a name. *bytes: the bytes that were
** written. */
enum ljp_status ljp_output_stop(const struct ljp_output *output,
                                const struct ljp_guest_hold *hold,
                                struct ljp_session **session, uint64_t *bytes,
                                struct ljp_failure *why);

/* Much waits for a session's writer: wakes it if the session runs. On a VM's
** thread inside its collector, where this thread may hold the lock already:
** then it starts or stops a session, which makes rounds enough. Takes the
** lock. */
void ljp_output_wake_writer(struct ljp_profiler_lock *lock, const bool *running,
                            struct ljp_session *const *session);

/* The session has ended: the unlock calls on_stop. */
void ljp_output_ended(struct ljp_output *output,
                      struct ljp_profiler_lock *lock);

#endif
