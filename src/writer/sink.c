/*
** See sink.h. A file is created as NAME.ljp-PID-n in the folder of NAME, gets
** its first blocks there, and is then renamed to NAME. The folder is held open
** from the one to the other (target.h). If NAME is not a regular
** file (a device, a FIFO), it is opened as it is.
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
#include "src/base/fd_mark.h"
#include "src/writer/target.h"

enum { PIPE_CHUNK = 4096, POLL_MS = 50, NAME_EXTRA = 64 };

static enum ljp_status sink_fail(struct ljp_sink *sink, int error)
{
  sink->error = error ? error : EIO;
  return error == ENOMEM ? LJP_ERR_MEM : LJP_ERR_IO;
}

/* The host may change its directory before the next file segment is opened. */
static char *sink_absolute_path(const char *path)
{
  char cwd[4096];
  if (path[0] == '/' || !getcwd(cwd, sizeof cwd))
    return strdup(path);
  size_t room = strlen(cwd) + strlen(path) + 2;
  char *joined = malloc(room);
  if (joined)
    snprintf(joined, room, "%s/%s", cwd, path);
  return joined;
}

enum ljp_status ljp_sink_init_file(struct ljp_sink *sink, const char *path,
                                   bool sync)
{
  memset(sink, 0, sizeof *sink);
  sink->kind = LJP_SINK_FILE;
  struct ljp_target found;
  sink->file.fd = sink->old.fd = sink->folder.fd = -1;
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
  char *folder = strdup(sink->path), *slash = folder;
  if (folder)
    slash = strrchr(folder, '/');
  if (slash)
    slash[slash == folder] = '\0';
  if (slash && statfs(folder, &fs) == 0)
    for (size_t i = 0; i < sizeof local_types / sizeof *local_types; i++)
      local |= (uint32_t)fs.f_type == local_types[i];
  free(folder);
  return local;
}

void ljp_sink_init_fd(struct ljp_sink *sink, int fd)
{
  memset(sink, 0, sizeof *sink);
  sink->kind = LJP_SINK_FD;
  sink->file.fd = fd;
  sink->old.fd = sink->folder.fd = -1;
}

void ljp_sink_init_callback(struct ljp_sink *sink, ljp_sink_callback callback,
                            void *ctx)
{
  memset(sink, 0, sizeof *sink);
  sink->kind = LJP_SINK_CALLBACK;
  sink->file.fd = sink->old.fd = sink->folder.fd = -1;
  sink->callback = callback;
  sink->ctx = ctx;
}

static char *sink_segment_path(const struct ljp_sink *sink, uint32_t segment)
{
  size_t room = strlen(sink->path) + NAME_EXTRA;
  char *name = malloc(room);
  if (name && segment)
    snprintf(name, room, "%s.s%u", sink->path, segment);
  else if (name)
    snprintf(name, room, "%s", sink->path);
  return name;
}

static bool sink_remember(struct ljp_open_file *file)
{
  struct stat st;
  if (fstat(file->fd, &st))
    return false;
  file->dev = st.st_dev;
  file->ino = st.st_ino;
  file->marked = false;
  return true;
}

/* False if the host has closed our descriptor, even if it has opened something
** else by the same number. */
static bool sink_is_same(const struct ljp_open_file *file, int *error)
{
  struct stat st;
  if (fstat(file->fd, &st)) {
    *error = errno;
    return false;
  }
  *error = EBADF;
  return st.st_dev == file->dev && st.st_ino == file->ino &&
         (!file->marked || ljp_fd_marked(file->fd));
}

/* Forgets the temporary name and closes the folder. */
static void sink_forget_names(struct ljp_sink *sink)
{
  int error;
  if (sink->folder.fd >= 0 && sink_is_same(&sink->folder, &error))
    close(sink->folder.fd);
  sink->folder.fd = -1;
  free(sink->temporary);
  free(sink->name);
  sink->temporary = sink->name = NULL;
}

