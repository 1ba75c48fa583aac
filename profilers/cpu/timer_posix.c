/*
** POSIX timers with delivery to a thread. See timer.h.
**
** A thread has two timers on the monotonic clock, each of twice the period, that
** expire in turn, and `park` on the thread's CPU clock, which runs instead of
** them at times. Why two: the kernel starts a periodic timer anew when its
** signal is delivered. If that is the next to expire, the hardware's timer is set
** a second time in each period, which costs a virtual machine 4.6 us; the other
** timer expires before it. The kernel's own numbers are kept and its calls made
** directly: the handler may not call into libc for that.
*/
#include "profilers/cpu/timer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The clock of a thread's CPU time, as the kernel numbers them. */
static clockid_t cpu_clock_of(pid_t tid)
{
  return (clockid_t)(~(unsigned)tid << 3 | 6u);
}

static int available(void)
{
  return 0;
}

static int create(struct ljp_sampler *s, clockid_t clock, int signal, int *out)
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

static void disarm(struct ljp_sampler *s)
{
  int *all[] = {&s->timer[0], &s->timer[1], &s->park};
  for (int i = 0; i < 3; i++) {
    if (*all[i] >= 0)
      syscall(SYS_timer_delete, *all[i]);
    *all[i] = -1;
  }
}

static int arm(struct ljp_sampler *s, int signal, bool wall)
{
  int error = create(s, CLOCK_MONOTONIC, signal, &s->timer[0]);
  if (!error)
    error = create(s, CLOCK_MONOTONIC, signal, &s->timer[1]);
  if (!error && !wall)
    error = create(s, cpu_clock_of(s->tid), signal, &s->park);
  if (!error)
    error = (int)-ljp_timer_posix_set(s, atomic_load(&s->period_ns));
  if (error)
    disarm(s);
  return error;
}

const struct ljp_timer_source ljp_timer_posix = {
    .name = "posix", .available = available, .arm = arm, .disarm = disarm};
