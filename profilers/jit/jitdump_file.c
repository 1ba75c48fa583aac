/*
** See jitdump_file.h.
**
** A file is ours if this process has created it, or a client has sent it, and it
** is still the same inode. We never write to any other file, even if another file
** has the name or the host has reused the descriptor. If only a part of a record
** could be written, the part is removed, so files end with a whole record.
*/
#include "profilers/jit/jitdump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/open_file.h"

enum { WAITING_BYTES = 64 << 20 /* of a client's file, at most */ };

static bool jit_file_is_ours(const struct ljp_jit_file *f)
{
  struct stat st;
  return f->fd >= 0 && !fstat(f->fd, &st) && S_ISREG(st.st_mode) && f->inode &&
         st.st_ino == f->inode && st.st_dev == f->device &&
         (!f->marked || ljp_fd_marked(f->fd));
}

void ljp_jit_file_close(struct ljp_jit_file *f)
{
  if (jit_file_is_ours(f)) /* the host may have closed it and opened another */
    close(f->fd);
  f->fd = -1;
}

int ljp_jit_file_write(struct ljp_jit_file *f, const void *data, size_t bytes)
{
  struct rlimit limit;
  const char *at = data;
  off_t size = f->size;
  if (!jit_file_is_ours(f))
    return EBADF;
  /* Writing beyond the limit would raise SIGXFSZ in the program. */
  if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
      (rlim_t)size + bytes > limit.rlim_cur)
    return EFBIG;
  while (bytes) {
    ssize_t n = pwrite(f->fd, at, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      int error = n ? errno : EIO;
      return ftruncate(f->fd, f->size) ? errno : error;
    }
    at += n;
    size += n;
    bytes -= (size_t)n;
  }
  f->size = size;
  return 0;
}

int ljp_jit_file_append(struct ljp_jit_file *f, const void *data, size_t bytes)
{
  size_t wanted = f->waiting_bytes + bytes;
  if (!f->joined)
    return ljp_jit_file_write(f, data, bytes);
  if (f->fd < 0 || wanted > WAITING_BYTES)
    return f->fd < 0 ? EBADF : ENOBUFS;
  if (wanted > f->waiting_room) {
    char *room = realloc(f->waiting, wanted * 2);
    if (!room)
      return ENOMEM;
    f->waiting = room;
    f->waiting_room = wanted * 2;
  }
  memcpy(f->waiting + f->waiting_bytes, data, bytes);
  f->waiting_bytes = wanted;
  return 0;
}

/* A client's file. */
enum ljp_status ljp_jit_file_take(struct ljp_jit_file *f, int fd,
                                  struct ljp_failure *why)
{
  struct stat st;
  *f = (struct ljp_jit_file){
      .joined = true, .fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  if (f->fd < 0 || fstat(f->fd, &st) || !S_ISREG(st.st_mode) || st.st_size)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "a file for the jitdump is no plain, empty file");
  f->device = st.st_dev;
  f->inode = st.st_ino;
  f->fresh = true;
  snprintf(f->path, sizeof f->path, "the jitdump");
  return LJP_OK;
}

/* Creates the file, or opens our own from an earlier session. */
enum ljp_status ljp_jit_file_open(struct ljp_jit_file *f,
                                  struct ljp_failure *why)
{
  struct stat st;
  enum { FLAGS = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
  f->fresh = true;
  f->marked = f->joined = false;
  f->fd = ljp_fd_not_standard(open(f->path, FLAGS | O_CREAT | O_EXCL, 0600));
  if (f->fd >= 0) {
    if (fstat(f->fd, &st)) {
      close(f->fd);
      f->fd = -1;
      return ljp_fail(why, LJP_ERR_IO, errno, "%s: %s", f->path,
                      strerror(errno));
    }
    f->device = st.st_dev;
    f->inode = st.st_ino;
    f->size = f->before = 0;
    f->marked = ljp_fd_mark(f->fd);
    return LJP_OK;
  }
  if (errno == EEXIST && f->inode) {
    f->fresh = false;
    f->fd = ljp_fd_not_standard(open(f->path, FLAGS));
    if (jit_file_is_ours(f) && !ftruncate(f->fd, f->size)) {
      f->marked = ljp_fd_mark(f->fd);
      f->before = f->size;
      return LJP_OK;
    }
    if (f->fd >= 0)
      close(f->fd);
    f->fd = -1;
    errno = EEXIST;
  }
  if (errno == EEXIST)
    return ljp_fail(why, LJP_ERR_RUN, EEXIST,
                    "%s exists, and was not made by this process: remove it",
                    f->path);
  return ljp_fail(why, LJP_ERR_IO, errno, "%s: %s", f->path, strerror(errno));
}

/* Removes a file that this session has created; another one gets back its
** size. */
void ljp_jit_file_undo(struct ljp_jit_file *f)
{
  bool ours = jit_file_is_ours(f);
  if (!f->fresh) {
    if (ours && ftruncate(f->fd, f->before) == 0)
      f->size = f->before;
    return;
  }
  if (ours && !f->joined)
    unlink(f->path);
  ljp_jit_file_close(f);
  f->inode = 0;
}

int ljp_jit_file_flush(struct ljp_jit_file *f)
{
  int error = f->waiting_bytes
                  ? ljp_jit_file_write(f, f->waiting, f->waiting_bytes)
                  : 0;
  f->waiting_bytes = 0;
  return error;
}

void ljp_jit_file_forget(struct ljp_jit_file *f)
{
  free(f->waiting);
  f->waiting = NULL;
  f->waiting_bytes = f->waiting_room = 0;
}
