/*
** What /proc/self/task says about a thread; see proc_task.h.
*/
#include "profilers/cpu/proc_task.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/open_file.h"

static int task_open(pid_t tid, const char *file)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/%s", (long)tid, file);
  return ljp_fd_not_standard(open(path, O_RDONLY | O_CLOEXEC));
}

/* Reads a file of the thread as a string. Returns the number of bytes read; 0:
** the thread has ended. */
static size_t task_read(pid_t tid, const char *file, char *out, size_t room)
{
  int fd = task_open(tid, file);
  ssize_t n = fd >= 0 ? read(fd, out, room - 1) : -1;
  if (fd >= 0)
    close(fd);
  out[n > 0 ? n : 0] = 0;
  return n > 0 ? (size_t)n : 0;
}

bool ljp_task_exists(pid_t tid)
{
  char text[64];
  return task_read(tid, "comm", text, sizeof text) > 0;
}

/* The thread's blocked signals, a bit each. The file may be long: it has a line
** with all groups of the user. False: it cannot be read. */
static bool task_mask(pid_t tid, uint64_t *mask)
{
  static const char key[] = "\nSigBlk:";
  enum { VALUE = 24 }; /* the key's value fits */
  char text[2048];
  size_t have = 0;
  const char *at = NULL;
  int fd = task_open(tid, "status");
  while (fd >= 0) {
    ssize_t n = read(fd, text + have, sizeof text - 1 - have);
    if (n <= 0)
      break;
    have += (size_t)n;
    text[have] = 0;
    at = strstr(text, key);
    if (at && (size_t)(text + have - at) > sizeof key + VALUE)
      break;
    size_t keep = at ? (size_t)(text + have - at) : sizeof key;
    keep = keep < have ? keep : have;
    memmove(text, text + have - keep, keep + 1);
    have = keep;
    at = at ? text : NULL;
  }
  if (fd >= 0)
    close(fd);
  if (at)
    *mask = strtoull(at + sizeof key - 1, NULL, 16);
  return at != NULL;
}

/* Does the thread wait in sigwait() for this signal? Meanwhile the kernel does
** not count it as blocked. */
static bool task_takes(pid_t tid, int signal)
{
  char text[128];
  uint64_t set = 0;
  long number;
  unsigned long at;
  if (!task_read(tid, "syscall", text, sizeof text) ||
      sscanf(text, "%ld %lx", &number, &at) != 2 ||
      number != SYS_rt_sigtimedwait)
    return false;
  int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  bool got = fd >= 0 && pread(fd, &set, sizeof set, (off_t)at) == sizeof set;
  if (fd >= 0)
    close(fd);
  return !got || (set >> (signal - 1) & 1);
}

bool ljp_task_blocks(pid_t tid, int signal)
{
  uint64_t mask;
  if (tid == gettid()) {
    sigset_t set;
    return !pthread_sigmask(SIG_SETMASK, NULL, &set) &&
           sigismember(&set, signal) == 1;
  }
  /* The mask once more: the thread may have come back from sigwait() between
  ** the two questions. */
  for (int i = 0; i < 2; i++)
    if (!task_mask(tid, &mask) || (mask >> (signal - 1) & 1) ||
        task_takes(tid, signal))
      return true;
  return false;
}

void ljp_task_name(pid_t tid, char name[16])
{
  char text[32] = "";
  if (tid == gettid())
    prctl(PR_GET_NAME, text);
  else
    task_read(tid, "comm", text, sizeof text);
  text[strcspn(text, "\n")] = 0;
  snprintf(name, 16, "%.15s", text);
}
