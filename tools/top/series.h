/*
** Series: what happened over time besides samples and allocations: the heap's
** size, the collector's phases, the trace compiler. Bounded: when the series is
** full, two ticks become one. One thread.
*/
#ifndef LJP_TOOLS_TOP_SERIES_H
#define LJP_TOOLS_TOP_SERIES_H

#include "parsers/stream/item.h"

#define LJP_SERIES_TICKS 4096u
#define LJP_SERIES_VMS 64u /* Further VMs count as one. */
#define LJP_SERIES_REASONS 64u
#define LJP_SERIES_REASON_BYTES 80u

struct ljp_series_tick {
  uint64_t heap_bytes; /* Of all VMs, at its end; 0: not known. */
  uint32_t phases;     /* Bit n: phase n was entered. */
  uint32_t cycles;     /* Of the collector, that ended. */
  uint32_t traces, aborts, flushes, blacklisted;
};

struct ljp_series_vm {
  uint64_t id, heap_bytes, cycle;
  uint8_t phase;
};

struct ljp_series_reason {
  char text[LJP_SERIES_REASON_BYTES];
  uint32_t text_len;
  uint64_t count;
};

struct ljp_series {
  struct ljp_series_tick ticks[LJP_SERIES_TICKS];
  uint32_t count;
  uint64_t tick_ns, origin_ns;
  bool begun;
  struct ljp_series_vm vms[LJP_SERIES_VMS + 1]; /* Last: all others. */
  uint32_t vm_count;
  uint64_t heap_bytes; /* Of all VMs now. */
  uint64_t last_bytes; /* The same, before the last VM was closed. */
  struct ljp_series_reason reasons[LJP_SERIES_REASONS];
  uint32_t reason_count;
  uint64_t more_reasons; /* Aborts for further reasons. */
};

void ljp_series_init(struct ljp_series *series);

/* Sees a GC or TRACE_EVENT item, and the time of any other item. */
void ljp_series_take(struct ljp_series *series, const struct ljp_item *item);

/* Sums over the ticks from a time (since the origin) on. */
struct ljp_series_tick ljp_series_sum(const struct ljp_series *series,
                                      uint64_t from_ns);

#endif
