/*
** Output of a session; see output.h.
*/
#include "profilers/session/labels.h"
#include "profilers/session/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profilers/session/describe_guest.h"
#include "profilers/session/host.h"
#include "profilers/session/told.h"
#include "src/base/assert.h"

enum ljp_status ljp_output_keep_path(struct ljp_output *output,
                                     char room[LJP_OUTPUT_PATH_BYTES],
                                     struct ljp_failure *why)
{
  const char *path = output->path;
  output->path = NULL;
  room[0] = '\0';
  if (!path)
    return LJP_OK;
  size_t len = strlen(path);
  if (len >= LJP_OUTPUT_PATH_BYTES)
    return ljp_fail(why, LJP_ERR_USE, ENAMETOOLONG, "path: %s",
                    strerror(ENAMETOOLONG));
  output->path = memcpy(room, path, len + 1);
  return LJP_OK;
}

static size_t output_discard(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

/* In a child of fork(), which has no caller that could be told. */
static void output_child_refused(const char *path, int error)
{
  char text[512];
  const char *known = ljp_errno_text(error);
  snprintf(text, sizeof text, "child process %d: %s: %s", (int)getpid(), path,
           known ? known : "unknown error");
  ljp_told_refused(text);
}

enum ljp_status ljp_output_new(const struct ljp_output *output,
                               void (*round)(void *ctx),
                               void (*fork_child)(void *ctx, bool recording),
                               const struct ljp_guest_hold *hold,
                               struct ljp_session **session,
                               struct ljp_failure *why)
{
  ljp_sink_callback callback =
      output->callback ? output->callback : output_discard;
  struct ljp_session_options options = {
      .path = output->use_fd ? NULL : output->path,
      .use_fd = output->use_fd,
      .fd = output->fd,
      .provisional = true,
      .callback = output->path ? NULL : callback,
      .callback_ctx = output->callback_ctx,
      .round = round,
      .flush_ms = output->flush_ms,
      .ljm = output->ljm,
      .zstd_level = output->zstd_level,
      .sync = output->sync,
      .segment_bytes = output->segment_bytes,
      .segment_ms = output->segment_ms,
      .keep_segments = output->keep_segments,
      .service = output->service,
      .ring_bytes = output->ring_bytes,
      .next = output->next,
      .record_child = output->follow_fork,
      .child_refused = output_child_refused,
      .fork_child = fork_child,
      .apart = output->service && !output->shares_table};
  if ((!output->path || (output->use_fd && !output->next)) &&
      (output->segment_bytes || output->segment_ms))
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "rotate_bytes and rotate_seconds want a path");
  if (output->service && (!output->path || output->use_fd))
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "service wants the path of a folder");
  if (output->ring_bytes && !output->service)
    return ljp_fail(why, LJP_ERR_USE, EINVAL, "ring wants a service");
  if (output->service && output->keep_segments)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "keep counts the files of one process, so it cannot be "
                    "combined with service: use ring");
  ljp_describe_guest(&options.describe, hold);
  enum ljp_status status = ljp_session_new(session, &options);
  if (status == LJP_ERR_NOTSUP && output->zstd_level)
    return ljp_fail(why, status, ljp_status_errno(status), LJP_NO_ZSTD);
  return status ? ljp_fail(why, status, ljp_status_errno(status), "%s",
                           ljp_status_text(status))
                : LJP_OK;
}

static enum ljp_status output_failed(const struct ljp_output *output,
                                     enum ljp_status status, int error,
                                     struct ljp_failure *why)
{
  return ljp_fail(why, status, error ? error : ljp_status_errno(status),
                  "%s: %s", output->path ? output->path : "output",
                  error ? strerror(error) : ljp_status_text(status));
}

enum ljp_status ljp_output_start(const struct ljp_output *output,
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
  return output_failed(output, status, error, why);
}

enum ljp_status ljp_output_commit(const struct ljp_output *output,
                                  struct ljp_session *session,
                                  struct ljp_failure *why)
{
  int error = 0;
  enum ljp_status status = ljp_session_commit(session);
  if (!status)
    return LJP_OK;
  ljp_session_stop(session, &error);
  return output_failed(output, status, error, why);
}

enum ljp_status ljp_output_refused(const struct ljp_output *output,
                                   struct ljp_session *session,
                                   enum ljp_status status,
                                   struct ljp_failure *why)
{
  return output_failed(output, status, ljp_session_error(session), why);
}

static void output_count_unnamed(const struct ljp_guest_hold *hold,
                                 struct ljp_session *session)
{
  char text[32];
  uint64_t count = ljp_guest_protos_unnamed(hold);
  if (!count)
    return;
  snprintf(text, sizeof text, "%llu", (unsigned long long)count);
  ljp_session_info(session, "functions.unnamed", text);
}

static void output_count_others(struct ljp_session *session)
{
  char text[32];
  uint64_t count = ljp_labels_others();
  if (!count)
    return;
  snprintf(text, sizeof text, "%llu", (unsigned long long)count);
  ljp_session_info(session, "labels.other", text);
}

enum ljp_status ljp_output_stop(struct ljp_output *output,
                                const struct ljp_guest_hold *hold,
                                struct ljp_session **session, uint64_t *bytes,
                                struct ljp_failure *why)
{
  int error = 0;
  ljp_assert(*session);
  output_count_unnamed(hold, *session);
  output_count_others(*session);
  if (output->end)
    ljp_session_info(*session, "session.end", output->end);
  ljp_host_hurry(true);
  enum ljp_status status = ljp_session_stop(*session, &error);
  ljp_host_hurry(false);
  *bytes = ljp_session_bytes(*session);
  output->left = ljp_session_is_stuck(*session);
  ljp_session_free(*session);
  *session = NULL;
  return status ? output_failed(output, status, error, why) : LJP_OK;
}

enum ljp_status ljp_output_lost(const struct ljp_output *output,
                                uint64_t events, struct ljp_failure *why)
{
  if (!output->ljm || !events)
    return LJP_OK;
  return ljp_fail(why, LJP_ERR_IO, ENOBUFS,
                  "%s: %llu events are missing from the file, which cannot say "
                  "so itself: the output was too slow",
                  output->path ? output->path : "output",
                  (unsigned long long)events);
}

void ljp_output_wake_writer(struct ljp_profiler_lock *lock, const bool *running,
                            struct ljp_session *const *session)
{
  if (!ljp_profiler_trylock(lock))
    return;
  if (*running)
    ljp_session_wake(*session);
  ljp_profiler_unlock(lock);
}

void ljp_output_ended(struct ljp_output *output, struct ljp_profiler_lock *lock)
{
  lock->on_stop = output->on_stop;
  lock->on_stop_ctx = output->on_stop_ctx;
  lock->left = output->left;
  output->on_stop = NULL;
}
