/*
** What the sessions of all profilers have in common: where their stream goes
** and how it is written, the Lua options for that, and the session itself.
*/
#ifndef LJP_RECORDING_H
#define LJP_RECORDING_H

#include "profilers/api/options.h"
#include "profilers/session/recording_lock.h"
#include "src/luajit/guest.h"
#include "src/session/session.h"

/* The first member of each profiler's options. */
struct ljp_recording {
  /* Where to: a path or a callback; neither: nowhere. */
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
  /* Files only: PATH, PATH.s1, PATH.s2 ...; 0: no limit. */
  uint64_t segment_bytes, segment_ms;
  uint32_t keep_segments;
};

/* Much waits for the session's writer, if it runs: wakes it. On a VM's thread, in
** its collector, which may run while this thread has the lock. */
void ljp_recording_crowded(struct ljp_recording_lock *lock, const bool *running,
                           struct ljp_session *const *session);
/* Under it: a session has ended. */
void ljp_recording_ended(struct ljp_recording_lock *lock,
                         struct ljp_recording *to);

/* Its Lua options, for tables of struct ljp_option whose target begins with a
** struct ljp_recording. */
#define LJP_RECORDING_OPTIONS                                                  \
  {"path", ljp_recording_path}, {"fork", ljp_recording_fork},                  \
      {"flush", ljp_recording_flush}, {"compress", ljp_recording_compress},    \
      {"sync", ljp_recording_sync},                                            \
      {"rotate_bytes", ljp_recording_rotate_bytes},                            \
      {"rotate_seconds", ljp_recording_rotate_seconds},                        \
  {                                                                            \
    "keep", ljp_recording_keep                                                 \
  }

ljp_option_reader ljp_recording_path, ljp_recording_fork, ljp_recording_flush,
    ljp_recording_compress, ljp_recording_sync, ljp_recording_rotate_bytes,
    ljp_recording_rotate_seconds, ljp_recording_keep;

/* Why a call failed: for people, and as errno. */
struct ljp_failure {
  int error;
  char text[512];
};

/* Fills *why; returns status. */
enum ljp_status ljp_fail(struct ljp_failure *why, enum ljp_status status,
                         int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int ljp_fail_errno(enum ljp_status status);

/* As a code of lmisclib.h, with errno set. */
int ljp_fail_code(enum ljp_status status, const struct ljp_failure *why);

/* Room for the path of to, which is made to point there. */
enum { LJP_RECORDING_PATH_BYTES = 4096 };
enum ljp_status ljp_recording_keep_path(struct ljp_recording *to,
                                        char room[LJP_RECORDING_PATH_BYTES],
                                        struct ljp_failure *why);

/* What the writer asks about what the guest has (profilers/cpu/setup.c). */
void ljp_recording_describe(struct ljp_describe *describe);

/* While a stop waits for the writer, that makes no unwind tables
** (profilers/cpu/setup.c). */
void ljp_recording_hurry(bool begin);

/* A session, not started yet. Its writer has the hold's ticket. */
enum ljp_status ljp_recording_new(const struct ljp_recording *to,
                                  void (*round)(void *ctx),
                                  void (*fork_child)(void *ctx, bool recording),
                                  const struct ljp_guest_hold *hold,
                                  struct ljp_session **out,
                                  struct ljp_failure *why);
/* Puts into the stream how many functions the hold has left without a name. */
void ljp_recording_tell_unnamed(const struct ljp_guest_hold *hold,
                                struct ljp_session *session);
/* Starts it; on failure it is freed, and *session NULL. */
enum ljp_status ljp_recording_start(const struct ljp_recording *to,
                                    struct ljp_session **session,
                                    struct ljp_failure *why);
/* Stops and frees it; *bytes: how many it has written. */
enum ljp_status ljp_recording_stop(const struct ljp_recording *to,
                                   struct ljp_session **session,
                                   uint64_t *bytes, struct ljp_failure *why);

#endif
