/*
** Waiting threads under POSIX timers: our signals must not wake them all the
** time. Such a thread is parked: both timers of the monotonic clock stop, and a
** third one starts, on the thread's CPU clock. It expires at the kernel's
** ticks, while the thread runs, and ends no wait. When the thread has worked
** from one look of the writer to the next without a wait, it gets the other
** timers again. The handler only says that a wait has ended. See timer.h.
*/
#include "profilers/cpu/timer.h"

#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/timer_wish.h"
#include "profilers/cpu/watch_place.h"
#include "src/base/assert.h"
#include "src/base/clock.h"

static void idle_look_again(struct ljp_sampler *s, uint64_t now, uint64_t cpu)
{
  s->parked_ns = now;
  s->parked_cpu_ns = cpu;
}

static void idle_park(struct ljp_sampler *s, uint64_t now, uint64_t cpu)
{
  s->park_ns = atomic_load(&s->interval_ns);
  if (s->park_ns < ljp_timer_tick_ns())
    s->park_ns = ljp_timer_tick_ns();
  s->parked_waits = UINT64_MAX;
  idle_look_again(s, now, cpu);
  if (!ljp_timer_posix_park(s))
    return;
  ljp_timer_posix_set(s, 0);
  /* Before the first signal, which reads the CPU clock because of it. */
  atomic_store(&s->parked, true);
  ljp_timer_set(s->park, 0, s->park_ns, s->park_ns);
}

static void idle_unpark(struct ljp_sampler *s)
{
  ljp_timer_set(s->park, 0, 0, 0);
  /* The samples in between stood for other times than a period. */
  atomic_store(&s->resync, true);
  atomic_store(&s->waits, false);
  atomic_store(&s->parked, false);
  ljp_timer_posix_set(s, atomic_load(&s->period_ns));
}

/* Has the thread worked since the last look, without a wait? */
static bool idle_works(struct ljp_sampler *s, uint64_t now, uint64_t cpu)
{
  enum { PART = 8 }; /* of the time: a thread that has no CPU may work, too */
  uint64_t waits = 0, before = s->parked_waits;
  if (cpu - s->parked_cpu_ns < (now - s->parked_ns) / PART) {
    s->parked_waits = UINT64_MAX;
    return false;
  }
  if (!ljp_task_waits(s->tid, &waits))
    return cpu - s->parked_cpu_ns >= (now - s->parked_ns) / 2;
  s->parked_waits = waits;
  return waits == before;
}

bool ljp_timer_posix_look(struct ljp_sampler *s)
{
  enum { LEAST_NS = 4000000 }; /* looks may follow each other closely */
  ljp_assert(!s->perf);
  bool parked = atomic_load(&s->parked);
  if (!parked && !atomic_exchange(&s->waits, false) &&
      atomic_load(&s->wish) == LJP_WISH_NONE)
    return false;
  uint64_t now = ljp_clock_ns();
  uint64_t cpu = ljp_clock_of(ljp_task_cpu_clock(s->tid));
  if (!cpu || (parked && now - s->parked_ns < LEAST_NS))
    return true;
  if (!parked) {
    idle_park(s, now, cpu);
  } else if (idle_works(s, now, cpu)) {
    idle_unpark(s);
    return false;
  } else {
    idle_look_again(s, now, cpu);
  }
  return true;
}
