/*
** The period of a thread's timer: random, and drawn anew every few samples. The
** life cycle sets the first period, the handler all later ones.
** LJP_SIGSAFE throughout: the kernel's own timer numbers, and direct system
** calls. See timer.h.
*/
#include "profilers/cpu/timer.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "src/base/assert.h"

/* A new period costs a microsecond with posix, but up to 17 with perf in a
** virtual machine, since the kernel sets the hardware's timer twice. It is drawn
** when both this many samples and this much time have gone by. Fewer would not
** be better against periodic work: with 16 samples the shares of such work are
** off by as much as with 64, or more. */
enum { REARM_SAMPLES = 64, REARM_NS = 64000000 };

LJP_SIGSAFE long ljp_timer_set(int timer, uint64_t first_ns, uint64_t period_ns)
{
  struct itimerspec spec = {.it_value = {(time_t)(first_ns / 1000000000u),
                                         (long)(first_ns % 1000000000u)},
                            .it_interval = {(time_t)(period_ns / 1000000000u),
                                            (long)(period_ns % 1000000000u)}};
  long ret = SYS_timer_settime;
  register const void *r10 __asm__("r10") = NULL;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"((long)timer), "S"(0L), "d"(&spec), "r"(r10)
                   : "rcx", "r11", "memory");
  return ret;
}

long ljp_timer_posix_set(struct ljp_sampler *s, uint64_t period_ns)
{
  s->drawn_ns = 0;
  long error = ljp_timer_set(s->timer[0], period_ns, 2 * period_ns);
  return error ? error
               : ljp_timer_set(s->timer[1], 2 * period_ns, 2 * period_ns);
}

LJP_SIGSAFE static void period_set_perf(int fd, uint64_t period_ns)
{
  long ret = SYS_ioctl;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"((long)fd), "S"(PERF_EVENT_IOC_PERIOD), "d"(&period_ns)
                   : "rcx", "r11", "memory");
}

/* Uniformly distributed; differs from the interval by at most a quarter. */
LJP_SIGSAFE static uint64_t period_draw(struct ljp_sampler *s,
                                        uint64_t interval)
{
  ljp_assert(s->random != 0);
  s->random ^= s->random << 13;
  s->random ^= s->random >> 17;
  s->random ^= s->random << 5;
  return interval - interval / 4 + s->random % (interval / 2 + 1);
}

/* The timer that has just expired gets the new period first; the other one gets
** it when it expires. Neither is then the next timer to expire, so the kernel
** need not set the hardware's timer again. True: both have the new period. */
LJP_SIGSAFE static bool period_set_posix(struct ljp_sampler *s, uint64_t now,
                                         uint64_t interval, int timer)
{
  uint64_t period = atomic_load_explicit(&s->period_ns, memory_order_relaxed);
  uint32_t which = timer == s->timer[1];
  if (timer != s->timer[which])
    return false;
  if (!s->drawn_ns) {
    uint64_t drawn = period_draw(s, interval);
    s->drawn_ns = drawn;
    s->drawn_by = which;
    s->drawn_due_ns = now + period + drawn;
    ljp_timer_set(timer, period + drawn, 2 * drawn);
    return false;
  }
  if (which == s->drawn_by)
    return false;
  uint64_t drawn = s->drawn_ns, due = s->drawn_due_ns;
  if (now > due) /* late: the first timer has expired again meanwhile */
    due += ((now - due) / (2 * drawn) + 1) * 2 * drawn;
  ljp_assert(due >= now);
  ljp_timer_set(timer, due + drawn - now, 2 * drawn);
  s->drawn_ns = 0;
  atomic_store_explicit(&s->period_ns, drawn, memory_order_relaxed);
  return true;
}

void ljp_timer_rearm(struct ljp_sampler *s, uint64_t now, const siginfo_t *info)
{
  uint64_t interval =
      atomic_load_explicit(&s->interval_ns, memory_order_relaxed);
  if (s->perf) {
    uint64_t period = period_draw(s, interval);
    atomic_store_explicit(&s->period_ns, period, memory_order_relaxed);
    if (s->tick)
      ljp_timer_set(s->timer[0], period, period);
    else
      period_set_perf(s->fd, period);
  } else if (!period_set_posix(s, now, interval, info->si_timerid))
    return;
  uint64_t samples = REARM_NS / interval;
  s->until_rearm = samples > REARM_SAMPLES ? (uint32_t)samples : REARM_SAMPLES;
}
