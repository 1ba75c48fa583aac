/*
** Open files: tells whether a descriptor still belongs to the file that we
** opened with it. The host may close the descriptor and open another file,
** which gets the same descriptor number, and even the inode number of our file
** if that was removed.
**
** So we set a flag on the open file description, which each open() makes anew:
** as the signal for asynchronous input and output we choose SIGKILL. We never
** ask for that signal, and no program chooses SIGKILL for it. The flag works on
** every file system and lives as long as the description. Never set it on a
** descriptor of the host.
**
** No descriptor that stays open has the number 0, 1 or 2. Where the host has
** closed its standard streams, a new descriptor would get such a number, and
** what the host prints would go into our file.
*/
#ifndef LJP_OPEN_FILE_H
#define LJP_OPEN_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct ljp_open_file {
  int fd; /* -1: none. */
  dev_t dev;
  ino_t ino;
  bool marked;
};

/* Takes the result of open() or the like. Returns it, or a copy with a higher
** number in its place; -1: errno says why. */
static inline int ljp_fd_not_standard(int fd)
{
  if (fd < 0 || fd > STDERR_FILENO)
    return fd;
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int error = errno;
  close(fd);
  errno = error;
  return copy;
}

static inline bool ljp_fd_marked(int fd)
{
  return fcntl(fd, F_GETSIG) == SIGKILL;
}

/* False: a sandbox does not permit it. */
static inline bool ljp_fd_mark(int fd)
{
  return fcntl(fd, F_SETSIG, SIGKILL) == 0 && ljp_fd_marked(fd);
}

/* Notes which file file->fd is. mark: it was opened by us, and not as O_PATH. */
static inline bool ljp_open_file_note(struct ljp_open_file *file, bool mark)
{
  struct stat st;
  if (fstat(file->fd, &st))
    return false;
  file->dev = st.st_dev;
  file->ino = st.st_ino;
  file->marked = mark && ljp_fd_mark(file->fd);
  return true;
}

/* Returns 0, or an errno if the descriptor is not that file any more. */
static inline int ljp_open_file_check(const struct ljp_open_file *file)
{
  struct stat st;
  if (fstat(file->fd, &st))
    return errno;
  return st.st_dev == file->dev && st.st_ino == file->ino &&
                 (!file->marked || ljp_fd_marked(file->fd))
             ? 0
             : EBADF;
}

/* Closes the descriptor if it is still ours. */
static inline void ljp_open_file_close(struct ljp_open_file *file)
{
  if (file->fd >= 0 && ljp_open_file_check(file) == 0)
    close(file->fd);
  file->fd = -1;
}

#endif
