/*
** The source perf: a perf task-clock event for each thread. See timer.h.
**
** Such an event is a high-resolution timer that runs while its thread runs, so
** it does not depend on the scheduler's ticks. Nothing is mapped: we only need
** the signal of the overflow. An event that counts only user mode
** (exclude_kernel) is lost, not deferred, when it falls into a system call, so
** such an event is of no use here.
**
** The kernel cannot send a signal from the timer's interrupt. It raises another
** interrupt, which sends the signal. There is a cheaper way (sigtrap): the
** kernel sends a SIGTRAP when the thread returns to user mode. But if a period
** ends during execve(), the signal ends the new program, and after a program
** has reset SIGTRAP, the next signal ends that program. So this way, once the
** source "trap", is not used any more.
*/
#include "profilers/cpu/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profilers/cpu/proc_task.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/open_file.h"

static int perf_open(pid_t tid, uint64_t period_ns)
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
  return ljp_fd_not_standard((int)syscall(SYS_perf_event_open, &attr, tid, -1,
                                          -1, PERF_FLAG_FD_CLOEXEC));
}

static int perf_available(void)
{
  int fd = perf_open(0, 1000000000);
  if (fd < 0)
    return errno;
  close(fd);
  return 0;
}

/* The host may have closed our descriptor and opened something else by its
** number. The first question can be asked of any file. */
static bool perf_is_ours(const struct ljp_sampler *s)
{
  uint64_t id = 0;
  return fcntl(s->fd, F_GETSIG) == s->event_signal &&
         ioctl(s->fd, PERF_EVENT_IOC_ID, &id) == 0 && id == s->event;
}

void ljp_timer_perf_forget(struct ljp_sampler *s)
{
  if (s->fd < 0)
    return;
  if (s->fd < LJP_SAMPLER_FDS)
    atomic_store(&ljp_sampler_of_fd[s->fd], 0);
  if (perf_is_ours(s))
    close(s->fd);
  s->fd = -1;
}

static void perf_disarm(struct ljp_sampler *s)
{
  if (s->fd >= 0 && perf_is_ours(s))
    ioctl(s->fd, PERF_EVENT_IOC_DISABLE, 0);
  ljp_timer_perf_forget(s);
}

/* Marks the descriptor, so that it can be known again. */
static bool perf_mark(struct ljp_sampler *s, int signal)
{
  s->event_signal = signal;
  return fcntl(s->fd, F_SETSIG, signal) == 0 &&
         ioctl(s->fd, PERF_EVENT_IOC_ID, &s->event) == 0;
}

static int perf_arm(struct ljp_sampler *s, int signal)
{
  struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = s->tid};
  int error = 0;
  ljp_assert(s->fd < 0);
  s->fd = perf_open(s->tid, atomic_load(&s->period_ns));
  if (s->fd < 0)
    return errno;
  if (!perf_mark(s, signal)) {
    error = errno;
  } else if (s->fd >= LJP_SAMPLER_FDS) {
    error = EMFILE;
  } else {
    /* This must precede the first signal. */
    atomic_store(&ljp_sampler_of_fd[s->fd], (uint16_t)(s->index + 1));
    if (fcntl(s->fd, F_SETOWN_EX, &owner) || fcntl(s->fd, F_SETFL, O_ASYNC) ||
        ioctl(s->fd, PERF_EVENT_IOC_ENABLE, 0))
      error = errno;
  }
  if (error)
    perf_disarm(s);
  return error;
}

/* The kernel begins a new period at once, however much of the old one has gone
** by. This part is not lost, since the next sample reads the CPU clock. But it
** must be small, or else too few signals come. s->cpu_ns is the time of the
** thread's last event. */
static bool perf_renew(struct ljp_sampler *s, uint64_t period_ns, bool at_once)
{
  uint64_t old = atomic_load(&s->period_ns);
  uint64_t cpu = ljp_clock_of(ljp_task_cpu_clock(s->tid));
  if (!at_once && cpu - s->cpu_ns > old / 2)
    return false;
  if (perf_is_ours(s)) {
    atomic_store(&s->period_ns, period_ns);
    ioctl(s->fd, PERF_EVENT_IOC_PERIOD, &period_ns);
    atomic_store(&s->resync, true);
  }
  return true;
}

const struct ljp_timer_source ljp_timer_perf = {.name = "perf",
                                                .kind = LJP_TIMER_PERF,
                                                .available = perf_available,
                                                .arm = perf_arm,
                                                .disarm = perf_disarm,
                                                .lives = perf_is_ours,
                                                .renew = perf_renew};
