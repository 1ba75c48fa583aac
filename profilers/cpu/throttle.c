/*
** Throttle: how often each thread is sampled; see threads.h.
**
** Where the handler takes a larger share of a thread's time than the user
** allows, the thread's interval is lengthened. When the load decreases, the
** interval is shortened again, down to the one that the user asked for.
*/
#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "src/base/assert.h"

enum { THROTTLE_MIN_NS = 20000000 /* sampled time that a decision needs */ };

/* The handler tells the stream at its next signal. */
static void throttle_set(struct ljp_sampler *s, uint64_t interval,
                         enum ljp_interval_why why)
{
  ljp_assert(interval >= ljp_sysprof.options.interval_ns);
  atomic_store(&s->interval_ns, interval);
  /* Release: the interval before the reason. */
  atomic_store_explicit(&s->interval_why, why, memory_order_release);
  ljp_timer_draw(s, true);
}

/* share: the part of the thread's time that the handler takes. */
static void throttle_thread(struct ljp_sampler *s, double share, double limit)
{
  uint64_t interval = atomic_load(&s->interval_ns);
  uint64_t asked = ljp_sysprof.options.interval_ns;
  if (share > limit && interval < LJP_INTERVAL_MAX_NS / 16) {
    double factor = share / limit * 1.25;
    factor = factor > 16 ? 16 : factor;
    throttle_set(s, (uint64_t)((double)interval * factor),
                 LJP_INTERVAL_THROTTLE);
  } else if (interval > asked && share * 2 < limit * 0.8) {
    uint64_t half = interval / 2;
    throttle_set(s, half < asked ? asked : half, LJP_INTERVAL_RECOVER);
  }
}

void ljp_throttle_update(void)
{
  double limit = ljp_sysprof.options.max_overhead;
  LJP_FOR_EACH_SAMPLER(s)
  {
    uint64_t time = atomic_load(&s->counts.time_ns) - s->throttle_time_ns;
    uint64_t spent =
        atomic_load(&s->counts.handler_ns) - s->throttle_handler_ns;
    if (limit <= 0 || time < THROTTLE_MIN_NS)
      continue;
    s->throttle_time_ns += time;
    s->throttle_handler_ns += spent;
    throttle_thread(s, (double)spent / (double)time, limit);
  }
}
