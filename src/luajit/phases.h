/*
** The log of a VM's collector: its latest phases, which the recorder has not
** pushed yet. A busy program with a small heap may enter thousands of phases a
** second: too many for the cost of a push, and too few for its code and data to
** stay in the processor's caches. A note takes one cache line of each.
**
** The VM's own thread writes it, in the collector's hook, and reads it. Another
** thread first sets `on` to false, gives that store time to become visible, and
** waits until `inside` is false.
*/
#ifndef LJP_GUEST_PHASES_H
#define LJP_GUEST_PHASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/format.h"

enum {
  LJP_PHASES_NOTED = 62,
  LJP_PHASE_BITS = 3,
  LJP_PHASE_MASK = (1 << LJP_PHASE_BITS) - 1
};

struct ljp_phase_log {
  /* on: else the listener gets each phase at once. inside: the hook is making a
  ** note. */
  _Alignas(64) _Atomic bool on;
  _Atomic bool inside;
  uint32_t count;
  uint64_t due_tsc; /* a phase that comes later goes to the listener */
  uint64_t least_bytes, most_bytes; /* so does one with another heap */
  /* For the recorder: the same moment by the counter and by the clock. */
  uint64_t base_tsc, base_ns;
  struct ljp_phase_note {
    uint64_t tsc;
    uint64_t phase_bytes; /* bytes in the heap << LJP_PHASE_BITS | the phase */
  } note[LJP_PHASES_NOTED];
};

/* The cycles that have ended in it. Inline: another thread may ask while the VM's
** thread makes a note. */
static inline __attribute__((always_inline)) uint64_t
ljp_phases_cycles(const struct ljp_phase_log *log)
{
  uint64_t cycles = 0;
  for (uint32_t i = 0; i < log->count; i++)
    cycles += (log->note[i].phase_bytes & LJP_PHASE_MASK) == LJP_GC_PAUSE;
  return cycles;
}

#endif
