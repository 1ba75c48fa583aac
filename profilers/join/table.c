/*
** See table.h.
*/
#include "profilers/join/table.h"

#include <fcntl.h>
#include <unistd.h>

enum { FAR = 512 };

int ljp_table_move(int fd, bool own)
{
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, own ? STDERR_FILENO + 1 : FAR);
  if (own && copy >= 0)
    close(fd);
  return copy;
}
