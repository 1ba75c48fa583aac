/*
** perf task-clock events, one a thread. See timer.h.
**
** Such an event is a high-resolution timer that runs while its thread does, so
** it is not bound to the scheduler's ticks. Nothing is mapped: the overflow's
** signal is all that is wanted. An event that is counted in user mode only
** (exclude_kernel) is lost when it falls into a system call, not put off, so
** that is no source for us.
*/
#include "profilers/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(pid_t tid, uint64_t period_ns)
{
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = period_ns;
  attr.wakeup_events = 1;
  attr.disabled = 1;
  attr.exclude_hv = 1;
  return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
                      PERF_FLAG_FD_CLOEXEC);
}

static int available(void)
{
  int fd = open_event(0, 1000000);
  if (fd < 0)
    return errno;
  close(fd);
  return 0;
}

/* The host may have closed our descriptor and opened another file. */
static bool still_ours(int fd)
{
  char link[64], name[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, name, sizeof name - 1);
  if (n < 0)
    return false;
  name[n] = 0;
  return strcmp(name, "anon_inode:[perf_event]") == 0;
}

static void disarm(struct ljp_sampler *s)
{
  if (s->fd < 0)
    return;
  if (s->fd < LJP_SAMPLER_FDS)
    atomic_store(&ljp_sampler_of_fd[s->fd], 0);
  if (still_ours(s->fd)) {
    ioctl(s->fd, PERF_EVENT_IOC_DISABLE, 0);
    close(s->fd);
  }
  s->fd = -1;
}

static int arm(struct ljp_sampler *s, int signal, bool wall)
{
  struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = s->tid};
  int error = 0;
  if (wall)
    return EINVAL;
  s->fd = open_event(s->tid, atomic_load(&s->period_ns));
  if (s->fd < 0)
    return errno;
  if (s->fd >= LJP_SAMPLER_FDS) {
    error = EMFILE;
  } else {
    /* Before the first signal. */
    atomic_store(&ljp_sampler_of_fd[s->fd], (uint16_t)(s->index + 1));
    if (fcntl(s->fd, F_SETSIG, signal) || fcntl(s->fd, F_SETOWN_EX, &owner) ||
        fcntl(s->fd, F_SETFL, O_ASYNC) ||
        ioctl(s->fd, PERF_EVENT_IOC_ENABLE, 0))
      error = errno;
  }
  if (error)
    disarm(s);
  return error;
}

const struct ljp_timer_source ljp_timer_perf = {
    .name = "perf", .available = available, .arm = arm, .disarm = disarm};
