/*
** POSIX timers that send their signals to one thread. See timer.h.
**
** A thread has two timers on the monotonic clock, each with twice the period,
** which expire in turn. A third one, `park`, on the thread's CPU clock,
** replaces them while the thread waits. Why two: the kernel restarts a
** periodic timer when its signal is delivered. With one timer, that timer is
** the next to expire, so the hardware's timer is set a second time in each
** period, which costs 4.6 us on a virtual machine. With two, the other timer
** expires first. We keep the kernel's own timer numbers, which signals carry
** and libc hides.
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
#include "src/base/clock.h"

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

int ljp_timer_posix_set(struct ljp_sampler *s, uint64_t period_ns)
{
  int error = ljp_timer_set(s->timer[0], 0, period_ns, 2 * period_ns);
  return error ? error
               : ljp_timer_set(s->timer[1], 0, 2 * period_ns, 2 * period_ns);
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
    error = ljp_timer_posix_set(s, atomic_load(&s->period_ns));
  if (error)
    posix_disarm(s);
  return error;
}

/* The next signal comes when it is due, later ones by the new period. If
** this thread loses its CPU meanwhile, both timers may expire at once, which
** the handler counts as one sample; so the next signal must not be near. */
static bool posix_renew(struct ljp_sampler *s, uint64_t period_ns, bool at_once)
{
  uint64_t old = atomic_load(&s->period_ns), now = ljp_clock_ns();
  uint64_t left[2] = {ljp_timer_left_ns(s->timer[0]),
                      ljp_timer_left_ns(s->timer[1])};
  int next = left[1] < left[0];
  if (atomic_load(&s->parked)) {
    atomic_store(&s->period_ns, period_ns); /* for when it is unparked */
    return true;
  }
  if (!at_once && left[next] < old / 2)
    return false;
  uint64_t due = now + left[next];
  ljp_timer_set(s->timer[!next], TIMER_ABSTIME, due + period_ns, 2 * period_ns);
  ljp_timer_set(s->timer[next], TIMER_ABSTIME, due, 2 * period_ns);
  atomic_store(&s->period_ns, period_ns);
  return true;
}

const struct ljp_timer_source ljp_timer_posix = {.name = "posix",
                                                 .kind = LJP_TIMER_POSIX,
                                                 .available = posix_available,
                                                 .arm = posix_arm,
                                                 .disarm = posix_disarm,
                                                 .renew = posix_renew};
