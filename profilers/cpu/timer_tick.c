/*
** The source tick: one POSIX timer for each thread, on the thread's CPU clock.
** See timer.h.
**
** The kernel looks at such a timer only at its own ticks, while the thread
** runs. So there is at most one signal a tick, and none in a thread that waits.
** Since Linux 5.9 the timer expires when the thread returns to user mode, so
** the signal never interrupts a system call.
*/
#include "profilers/cpu/timer.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "profilers/cpu/proc_task.h"
#include "src/base/assert.h"

static int tick_available(void)
{
  return 0;
}

uint64_t ljp_timer_tick_ns(void)
{
  struct timespec tick = {0, 0};
  return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) ? 4000000
                                                     : (uint64_t)tick.tv_nsec;
}

static void tick_disarm(struct ljp_sampler *s)
{
  ljp_timer_delete(&s->timer[0]);
}

static int tick_arm(struct ljp_sampler *s, int signal)
{
  ljp_assert(s->timer[0] < 0);
  uint64_t period = atomic_load(&s->period_ns);
  int error =
      ljp_timer_create(s, ljp_task_cpu_clock(s->tid), signal, &s->timer[0]);
  if (!error)
    error = ljp_timer_set(s->timer[0], 0, period, period);
  if (error)
    tick_disarm(s);
  return error;
}

/* The next signal comes when it is due. */
static bool tick_renew(struct ljp_sampler *s, uint64_t period_ns, bool at_once)
{
  uint64_t left = ljp_timer_left_ns(s->timer[0]);
  (void)at_once;
  atomic_store(&s->period_ns, period_ns);
  ljp_timer_set(s->timer[0], 0, left ? left : period_ns, period_ns);
  return true;
}

const struct ljp_timer_source ljp_timer_tick = {.name = "tick",
                                                .kind = LJP_TIMER_TICK,
                                                .available = tick_available,
                                                .arm = tick_arm,
                                                .disarm = tick_disarm,
                                                .renew = tick_renew};
