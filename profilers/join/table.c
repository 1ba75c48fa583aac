/*
** See table.h.
*/
#include "profilers/join/table.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { CLOSE_RANGE_OWN = 2 /* CLOSE_RANGE_UNSHARE */, FAR = 512 };

bool ljp_table_own(int keep)
{
  if (syscall(SYS_close_range, (unsigned)(keep + 1), ~0u, CLOSE_RANGE_OWN))
    return false;
  if (keep > 0)
    syscall(SYS_close_range, 0u, (unsigned)keep - 1, 0);
  return true;
}

int ljp_table_move(int fd, bool own)
{
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, own ? STDERR_FILENO + 1 : FAR);
  if (own && copy >= 0)
    close(fd);
  return copy;
}

void ljp_table_fill_standard(void)
{
  int fd;
  while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
    ;
  if (fd >= 0)
    close(fd);
}
