/*
** POSIX timers that send their signals to one thread. See timer.h.
**
** A thread has two timers on the monotonic clock, each with twice the period,
** which expire in turn. A third one, `park`, on the thread's CPU clock,
** replaces them while the thread waits. Why two: the kernel restarts a
** periodic timer when its signal is delivered. With one timer, that timer is
** the next to expire, so the hardware's timer is set a second time in each
** period, which costs 4.6 us on a virtual machine. With two, the other timer
** expires first. We keep the kernel's own timer numbers and make its calls
** directly, because the handler may not call libc's functions for them.
*/
#include "profilers/cpu/timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profilers/cpu/proc_task.h"
#include "src/base/assert.h"

static int posix_available(void)
{
  return 0;
}

int ljp_timer_create(struct ljp_sampler *s, clockid_t clock, int signal,
                     int *out)
{
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = (void *)&ljp_samplers[s->index];
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = s->tid;
#else
  event._sigev_un._tid = s->tid;
#endif
  return syscall(SYS_timer_create, clock, &event, out) ? errno : 0;
}

void ljp_timer_delete(int *timer)
{
  if (*timer >= 0)
    syscall(SYS_timer_delete, *timer);
  *timer = -1;
}

static void posix_disarm(struct ljp_sampler *s)
{
  ljp_timer_delete(&s->timer[0]);
  ljp_timer_delete(&s->timer[1]);
  ljp_timer_delete(&s->park);
}

static int posix_arm(struct ljp_sampler *s, int signal)
{
  ljp_assert(s->timer[0] < 0 && s->timer[1] < 0 && s->park < 0);
  int error = ljp_timer_create(s, CLOCK_MONOTONIC, signal, &s->timer[0]);
  if (!error)
    error = ljp_timer_create(s, CLOCK_MONOTONIC, signal, &s->timer[1]);
  if (!error)
    error = ljp_timer_create(s, ljp_task_cpu_clock(s->tid), signal, &s->park);
  if (!error)
    error = (int)-ljp_timer_posix_set(s, atomic_load(&s->period_ns));
  if (error)
    posix_disarm(s);
  return error;
}

const struct ljp_timer_source ljp_timer_posix = {.name = "posix",
                                                 .kind = LJP_TIMER_POSIX,
                                                 .available = posix_available,
                                                 .arm = posix_arm,
                                                 .disarm = posix_disarm};
