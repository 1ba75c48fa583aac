/*
** The times of the recorder's events: as few readings of the clock as possible.
*/
#include "profilers/memory/record_priv.h"

#include "src/base/clock.h"

enum {
  MEASURED_CYCLES = 3000000, /* enough to measure the length of one */
  COUNTED_CYCLES = 3000000,  /* the most since the last reading of the clock */
  LONGEST_TICK_NS = 2 /* a longer tick means that this is no counter of time */
};

static uint64_t recorder_ask_clock(struct ljp_recorder *r, uint64_t tsc)
{
  uint64_t now = ljp_clock_ns();
  if (!r->first_tsc) {
    r->first_tsc = tsc;
    r->first_ns = now;
  }
  if (tsc - r->first_tsc > MEASURED_CYCLES) {
    r->tick_ns = (double)(now - r->first_ns) / (double)(tsc - r->first_tsc);
    if (r->tick_ns > LONGEST_TICK_NS)
      r->tick_ns = 0;
  }
  r->tsc = tsc;
  r->clock_ns = now;
  return ljp_recorder_advance_time(r, now);
}

uint64_t ljp_recorder_time(struct ljp_recorder *r)
{
  uint64_t tsc = __rdtsc();
  return tsc - r->tsc > LJP_LOOK_CYCLES ? recorder_ask_clock(r, tsc)
                                        : r->time_ns;
}

uint64_t ljp_recorder_time_now(struct ljp_recorder *r)
{
  uint64_t tsc = __rdtsc(), since = tsc - r->tsc;
  if (LJP_UNLIKELY(since > COUNTED_CYCLES || r->tick_ns == 0))
    return recorder_ask_clock(r, tsc);
  /* Signed, because then each conversion is one instruction. */
  int64_t since_ns = (int64_t)((double)(int64_t)since * r->tick_ns);
  return ljp_recorder_advance_time(r, r->clock_ns + (uint64_t)since_ns);
}