static enum ljp_status sink_open_temporary(struct ljp_sink *sink,
                                           const struct ljp_target *found)
{
  size_t room = strlen(found->name) + NAME_EXTRA;
  sink->temporary = malloc(room);
  sink->name = strdup(found->name);
  if (!sink->temporary || !sink->name)
    return sink_fail(sink, ENOMEM);
  for (int n = 0; n < 1000; n++) {
    snprintf(sink->temporary, room, "%s.ljp-%ld-%d", found->name,
             (long)getpid(), n);
    sink->file.fd = openat(found->dir, sink->temporary,
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                           found->there ? 0600 : 0666);
    if (sink->file.fd >= 0)
      return LJP_OK;
    if (errno != EEXIST)
      break;
  }
  return sink_fail(sink, errno);
}

static enum ljp_status sink_open_file(struct ljp_sink *sink, uint32_t segment)
{
  struct ljp_target found;
  enum ljp_status status = LJP_OK;
  char *path = sink_segment_path(sink, segment);
  if (!path)
    return sink_fail(sink, ENOMEM);
  int error = ljp_target_find(&found, path);
  free(path);
  if (error)
    return sink_fail(sink, error);
  sink->folder.fd = found.dir;
  sink->regular = !found.there || S_ISREG(found.st.st_mode);
  if (!sink_remember(&sink->folder)) {
    status = sink_fail(sink, errno);
  } else if (sink->regular) {
    status = sink_open_temporary(sink, &found);
  } else {
    /* Without O_NONBLOCK, open() of a FIFO would wait for a reader. */
    sink->file.fd = openat(found.dir, found.name,
                           O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                               (found.kernel_link ? 0 : O_NOFOLLOW));
    if (sink->file.fd < 0)
      status = sink_fail(sink, errno);
  }
  if (status || !sink->regular)
    sink_forget_names(sink);
  free(found.path);
  return status;
}

enum ljp_status ljp_sink_open(struct ljp_sink *sink, uint32_t segment)
{
  enum ljp_status status = LJP_OK;
  ljp_assert(!sink->temporary);
  ljp_assert(sink->kind != LJP_SINK_FILE || sink->file.fd < 0);
  sink->segment = segment;
  sink->whole_bytes = 0;
  if (sink->kind == LJP_SINK_CALLBACK)
    return LJP_OK;
  if (sink->kind == LJP_SINK_FILE)
    status = sink_open_file(sink, segment);
  if (!status && !sink_remember(&sink->file))
    status = sink_fail(sink, errno);
  if (!status && sink->kind == LJP_SINK_FILE)
    sink->file.marked = ljp_fd_mark(sink->file.fd);
  return status;
}

/* Where a sandbox does not permit the mark: the offset, which lives in the open
** file description, too. */
static bool sink_offset_is_ours(const struct ljp_sink *sink)
{
  return sink->file.marked || !sink->regular ||
         lseek(sink->file.fd, 0, SEEK_CUR) == (off_t)sink->whole_bytes;
}

static enum ljp_status sink_check_ours(struct ljp_sink *sink)
{
  int error;
  if (!sink_is_same(&sink->file, &error))
    return sink_fail(sink, error);
  return sink_offset_is_ours(sink) ? LJP_OK : sink_fail(sink, EBADF);
}

