/*
** What the sessions of all profilers have in common; see recording.h. The
** readers of options run in the VM's thread; the rest under the lock of the
** profiler whose session it is.
*/
#include "profilers/session/recording.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profilers/api/lmisclib.h"
#include "src/luajit/guest.h"

/* -- Failures ---------------------------------------------------------------------- */

enum ljp_status ljp_fail(struct ljp_failure *why, enum ljp_status status,
                         int error, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(why->text, sizeof why->text, format, args);
  va_end(args);
  why->error = error;
  return status;
}

int ljp_fail_errno(enum ljp_status status)
{
  switch (status) {
  case LJP_ERR_MEM:
    return ENOMEM;
  case LJP_ERR_NOTSUP:
    return ENOTSUP;
  case LJP_ERR_RUN:
    return EBUSY;
  case LJP_ERR_IO:
    return EIO;
  default:
    return EINVAL;
  }
}

int ljp_fail_code(enum ljp_status status, const struct ljp_failure *why)
{
  if (status)
    errno = why->error;
  switch (status) {
  case LJP_OK:
    return PROFILE_SUCCESS;
  case LJP_ERR_RUN:
    return PROFILE_ERRRUN;
  case LJP_ERR_MEM:
    return PROFILE_ERRMEM;
  case LJP_ERR_IO:
    return PROFILE_ERRIO;
  default:
    return PROFILE_ERRUSE;
  }
}

/* -- Options ------------------------------------------------------------------------- */

bool ljp_recording_path(lua_State *L, void *to, const char **wants)
{
  /* The caller's table keeps it. */
  return ljp_option_path(L, &((struct ljp_recording *)to)->path, wants);
}

bool ljp_recording_fork(lua_State *L, void *to, const char **wants)
{
  static const char *const words[] = {"stop", "follow", NULL};
  int i = 0;
  *wants = "\"stop\" or \"follow\"";
  bool ok = ljp_option_one_of(L, words, &i);
  ((struct ljp_recording *)to)->follow_fork = i == 1;
  return ok;
}

bool ljp_recording_flush(lua_State *L, void *to, const char **wants)
{
  int ms = 0;
  *wants = "milliseconds, a whole number from 10 to 10000";
  bool ok = ljp_option_whole(L, 10, 10000, &ms);
  ((struct ljp_recording *)to)->flush_ms = (uint32_t)ms;
  return ok;
}

bool ljp_recording_compress(lua_State *L, void *to, const char **wants)
{
  *wants = "a level of compression, a whole number from 0 (none) to 19";
  return ljp_option_whole(L, 0, 19, &((struct ljp_recording *)to)->zstd_level);
}

bool ljp_recording_sync(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct ljp_recording *)to)->sync, wants);
}

bool ljp_recording_rotate_bytes(lua_State *L, void *to, const char **wants)
{
  double bytes = 0;
  *wants = "a number of bytes from 4096";
  bool ok = ljp_option_number(L, 4096, 1e15, &bytes);
  ((struct ljp_recording *)to)->segment_bytes = (uint64_t)bytes;
  return ok;
}

bool ljp_recording_rotate_seconds(lua_State *L, void *to, const char **wants)
{
  double seconds = 0;
  *wants = "a number of seconds from 0.1";
  bool ok = ljp_option_number(L, 0.1, 1e9, &seconds);
  ((struct ljp_recording *)to)->segment_ms = (uint64_t)(seconds * 1000);
  return ok;
}

bool ljp_recording_keep(lua_State *L, void *to, const char **wants)
{
  int files = 0;
  *wants = "a number of files, from 1 (0: all)";
  bool ok = ljp_option_whole(L, 0, 1000000, &files);
  ((struct ljp_recording *)to)->keep_segments = (uint32_t)files;
  return ok;
}

/* -- The session -------------------------------------------------------------------- */

