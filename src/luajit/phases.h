/*
** The log of a VM's collector: its latest phases, which the recorder has not
** pushed yet. A busy program with a small heap may enter thousands of phases a
** second, so that neither the code nor the data of a push is in the processor's
** caches. A note in the log takes one line of each.
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

enum {
  LJP_PHASES_NOTED = 62,
  LJP_PHASE_BITS = 3,
  LJP_PHASE_MASK = (1 << LJP_PHASE_BITS) - 1
};

struct ljp_phase_log {
  _Alignas(
      64) _Atomic bool on; /* false: the listener gets each phase at once */
  _Atomic bool inside;     /* the hook is making a note */
  uint32_t count;
  uint64_t due_tsc; /* from then on the listener gets the next phase */
  struct ljp_phase_note {
    uint64_t tsc;
    uint64_t phase_bytes; /* bytes in the heap << LJP_PHASE_BITS | the phase */
  } note[LJP_PHASES_NOTED];
};

#endif