static enum ljp_status sink_write_fd(struct ljp_sink *sink, const uint8_t *data,
                                     size_t len, size_t *done)
{
  for (*done = 0; *done < len;) {
    size_t chunk = len - *done;
    if (!sink->regular) {
      /* If a pipe's reader is slow, wait, but not beyond the deadline. */
      struct pollfd poll_fd = {.fd = sink->file.fd, .events = POLLOUT};
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
    ssize_t n = write(sink->file.fd, data + *done, chunk);
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

/* The file takes over the mode and the owner of the one that it replaces, as if
** it had been written into. If it may not have that owner or group, the rights
** that the mode gives to the old group are not given to another one. In a sticky
** folder anybody may have made the old file, so it can only narrow the mode. */
static void sink_inherit(struct ljp_sink *sink, const struct stat *old)
{
  struct stat st;
  mode_t mode = old->st_mode & 0777;
  if (fstat(sink->file.fd, &st))
    return;
  if (!ljp_target_trusts(sink->folder.fd, old)) {
    fchmod(sink->file.fd, mode & 0644);
    return;
  }
  if (st.st_uid != old->st_uid &&
      fchown(sink->file.fd, old->st_uid, (gid_t)-1) == 0)
    st.st_uid = old->st_uid;
  if (st.st_gid != old->st_gid &&
      fchown(sink->file.fd, (uid_t)-1, old->st_gid) == 0)
    st.st_gid = old->st_gid;
  if (st.st_gid != old->st_gid)
    mode &= 0707 | (mode & 07) << 3;
  fchmod(sink->file.fd, mode);
}

enum ljp_status ljp_sink_show(struct ljp_sink *sink)
{
  struct stat old;
  int error, folder = sink->folder.fd;
  sink->hold = false;
  if (!sink->temporary)
    return LJP_OK;
  if (!sink_is_same(&sink->folder, &error))
    return sink_fail(sink, error);
  if (fstatat(folder, sink->name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(old.st_mode))
    sink_inherit(sink, &old);
  if (sink->keep_old) {
    sink->old.fd = openat(folder, sink->name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (sink->old.fd >= 0)
      sink_remember(&sink->old);
  }
  if (renameat(folder, sink->temporary, folder, sink->name))
    return sink_fail(sink, errno);
  sink_forget_names(sink);
  return LJP_OK;
}

void ljp_sink_keep_old(struct ljp_sink *sink)
{
  sink->keep_old = true;
}

void ljp_sink_release_old(struct ljp_sink *sink)
{
  int error;
  sink->keep_old = false;
  if (sink->old.fd >= 0 && sink_is_same(&sink->old, &error))
    close(sink->old.fd);
  sink->old.fd = -1;
}

enum ljp_status ljp_sink_write(struct ljp_sink *sink, const uint8_t *block,
                               size_t len)
{
  enum ljp_status status;
  ljp_assert(len > 0);
  /* A file has its temporary name until its first block, or while it is held. */
  ljp_assert(!sink->temporary || !sink->whole_bytes || sink->hold);
  if (sink->kind == LJP_SINK_CALLBACK) {
    status = sink_write_callback(sink, block, len);
  } else {
    size_t done = 0;
    status = sink_check_ours(sink);
    if (!status)
      status = sink_write_fd(sink, block, len, &done);
    if (!status && sink->sync && fdatasync(sink->file.fd) && errno != EINVAL &&
        errno != EROFS)
      status = sink_fail(sink, errno);
    if (status && done && sink->regular) {
      /* If cutting fails, a reader still stops at the last whole block. */
      (void)!ftruncate(sink->file.fd, (off_t)sink->whole_bytes);
      lseek(sink->file.fd, (off_t)sink->whole_bytes, SEEK_SET);
    }
    if (!status && !sink->hold)
      status = ljp_sink_show(sink);
  }
  if (!status)
    sink->whole_bytes += len;
  return status;
}

enum ljp_status ljp_sink_close(struct ljp_sink *sink)
{
  enum ljp_status status = LJP_OK;
  if (sink->kind == LJP_SINK_FILE && sink->file.fd >= 0) {
    /* If the number now belongs to another file, we must not close it. */
    int saved = sink->error;
    if (sink_check_ours(sink) == LJP_OK) {
      if (close(sink->file.fd) && errno != EINTR)
        status = sink_fail(sink, errno);
    }
    if (!status)
      sink->error = saved;
    sink->file.fd = -1;
  }
  int error;
  if (sink->temporary && sink_is_same(&sink->folder, &error))
    unlinkat(sink->folder.fd, sink->temporary, 0);
  sink_forget_names(sink);
  return status;
}

void ljp_sink_remove(struct ljp_sink *sink, uint32_t segment)
{
  char *name = sink_segment_path(sink, segment);
  if (name && sink->regular)
    unlink(name);
  free(name);
}

void ljp_sink_abandon(struct ljp_sink *sink)
{
  int error;
  ljp_sink_release_old(sink);
  /* The offset is shared with the parent, who goes on writing. */
  if (sink->kind == LJP_SINK_FILE && sink->file.fd >= 0 &&
      sink_is_same(&sink->file, &error))
    close(sink->file.fd);
  sink->file.fd = -1;
  sink_forget_names(sink);
}

void ljp_sink_fini(struct ljp_sink *sink)
{
  ljp_sink_release_old(sink);
  ljp_sink_close(sink);
  free(sink->path);
  sink->path = NULL;
}
