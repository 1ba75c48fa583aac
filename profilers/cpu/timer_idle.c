/*
** Waiting threads under POSIX timers: our signals must not wake them all the
** time. Such a thread is parked: both timers of the monotonic clock stop, and a
** third one starts, on the thread's CPU clock. It expires when the thread has
** worked a little. Only the handler parks and unparks; LJP_SIGSAFE throughout.
** See timer.h.
*/
#include "profilers/cpu/timer.h"

#include "src/base/assert.h"

enum { PARKED_NS = 500000 /* CPU time until a parked thread is checked */ };

void ljp_timer_posix_park(struct ljp_sampler *s)
{
  ljp_assert(!s->perf);
  if (s->park < 0)
    return;
  if (!atomic_load(&s->parked)) {
    atomic_store(&s->parked, true);
    ljp_timer_posix_set(s, 0);
  }
  ljp_timer_set(s->park, PARKED_NS, 0);
}

void ljp_timer_posix_unpark(struct ljp_sampler *s)
{
  ljp_assert(!s->perf && atomic_load(&s->parked));
  atomic_store(&s->parked, false);
  ljp_timer_posix_set(s, atomic_load(&s->period_ns));
}
