/*
** The handler's side of timers: a new period, and from one of a thread's two
** POSIX timers to the other. LJP_SIGSAFE: the kernel's own numbers, and its
** calls made directly. See timer_posix.c, timer_perf.c.
*/
#include "profilers/timer.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

/* A new period costs about a microsecond: at most every 4th sample, and no
** more often than each 2 ms. */
enum { PARKED_NS = 500000, REARM_SAMPLES = 16, REARM_NS = 16000000 };

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

void ljp_timer_posix_park(struct ljp_sampler *s)
{
  if (s->park < 0)
    return;
  if (!atomic_load(&s->parked)) {
    atomic_store(&s->parked, true);
    ljp_timer_set(s->timer, 0, 0);
  }
  ljp_timer_set(s->park, PARKED_NS, 0);
}

void ljp_timer_posix_unpark(struct ljp_sampler *s)
{
  uint64_t period = atomic_load(&s->period_ns);
  atomic_store(&s->parked, false);
  s->idle_run = 0;
  ljp_timer_set(s->timer, period, period);
}

LJP_SIGSAFE static void perf_period(int fd, uint64_t period_ns)
{
  long ret = SYS_ioctl;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"((long)fd), "S"(PERF_EVENT_IOC_PERIOD), "d"(&period_ns)
                   : "rcx", "r11", "memory");
}

void ljp_timer_rearm(struct ljp_sampler *s)
{
  uint64_t interval =
      atomic_load_explicit(&s->interval_ns, memory_order_relaxed);
  s->random ^= s->random << 13;
  s->random ^= s->random >> 17;
  s->random ^= s->random << 5;
  uint64_t period = interval - interval / 4 + s->random % (interval / 2 + 1);
  uint64_t samples = REARM_NS / interval;
  s->until_rearm = samples > REARM_SAMPLES ? (uint32_t)samples : REARM_SAMPLES;
  atomic_store_explicit(&s->period_ns, period, memory_order_relaxed);
  if (s->perf)
    perf_period(s->fd, period);
  else
    ljp_timer_set(s->timer, period, period);
}