enum ljp_status ljp_recording_keep_path(struct ljp_recording *to,
                                        char room[LJP_RECORDING_PATH_BYTES],
                                        struct ljp_failure *why)
{
  const char *path = to->path;
  to->path = NULL;
  room[0] = '\0';
  if (!path)
    return LJP_OK;
  size_t len = strlen(path);
  if (len >= LJP_RECORDING_PATH_BYTES)
    return ljp_fail(why, LJP_ERR_USE, ENAMETOOLONG, "path: %s",
                    strerror(ENAMETOOLONG));
  to->path = memcpy(room, path, len + 1);
  return LJP_OK;
}

static size_t discard(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

enum ljp_status ljp_recording_new(const struct ljp_recording *to,
                                  void (*round)(void *ctx),
                                  void (*fork_child)(void *ctx, bool recording),
                                  const struct ljp_guest_hold *hold,
                                  struct ljp_session **out,
                                  struct ljp_failure *why)
{
  struct ljp_session_options session = {.path = to->path,
                                        .callback = to->path ? NULL
                                                    : to->callback
                                                        ? to->callback
                                                        : discard,
                                        .callback_ctx = to->callback_ctx,
                                        .round = round,
                                        .flush_ms = to->flush_ms,
                                        .zstd_level = to->zstd_level,
                                        .sync = to->sync,
                                        .segment_bytes = to->segment_bytes,
                                        .segment_ms = to->segment_ms,
                                        .keep_segments = to->keep_segments,
                                        .record_child = to->follow_fork,
                                        .fork_child = fork_child};
  if (!to->path && (to->segment_bytes || to->segment_ms))
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "rotate_bytes and rotate_seconds want a path");
  ljp_recording_describe(&session.describe);
  session.describe.ctx = (void *)(uintptr_t)hold->ticket;
  enum ljp_status status = ljp_session_new(out, &session);
  return status ? ljp_fail(why, status, ljp_fail_errno(status), "%s",
                           ljp_status_text(status))
                : LJP_OK;
}

void ljp_recording_tell_unnamed(const struct ljp_guest_hold *hold,
                                struct ljp_session *session)
{
  char text[32];
  uint64_t count = ljp_guest_protos_unnamed(hold);
  if (!count)
    return;
  snprintf(text, sizeof text, "%llu", (unsigned long long)count);
  ljp_session_info(session, "functions.unnamed", text);
}

static enum ljp_status failed(const struct ljp_recording *to,
                              enum ljp_status status, int error,
                              struct ljp_failure *why)
{
  return ljp_fail(why, status, error ? error : ljp_fail_errno(status), "%s: %s",
                  to->path ? to->path : "output",
                  error ? strerror(error) : ljp_status_text(status));
}

enum ljp_status ljp_recording_start(const struct ljp_recording *to,
                                    struct ljp_session **session,
                                    struct ljp_failure *why)
{
  int error = 0;
  enum ljp_status status = ljp_session_start(*session);
  if (!status)
    return LJP_OK;
  ljp_session_stop(*session, &error);
  ljp_session_free(*session);
  *session = NULL;
  return failed(to, status, error, why);
}

enum ljp_status ljp_recording_stop(const struct ljp_recording *to,
                                   struct ljp_session **session,
                                   uint64_t *bytes, struct ljp_failure *why)
{
  int error = 0;
  ljp_recording_hurry(true);
  enum ljp_status status = ljp_session_stop(*session, &error);
  ljp_recording_hurry(false);
  *bytes = ljp_session_bytes(*session);
  ljp_session_free(*session);
  *session = NULL;
  return status ? failed(to, status, error, why) : LJP_OK;
}

/* -- Under the lock --------------------------------------------------------------- */

void ljp_recording_crowded(struct ljp_recording_lock *lock, const bool *running,
                           struct ljp_session *const *session)
{
  if (!ljp_recording_trylock(lock))
    return;
  if (*running && lock->pid == getpid())
    ljp_session_wake(*session);
  ljp_recording_unlock(lock);
}

void ljp_recording_ended(struct ljp_recording_lock *lock,
                         struct ljp_recording *to)
{
  lock->on_stop = to->on_stop;
  lock->on_stop_ctx = to->on_stop_ctx;
  to->on_stop = NULL;
}
