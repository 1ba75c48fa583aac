/*
** The handler's side of POSIX timers: from one of a thread's two timers to the
** other. LJP_SIGSAFE: the kernel's own numbers of the timers, and its calls
** made directly. See timer_posix.c.
*/
#include "profilers/timer.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

enum { PARKED_NS = 500000 };

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
  if (s->park < 0 || atomic_load(&s->parked))
    return;
  atomic_store(&s->parked, true);
  ljp_timer_set(s->timer, 0, 0);
  ljp_timer_set(s->park, PARKED_NS, 0);
}

void ljp_timer_posix_unpark(struct ljp_sampler *s)
{
  uint64_t period = atomic_load(&s->period_ns);
  atomic_store(&s->parked, false);
  s->idle_run = 0;
  ljp_timer_set(s->timer, period, period);
}
