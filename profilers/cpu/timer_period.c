/*
** The period of a thread's timer: random, and drawn anew every now and then,
** so that the samples do not beat with periodic work of the host. The writer
** draws it, when it looks at the thread between its rounds. The handler does
** not: a new period takes a system call, for which a sandbox may kill the
** thread. See timer.h.
*/
#include "profilers/cpu/timer.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "src/base/clock.h"

int ljp_timer_set(int timer, int flags, uint64_t first_ns, uint64_t period_ns)
{
  struct itimerspec spec = {.it_value = {(time_t)(first_ns / 1000000000u),
                                         (long)(first_ns % 1000000000u)},
                            .it_interval = {(time_t)(period_ns / 1000000000u),
                                            (long)(period_ns % 1000000000u)}};
  return syscall(SYS_timer_settime, timer, flags, &spec, NULL) ? errno : 0;
}

uint64_t ljp_timer_left_ns(int timer)
{
  struct itimerspec spec = {.it_value = {0, 0}};
  if (syscall(SYS_timer_gettime, timer, &spec))
    return 0;
  return (uint64_t)spec.it_value.tv_sec * 1000000000u +
         (uint64_t)spec.it_value.tv_nsec;
}

void ljp_timer_begin(struct ljp_sampler *s)
{
  s->random = ((uint32_t)s->clock_ns ^ (uint32_t)s->tid << 8) | 1;
  s->drawn_cpu_ns = 0;
  s->draws = 0;
  s->drawn_one = false;
  atomic_store(&s->parked, false);
  atomic_store(&s->waits, false);
}

/* Uniformly distributed; differs from the interval by at most a quarter. */
static uint64_t period_draw(struct ljp_sampler *s, uint64_t interval)
{
  ljp_assert(s->random != 0);
  s->random ^= s->random << 13;
  s->random ^= s->random >> 17;
  s->random ^= s->random << 5;
  return interval - interval / 4 + s->random % (interval / 2 + 1);
}

/* A new period costs a microsecond with posix, but up to 17 with perf in a
** virtual machine, since the kernel sets the hardware's timer twice. So it is
** drawn when both this many samples and this much CPU time (less than the
** longest time between two looks) have gone by. More often would not be better
** against periodic work: if one is drawn every 16 samples, the shares of such
** work are off by as much as with 64; with 2,000, of 10,000 in all, by several
** points. Half of a period may be lost, which matters only if periods are
** long. */
enum { SAMPLES = 48, LEAST_NS = 48000000, SHORT = 256, TRIES = 2 };

void ljp_timer_draw(struct ljp_sampler *s, bool at_once)
{
  uint64_t interval = atomic_load(&s->interval_ns);
  /* Every second period is as much longer as the one before is shorter, or the
  ** other way round, so their mean is the interval. */
  bool second = s->drawn_one && !at_once;
  uint64_t period = second ? 2 * interval - atomic_load(&s->period_ns)
                           : period_draw(s, interval);
  if (!s->source->renew(s, period,
                        at_once || s->draws >= TRIES ||
                            SHORT * interval <= LEAST_NS)) {
    s->draws++;
    return;
  }
  s->draws = 0;
  s->drawn_one = !second;
  s->drawn_cpu_ns = s->cpu_ns;
}

/* The first period is drawn after one sample. */
static bool period_is_old(const struct ljp_sampler *s)
{
  uint64_t age = SAMPLES * atomic_load(&s->interval_ns);
  if (!s->drawn_cpu_ns)
    return s->cpu_ns > s->cpu_begin_ns;
  return s->cpu_ns - s->drawn_cpu_ns >= (age > LEAST_NS ? age : LEAST_NS);
}

bool ljp_timer_look(struct ljp_sampler *s)
{
  if (s->source == &ljp_timer_posix && ljp_timer_posix_look(s))
    return true;
  if (period_is_old(s))
    ljp_timer_draw(s, false);
  return false;
}
