/*
** See sink.h. A regular file is a new one (newfile.h). If the name is of
** something else (a device, a FIFO), it is opened as it is.
*/
#include "src/writer/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/store_lock.h"
#include "src/writer/sink_store.h"

enum { PIPE_CHUNK = 4096, POLL_MS = 50, SEGMENT_NAME_EXTRA = 64 };

static enum ljp_status sink_fail(struct ljp_sink *sink, int error)
{
  sink->error = error ? error : EIO;
  return error == ENOMEM ? LJP_ERR_MEM : LJP_ERR_IO;
}

/* The host may change its directory before the next file segment is opened. */
static char *sink_absolute_path(const char *path)
{
  /* On the heap: a child of fork() may have little stack. */
  char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
  if (!cwd)
    return strdup(path);
  size_t room = strlen(cwd) + strlen(path) + 2;
  char *joined = malloc(room);
  if (joined)
    snprintf(joined, room, "%s/%s", cwd, path);
  free(cwd);
  return joined;
}

static void sink_init_files(struct ljp_sink *sink)
{
  sink->file.open.fd = sink->before.open.fd = sink->old.fd = -1;
  ljp_newfile_init(&sink->file.new);
  ljp_newfile_init(&sink->before.new);
}

enum ljp_status ljp_sink_init_file(struct ljp_sink *sink, const char *path,
                                   bool sync)
{
  memset(sink, 0, sizeof *sink);
  sink->kind = LJP_SINK_FILE;
  struct ljp_target found;
  sink_init_files(sink);
  sink->sync = sync;
  /* A link stays a link: the file that it names is replaced. If there is no
  ** such place, the start says so. */
  if (ljp_target_find(&found, path) == 0) {
    close(found.dir);
    sink->path = found.path;
  } else {
    sink->path = sink_absolute_path(path);
  }
  return sink->path ? LJP_OK : sink_fail(sink, ENOMEM);
}

bool ljp_sink_is_local_file(const struct ljp_sink *sink)
{
  /* ext2 to 4, tmpfs, XFS, Btrfs, overlayfs, ZFS, F2FS, ramfs. */
  static const uint32_t local_types[] = {0xef53,     0x01021994, 0x58465342,
                                         0x9123683e, 0x794c7630, 0x2fc12fc1,
                                         0xf2f52010, 0x858458f6};
  struct stat st;
  struct statfs fs;
  bool local = false;
  if (sink->kind != LJP_SINK_FILE || sink->sync)
    return false;
  bool there = stat(sink->path, &st) == 0;
  if (there && !S_ISREG(st.st_mode))
    return false;
  char *folder = ljp_sink_folder(sink);
  if (folder && statfs(folder, &fs) == 0)
    for (size_t i = 0; i < sizeof local_types / sizeof *local_types; i++)
      local |= (uint32_t)fs.f_type == local_types[i];
  free(folder);
  return local;
}

void ljp_sink_init_fd(struct ljp_sink *sink, int fd,
                      const struct ljp_sink_next *next)
{
  memset(sink, 0, sizeof *sink);
  sink->kind = LJP_SINK_FD;
  if (next)
    sink->next = *next;
  sink_init_files(sink);
  sink->file.open.fd = fd;
}

void ljp_sink_init_callback(struct ljp_sink *sink, ljp_sink_callback callback,
                            void *ctx)
{
  memset(sink, 0, sizeof *sink);
  sink->kind = LJP_SINK_CALLBACK;
  sink_init_files(sink);
  sink->callback = callback;
  sink->ctx = ctx;
}

static char *sink_segment_path(struct ljp_sink *sink, uint32_t segment)
{
  if (sink->service)
    return ljp_sink_store_path(sink);
  size_t room = strlen(sink->path) + SEGMENT_NAME_EXTRA;
  char *name = malloc(room);
  if (name && segment)
    snprintf(name, room, "%s.s%u", sink->path, segment);
  else if (name)
    snprintf(name, room, "%s", sink->path);
  errno = ENOMEM;
  return name;
}

static enum ljp_status sink_open_file(struct ljp_sink *sink)
{
  struct ljp_target found;
  struct ljp_sink_file *file = &sink->file;
  char *path = sink_segment_path(sink, file->segment);
  if (!path)
    return sink_fail(sink, errno);
  int error = ljp_target_find(&found, path);
  free(path);
  if (error)
    return sink_fail(sink, error);
  file->regular = !found.there || S_ISREG(found.st.st_mode);
  if (file->regular) {
    error = ljp_newfile_open(&file->new, &found, &file->open.fd);
  } else {
    /* Without O_NONBLOCK, open() of a FIFO would wait for a reader. */
    int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    file->open.fd = ljp_fd_not_standard(openat(
        found.dir, found.name, flags | (found.kernel_link ? 0 : O_NOFOLLOW)));
    error = file->open.fd < 0 ? errno : 0;
    close(found.dir);
  }
  free(found.path);
  if (!error && sink->service && (error = ljp_store_lock(file->open.fd))) {
    close(file->open.fd);
    file->open.fd = -1;
    ljp_newfile_discard(&file->new);
  }
  return error ? sink_fail(sink, error) : LJP_OK;
}

