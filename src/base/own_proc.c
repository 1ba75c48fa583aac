/*
** See own_proc.h.
*/
#include "src/base/own_proc.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LENT = 100, PATH_BYTES = 64 };

/* Has a helper of this process ever got one? */
static atomic_bool own_proc_lent;

static bool own_proc_is_proc(int fd)
{
  struct statfs fs;
  return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* The path, and the folder in which it begins. */
static int own_proc_at(const char *name, char path[PATH_BYTES])
{
  bool lent = atomic_load(&own_proc_lent) && own_proc_is_proc(LENT);
  snprintf(path, PATH_BYTES, "%sself/%s", lent ? "" : "/proc/", name);
  return lent ? LENT : AT_FDCWD;
}

int ljp_own_proc_open(const char *name, int flags)
{
  char path[PATH_BYTES];
  int folder = own_proc_at(name, path);
  return openat(folder, path, flags);
}

ssize_t ljp_own_proc_link(const char *name, char *out, size_t room)
{
  char path[PATH_BYTES];
  int folder = own_proc_at(name, path);
  return readlinkat(folder, path, out, room);
}

int ljp_own_proc_stat(const char *name, struct stat *st)
{
  char path[PATH_BYTES];
  int folder = own_proc_at(name, path);
  return fstatat(folder, path, st, 0);
}

/* "self" leads to this process's number in the namespace of that file system. */
static bool own_proc_fits(int fd)
{
  char self[24];
  ssize_t n = readlinkat(fd, "self", self, sizeof self - 1);
  self[n > 0 ? n : 0] = '\0';
  return own_proc_is_proc(fd) && atol(self) == (long)getpid();
}

void ljp_own_proc_lend(int fd)
{
  int copy = own_proc_fits(fd) ? fcntl(fd, F_DUPFD_CLOEXEC, LENT) : -1;
  if (copy == LENT)
    atomic_store(&own_proc_lent, true);
  else if (copy >= 0)
    close(copy);
}
