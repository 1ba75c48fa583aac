/*
** Store locks: tells whether a file segment is being written. Whoever writes one
** holds a lock on its open file description (flock()), which the kernel drops
** when the last descriptor is closed, whatever ends the process. Unlike a look
** at /proc, that holds across users and PID namespaces.
**
** A file without a lock is never written again.
*/
#ifndef LJP_STORE_LOCK_H
#define LJP_STORE_LOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* For the writer, as long as the descriptor is open. Returns 0 or an errno: the
** file system has no locks, or (EWOULDBLOCK) somebody looks just now. */
static inline int ljp_store_lock(int fd)
{
  return flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
}

/* Is the open file being written? On a file system without locks this is not
** known: true. */
static inline bool ljp_store_is_locked(int fd)
{
  if (flock(fd, LOCK_SH | LOCK_NB))
    return true;
  flock(fd, LOCK_UN);
  return false;
}

/* The same by name. *st: of the file. True also if it cannot be opened; then
** *error says why, else it is 0. */
static inline bool ljp_store_is_written(int dir, const char *name,
                                        struct stat *st, int *error)
{
  int fd = openat(dir, name,
                  O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
  *error = fd < 0 && errno != ENOENT && errno != ELOOP ? errno : 0;
  if (fd < 0)
    return *error != 0;
  bool written = fstat(fd, st) || !S_ISREG(st->st_mode);
  if (!written)
    written = ljp_store_is_locked(fd);
  close(fd);
  return written;
}

#endif