static enum ljp_status sink_open_segment(struct ljp_sink *sink,
                                         uint32_t segment)
{
  enum ljp_status status = LJP_OK;
  sink->file.segment = segment;
  sink->file.whole_bytes = 0;
  if (sink->kind == LJP_SINK_FILE)
    status = sink_open_file(sink);
  else if (segment)
    sink->file.open.fd = sink->next.open(sink->next.ctx, segment);
  if (!status &&
      !ljp_open_file_note(&sink->file.open, sink->kind == LJP_SINK_FILE))
    status = sink_fail(sink, errno);
  return status;
}

enum ljp_status ljp_sink_open(struct ljp_sink *sink)
{
  if (sink->kind == LJP_SINK_CALLBACK)
    return LJP_OK;
  ljp_assert(!ljp_sink_hidden(sink));
  ljp_assert(sink->kind != LJP_SINK_FILE || sink->file.open.fd < 0);
  return sink_open_segment(sink, 0);
}

bool ljp_sink_hidden(const struct ljp_sink *sink)
{
  return ljp_newfile_hidden(&sink->file.new);
}

/* Where a sandbox does not permit the mark: the offset, which lives in the open
** file description, too. */
static bool sink_offset_is_ours(const struct ljp_sink *sink)
{
  const struct ljp_sink_file *file = &sink->file;
  return file->open.marked || !file->regular ||
         lseek(file->open.fd, 0, SEEK_CUR) == (off_t)file->whole_bytes;
}

static enum ljp_status sink_check_ours(struct ljp_sink *sink)
{
  int error = ljp_open_file_check(&sink->file.open);
  if (error)
    return sink_fail(sink, error);
  return sink_offset_is_ours(sink) ? LJP_OK : sink_fail(sink, EBADF);
}

static enum ljp_status sink_write_fd(struct ljp_sink *sink, const uint8_t *data,
                                     size_t len, size_t *done)
{
  for (*done = 0; *done < len;) {
    size_t chunk = len - *done;
    if (!sink->file.regular) {
      /* If a pipe's reader is slow, wait, but not beyond the deadline. */
      struct pollfd poll_fd = {.fd = sink->file.open.fd, .events = POLLOUT};
      int ready = poll(&poll_fd, 1, POLL_MS);
      /* Relaxed: a plain value that another thread sets. */
      uint64_t deadline =
          atomic_load_explicit(&sink->deadline_ns, memory_order_relaxed);
      if (ready == 0 || (ready < 0 && errno == EINTR)) {
        if (deadline && ljp_clock_ns() > deadline)
          return sink_fail(sink, ETIMEDOUT);
        continue;
      }
      if (chunk > PIPE_CHUNK)
        chunk = PIPE_CHUNK;
    }
    ssize_t n = write(sink->file.open.fd, data + *done, chunk);
    if (n > 0)
      *done += (size_t)n;
    else if (n == 0)
      return sink_fail(sink, EIO);
    else if (errno != EINTR && errno != EAGAIN)
      return sink_fail(sink, errno);
  }
  return LJP_OK;
}

static enum ljp_status sink_write_callback(struct ljp_sink *sink,
                                           const uint8_t *data, size_t len)
{
  if (sink->ended)
    return sink_fail(sink, ECANCELED);
  while (len) {
    const void *at = data;
    errno = 0;
    size_t n = sink->callback(&at, len, sink->ctx);
    if (!n) /* The callback may have set errno. */
      return sink_fail(sink, errno ? errno : EIO);
    if (n > len)
      return sink_fail(sink, EIO);
    data += n;
    len -= n;
    if (!at) {
      sink->ended = true;
      return sink_fail(sink, ECANCELED);
    }
  }
  return LJP_OK;
}

enum ljp_status ljp_sink_show(struct ljp_sink *sink)
{
  struct ljp_open_file *old = sink->keep_old ? &sink->old : NULL;
  sink->stays_hidden = false;
  if (!ljp_sink_hidden(sink))
    return LJP_OK;
  int error = sink->service
                  ? ljp_sink_store_show(sink)
                  : ljp_newfile_show(&sink->file.new, sink->file.open.fd, true,
                                     old ? &old->fd : NULL);
  if (error)
    return sink_fail(sink, error);
  if (old && old->fd >= 0)
    ljp_open_file_note(old, false);
  /* It may be a copy. */
  ljp_open_file_note(&sink->file.open, true);
  return LJP_OK;
}

void ljp_sink_keep_old(struct ljp_sink *sink)
{
  sink->keep_old = true;
}

void ljp_sink_release_old(struct ljp_sink *sink)
{
  sink->keep_old = false;
  ljp_open_file_close(&sink->old);
}

