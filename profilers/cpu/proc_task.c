/*
** What /proc/self/task says about a thread; see proc_task.h.
*/
#include "profilers/cpu/proc_task.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a file of the thread as a string. Returns the number of bytes read; 0:
** the thread has ended. */
static size_t task_read(pid_t tid, const char *file, char *out, size_t room)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/%s", (long)tid, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
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

bool ljp_task_blocks(pid_t tid, int signal)
{
  char text[4096];
  task_read(tid, "status", text, sizeof text);
  const char *at = strstr(text, "\nSigBlk:");
  return at && (strtoull(at + 8, NULL, 16) >> (signal - 1) & 1);
}

void ljp_task_name(pid_t tid, char name[16])
{
  char text[32];
  task_read(tid, "comm", text, sizeof text);
  text[strcspn(text, "\n")] = 0;
  snprintf(name, 16, "%.15s", text);
}
