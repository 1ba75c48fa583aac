/*
** See own_table.h.
*/
#include "src/base/own_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/own_proc.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { CLOSE_RANGE_OWN = 2 /* CLOSE_RANGE_UNSHARE */ };

bool ljp_own_table_enter(int keep, bool standard)
{
  const unsigned first = standard ? STDERR_FILENO + 1 : 0;
  if (syscall(SYS_close_range, (unsigned)(keep + 1), ~0u, CLOSE_RANGE_OWN))
    return false;
  if (keep > (int)first)
    syscall(SYS_close_range, first, (unsigned)keep - 1, 0);
  return true;
}

void ljp_own_table_leave_standard(void)
{
  int fd;
  syscall(SYS_close_range, 0u, (unsigned)STDERR_FILENO, 0);
  while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
    ;
  if (fd >= 0)
    close(fd);
}

bool ljp_own_table_is_risky(void)
{
  static const char key[] = "\nSeccomp:\t";
  char name[48], text[4096];
  snprintf(name, sizeof name, "task/%ld/status", (long)gettid());
  int fd = ljp_own_proc_open(name, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0)
    close(fd);
  if (n <= 0)
    return true;
  text[n] = '\0';
  const char *mode = strstr(text, key);
  /* A kernel without sandboxes does not have the line; a long text is cut. */
  return mode ? mode[sizeof key - 1] != '0' : n == sizeof text - 1;
}
