/*
** See newfile.h.
*/
#include "src/base/newfile.h"

#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { NAME_EXTRA = 64, MAX_NAMES = 1000, COPY_BYTES = 65536 };

/* Makes an exclusive file with a name (*fd), or a name for the file *fd.
** Returns errno. */
typedef int newfile_maker(struct ljp_newfile *new, const char *name,
                          mode_t mode, int *fd);

/* Takes the first temporary name that is free. */
static int newfile_take_name(struct ljp_newfile *new, newfile_maker *make,
                             mode_t mode, int *fd)
{
  size_t room = strlen(new->name) + NAME_EXTRA;
  char *name = malloc(room);
  if (!name)
    return ENOMEM;
  int error = EEXIST;
  for (int n = 0; n < MAX_NAMES && error == EEXIST; n++) {
    snprintf(name, room, "%s.ljp-%ld-%d", new->name, (long)getpid(), n);
    error = make(new, name, mode, fd);
  }
  if (error)
    free(name);
  else
    new->temporary = name;
  return error;
}

static int newfile_make(struct ljp_newfile *new, const char *name, mode_t mode,
                        int *fd)
{
  *fd = openat(new->folder.fd, name,
               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (*fd < 0)
    return errno;
  if ((*fd = ljp_fd_not_standard(*fd)) >= 0)
    return 0;
  int error = errno;
  unlinkat(new->folder.fd, name, 0);
  return error;
}

static int newfile_open_named(struct ljp_newfile *new, mode_t mode, int *fd)
{
  return newfile_take_name(new, newfile_make, mode, fd);
}

static void newfile_link_path(char path[NAME_EXTRA], int fd)
{
  snprintf(path, NAME_EXTRA, "/proc/thread-self/fd/%d", fd);
}

/* -1: this file system has no such files, or they could not get a name. */
static int newfile_open_nameless(const struct ljp_newfile *new, mode_t mode)
{
  char path[NAME_EXTRA];
  int fd = ljp_fd_not_standard(
      openat(new->folder.fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
  if (fd < 0)
    return -1;
  newfile_link_path(path, fd);
  if (access(path, F_OK) == 0)
    return fd;
  close(fd);
  return -1;
}

int ljp_newfile_open(struct ljp_newfile *new, const struct ljp_target *found,
                     int *fd)
{
  mode_t mode = found->there ? 0600 : 0666;
  ljp_newfile_init(new);
  new->folder.fd = found->dir;
  new->name = strdup(found->name);
  int error = new->name ? 0 : ENOMEM;
  if (!error && !ljp_open_file_note(&new->folder, false))
    error = errno;
  if (!error && (*fd = newfile_open_nameless(new, mode)) < 0)
    error = newfile_open_named(new, mode, fd);
  if (error) {
    close(found->dir);
    new->folder.fd = -1;
    ljp_newfile_forget(new);
  }
  return error;
}

/* The file takes over the mode and the owner of the one that it replaces, as if
** it had been written into. If it may not have that owner or group, the rights
** that the mode gives to the old group are not given to another one. In a
** sticky folder anybody may have made the old file, so it can only narrow the
** mode. */
static void newfile_inherit(const struct ljp_newfile *new, int fd)
{
  struct stat st, old;
  if (fstat(fd, &st) ||
      fstatat(new->folder.fd, new->name, &old, AT_SYMLINK_NOFOLLOW) ||
      !S_ISREG(old.st_mode))
    return;
  mode_t mode = old.st_mode & 0777;
  if (!ljp_target_trusts(new->folder.fd, &old)) {
    fchmod(fd, mode & 0644);
    return;
  }
  if (st.st_uid != old.st_uid && fchown(fd, old.st_uid, (gid_t)-1) == 0)
    st.st_uid = old.st_uid;
  if (st.st_gid != old.st_gid && fchown(fd, (uid_t)-1, old.st_gid) == 0)
    st.st_gid = old.st_gid;
  if (st.st_gid != old.st_gid)
    mode &= 0707 | (mode & 07) << 3;
  fchmod(fd, mode);
}

static int newfile_link(const struct ljp_newfile *new, int fd, const char *name)
{
  char path[NAME_EXTRA];
  newfile_link_path(path, fd);
  return linkat(AT_FDCWD, path, new->folder.fd, name, AT_SYMLINK_FOLLOW) ? errno
                                                                         : 0;
}

static int newfile_make_link(struct ljp_newfile *new, const char *name,
                             mode_t mode, int *fd)
{
  (void)mode;
  return newfile_link(new, *fd, name);
}

/* Links the nameless file to a temporary name. */
static int newfile_link_temporary(struct ljp_newfile *new, int fd)
{
  return newfile_take_name(new, newfile_make_link, 0, &fd);
}

int ljp_newfile_link(struct ljp_newfile *new, int fd)
{
  int error = ljp_open_file_check(&new->folder);
  return error || new->temporary ? error : newfile_link_temporary(new, fd);
}

static int newfile_copy_bytes(int source, int to)
{
  char path[NAME_EXTRA], *bytes = malloc(COPY_BYTES);
  if (!bytes)
    return ENOMEM;
  newfile_link_path(path, source); /* The source cannot be read as it is. */
  int from = open(path, O_RDONLY | O_CLOEXEC);
  int error = from < 0 ? errno : 0;
  off_t at = 0;
  ssize_t n, put = 0;
  while (!error && (n = pread(from, bytes, COPY_BYTES, at)) != 0) {
    if (n > 0)
      put = pwrite(to, bytes, (size_t)n, at);
    if ((n < 0 || put < 0) && errno != EINTR)
      error = errno;
    else if (n > 0 && put > 0)
      at += put;
  }
  free(bytes);
  if (from >= 0)
    close(from);
  if (!error && lseek(to, at, SEEK_SET) != at)
    error = errno;
  return error;
}

/* If links are forbidden (a sandbox): a copy with a temporary name takes the
** number fd. */
static int newfile_copy(struct ljp_newfile *new, int fd)
{
  struct stat st;
  int copy;
  if (fstat(fd, &st))
    return errno;
  int error = newfile_open_named(new, st.st_mode & 07777, &copy);
  if (error)
    return error;
  error = newfile_copy_bytes(fd, copy);
  if (!error && ljp_fd_marked(fd))
    ljp_fd_mark(copy);
  if (!error && dup3(copy, fd, O_CLOEXEC) < 0)
    error = errno;
  close(copy);
  if (error) {
    unlinkat(new->folder.fd, new->temporary, 0);
    free(new->temporary);
    new->temporary = NULL;
  }
  return error;
}

static bool newfile_links_forbidden(int error)
{
  return error == EPERM || error == EACCES || error == ENOSYS ||
         error == ENOENT || error == EOPNOTSUPP || error == EXDEV;
}

/* The old file is replaced in one step, by rename(). */
static int newfile_rename(const struct ljp_newfile *new, bool replace)
{
  int folder = new->folder.fd;
  struct stat st;
  if (!replace) {
    if (syscall(SYS_renameat2, folder, new->temporary, folder, new->name,
                RENAME_NOREPLACE) == 0)
      return 0;
    if (errno != EINVAL && errno != ENOSYS)
      return errno;
    if (fstatat(folder, new->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
      return EEXIST;
  }
  return renameat(folder, new->temporary, folder, new->name) ? errno : 0;
}

int ljp_newfile_show(struct ljp_newfile *new, int fd, bool replace, int *old)
{
  int error = ljp_open_file_check(&new->folder);
  bool nameless = !new->temporary;
  if (old)
    *old = -1;
  if (error)
    return error;
  if (replace)
    newfile_inherit(new, fd);
  if (replace && old)
    *old = ljp_fd_not_standard(
        openat(new->folder.fd, new->name, O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (nameless) {
    error = newfile_link(new, fd, new->name);
    if (error == EEXIST && replace)
      error = newfile_link_temporary(new, fd);
    if (newfile_links_forbidden(error))
      error = newfile_copy(new, fd);
  }
  if (!error && new->temporary)
    error = newfile_rename(new, replace);
  if (error && nameless && new->temporary) {
    unlinkat(new->folder.fd, new->temporary, 0);
    free(new->temporary);
    new->temporary = NULL;
  }
  if (!error)
    ljp_newfile_forget(new);
  if (error && old && *old >= 0) {
    close(*old);
    *old = -1;
  }
  return error;
}

void ljp_newfile_discard(struct ljp_newfile *new)
{
  if (new->temporary && ljp_open_file_check(&new->folder) == 0)
    unlinkat(new->folder.fd, new->temporary, 0);
  ljp_newfile_forget(new);
}

void ljp_newfile_forget(struct ljp_newfile *new)
{
  ljp_open_file_close(&new->folder);
  free(new->name);
  free(new->temporary);
  ljp_newfile_init(new);
}