enum ljp_status ljp_sink_write(struct ljp_sink *sink, const uint8_t *block,
                               size_t len)
{
  enum ljp_status status;
  ljp_assert(len > 0);
  ljp_assert(!ljp_sink_hidden(sink) || !sink->file.whole_bytes ||
             sink->stays_hidden);
  if (sink->kind == LJP_SINK_CALLBACK) {
    status = sink_write_callback(sink, block, len);
  } else {
    size_t done = 0;
    status = sink_check_ours(sink);
    if (!status)
      status = sink_write_fd(sink, block, len, &done);
    if (!status && sink->sync && fdatasync(sink->file.open.fd) &&
        errno != EINVAL && errno != EROFS)
      status = sink_fail(sink, errno);
    if (status && done && sink->file.regular) {
      /* If cutting fails, a reader still stops at the last whole block. */
      (void)!ftruncate(sink->file.open.fd, (off_t)sink->file.whole_bytes);
      lseek(sink->file.open.fd, (off_t)sink->file.whole_bytes, SEEK_SET);
    }
    if (!status && !sink->stays_hidden)
      status = ljp_sink_show(sink);
  }
  if (!status)
    sink->file.whole_bytes += len;
  return status;
}

static enum ljp_status sink_close_file(struct ljp_sink *sink)
{
  enum ljp_status status = LJP_OK;
  if (sink->kind == LJP_SINK_FILE && sink->file.open.fd >= 0) {
    /* If the number now belongs to another file, we must not close it. */
    int saved = sink->error;
    if (sink_check_ours(sink) == LJP_OK) {
      if (close(sink->file.open.fd) && errno != EINTR)
        status = sink_fail(sink, errno);
    }
    if (!status)
      sink->error = saved;
    sink->file.open.fd = -1;
  }
  ljp_newfile_discard(&sink->file.new);
  return status;
}

enum ljp_status ljp_sink_close(struct ljp_sink *sink)
{
  if (sink->before.open.fd >= 0)
    ljp_sink_turn_back(sink);
  return sink_close_file(sink);
}

void ljp_sink_swap(struct ljp_sink *sink)
{
  struct ljp_sink_file file = sink->file;
  sink->file = sink->before;
  sink->before = file;
}

bool ljp_sink_ready(const struct ljp_sink *sink)
{
  return sink->kind == LJP_SINK_FILE ||
         (sink->next.open &&
          sink->next.open(sink->next.ctx, sink->file.segment + 1) >= 0);
}

enum ljp_status ljp_sink_turn(struct ljp_sink *sink)
{
  ljp_assert((sink->kind == LJP_SINK_FILE || sink->next.open) &&
             sink->before.open.fd < 0);
  ljp_assert(!ljp_sink_hidden(sink));
  ljp_sink_swap(sink);
  sink->stays_hidden = true;
  enum ljp_status status = sink_open_segment(sink, sink->before.segment + 1);
  if (status)
    ljp_sink_turn_back(sink);
  return status;
}

void ljp_sink_turn_back(struct ljp_sink *sink)
{
  int fd = sink->file.open.fd;
  /* It is still there for the next attempt. */
  if (sink->kind == LJP_SINK_FD && fd >= 0 && sink_check_ours(sink) == LJP_OK &&
      ftruncate(fd, 0) == 0)
    lseek(fd, 0, SEEK_SET);
  sink_close_file(sink);
  sink->file.open.fd = -1; /* else it would be turned back again at the end */
  sink->stays_hidden = false;
  ljp_sink_swap(sink);
}

enum ljp_status ljp_sink_turn_end(struct ljp_sink *sink)
{
  ljp_assert(!ljp_sink_hidden(sink) && sink->before.open.fd >= 0);
  ljp_sink_swap(sink);
  enum ljp_status status = sink_close_file(sink);
  sink->file.open.fd = -1;
  ljp_sink_swap(sink);
  if (sink->kind == LJP_SINK_FD)
    sink->next.begun(sink->next.ctx, sink->file.segment);
  return status;
}

void ljp_sink_remove(struct ljp_sink *sink, uint32_t segment)
{
  char *name = sink->kind == LJP_SINK_FILE && !sink->service
                   ? sink_segment_path(sink, segment)
                   : NULL;
  struct stat st;
  if (name && !stat(name, &st) && S_ISREG(st.st_mode))
    unlink(name);
  free(name);
}

void ljp_sink_abandon(struct ljp_sink *sink)
{
  ljp_sink_release_old(sink);
  /* The offset is shared with the parent, who goes on writing. */
  if (sink->kind == LJP_SINK_FILE) {
    ljp_open_file_close(&sink->file.open);
    ljp_open_file_close(&sink->before.open);
  }
  sink->file.open.fd = sink->before.open.fd = -1;
  /* The writer's thread may have been freeing the names. */
  ljp_open_file_close(&sink->file.new.folder);
}

void ljp_sink_fini(struct ljp_sink *sink)
{
  ljp_sink_release_old(sink);
  ljp_sink_close(sink);
  free(sink->path);
  sink->path = NULL;
}
