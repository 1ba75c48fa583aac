/*
** What /proc/self/task says about a thread; see proc_task.h.
*/
#include "profilers/cpu/proc_task.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/lines.h"
#include "src/base/open_file.h"
#include "src/base/own_proc.h"

static int task_open(pid_t tid, const char *file)
{
  char name[48];
  snprintf(name, sizeof name, "task/%ld/%s", (long)tid, file);
  return ljp_fd_not_standard(ljp_own_proc_open(name, O_RDONLY | O_CLOEXEC));
}

/* A folder has a link from each folder in it, from itself and from above. */
uint32_t ljp_task_count(void)
{
  struct stat st;
  return ljp_own_proc_stat("task", &st) || st.st_nlink < 3
             ? 0
             : (uint32_t)st.st_nlink - 2;
}

uint32_t ljp_task_each(void (*each)(pid_t tid, void *ctx), void *ctx)
{
  pid_t self = gettid();
  bool own = false;
  uint32_t count = 0;
  int fd = ljp_fd_not_standard(
      ljp_own_proc_open("task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (!dir)
    return 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    pid_t tid = (pid_t)atol(entry->d_name);
    if (tid <= 0)
      continue;
    own |= tid == self;
    count++;
    each(tid, ctx);
  }
  closedir(dir);
  return own ? count : 0;
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

/* What the status file says. */
struct task_status {
  uint64_t blocked;  /* signals, a bit each */
  uint64_t switches; /* times that the thread has waited */
};

/* The file may be long: it has a line with all groups of the user. False: it
** cannot be read. */
static bool task_status(pid_t tid, struct task_status *out)
{
  static const char blocked[] = "SigBlk:", switches[] = "voluntary_ctxt_sw";
  char room[1024], *line; /* most files fit into two reads */
  int found = 0, fd = task_open(tid, "status");
  struct ljp_lines lines = ljp_lines_of(fd, room, sizeof room);
  while (found != 3 && (line = ljp_lines_next(&lines)) != NULL) {
    if (strncmp(line, blocked, sizeof blocked - 1) == 0) {
      out->blocked = strtoull(line + sizeof blocked - 1, NULL, 16);
      found |= 1;
    } else if (strncmp(line, switches, sizeof switches - 1) == 0) {
      out->switches = strtoull(line + strcspn(line, "\t"), NULL, 10);
      found |= 2;
    }
  }
  if (fd >= 0)
    close(fd);
  return found == 3;
}

enum task_call { CALL_UNKNOWN, CALL_TAKES, CALL_OTHER };

/* The system call in which the thread waits: for this signal, as in sigwait(),
** or another one. Unknown if the thread runs. */
static enum task_call task_call(pid_t tid, int signal)
{
  char text[128];
  uint64_t set = 0;
  long number;
  unsigned long at;
  if (!task_read(tid, "syscall", text, sizeof text) ||
      sscanf(text, "%ld %lx", &number, &at) != 2)
    return CALL_UNKNOWN;
  if (number != SYS_rt_sigtimedwait)
    return CALL_OTHER;
  int fd = ljp_fd_not_standard(ljp_own_proc_open("mem", O_RDONLY | O_CLOEXEC));
  bool got = fd >= 0 && pread(fd, &set, sizeof set, (off_t)at) == sizeof set;
  if (fd >= 0)
    close(fd);
  return !got || (set >> (signal - 1) & 1) ? CALL_TAKES : CALL_OTHER;
}

static bool task_has(uint64_t set, int signal)
{
  return set >> (signal - 1) & 1;
}

/* While a thread waits in sigwait(), and until it runs again, the kernel does
** not count the signals that it waits for as blocked. So a mask without the
** signal counts only if the thread waits in another call, or has run for a
** while without waiting since an earlier look. */
enum ljp_task_mask ljp_task_mask(pid_t tid, int signal, int looks,
                                 struct ljp_task_look *last)
{
  enum { LOOK_US = 100, RAN_NS = 100000 };
  struct task_status now, then;
  sigset_t set;
  if (tid == gettid())
    return pthread_sigmask(SIG_SETMASK, NULL, &set) ||
                   sigismember(&set, signal) != 0
               ? LJP_TASK_BLOCKS
               : LJP_TASK_TAKES;
  for (int i = 0; i < looks; i++) {
    if (i)
      usleep(LOOK_US);
    if (!task_status(tid, &now))
      return LJP_TASK_UNKNOWN;
    if (task_has(now.blocked, signal))
      return LJP_TASK_BLOCKS;
    uint64_t cpu_ns = ljp_clock_of(ljp_task_cpu_clock(tid));
    bool same = last->cpu_ns && last->switches == now.switches;
    if (same && cpu_ns >= last->cpu_ns + RAN_NS)
      return LJP_TASK_TAKES;
    if (!same)
      *last = (struct ljp_task_look){now.switches, cpu_ns};
    enum task_call call = task_call(tid, signal);
    if (call == CALL_TAKES)
      return LJP_TASK_BLOCKS;
    if (call == CALL_OTHER && task_status(tid, &then) &&
        then.switches == now.switches)
      return task_has(then.blocked, signal) ? LJP_TASK_BLOCKS : LJP_TASK_TAKES;
  }
  return LJP_TASK_UNKNOWN;
}

/* The number after this name in a status file. */
static uint64_t task_number(const char *text, const char *name, int base)
{
  const char *line = strstr(text, name);
  return line ? strtoull(line + strlen(name), NULL, base) : UINT64_MAX;
}

/* One read: a file that is longer than usual has many groups. */
enum ljp_task_answer ljp_task_answer(pid_t tid, int signal)
{
  char text[4096];
  if (!task_read(tid, "status", text, sizeof text) ||
      task_has(task_number(text, "\nSigBlk:", 16), signal) ||
      task_number(text, "\nSeccomp:", 10) != 0)
    return LJP_TASK_NEVER;
  return task_has(task_number(text, "\nSigPnd:", 16), signal) ? LJP_TASK_ASKED
                                                              : LJP_TASK_SOON;
}

bool ljp_task_is_filtered(void)
{
  return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0;
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
