/*
** Many memory events at once, out of the reader's window. Where the window
** ends, or something else comes, ljp_tarantool_next() takes over, and finds
** what is wrong. One thread a reader.
*/
#include "parsers/tarantool/memory_event.h"

uint32_t ljp_tarantool_next_memory(struct ljp_tarantool_reader *r,
                                   struct ljp_tarantool_memory *events,
                                   uint32_t most)
{
  const uint8_t *at = r->at, *end = r->end;
  uint32_t n = 0;
  if (!r->memory || r->done)
    return 0;
  while (n < most && end - at >= (ptrdiff_t)LJP_TARANTOOL_MEMORY_BYTES) {
    const uint8_t *p = at;
    if (LJP_UNLIKELY(!ljp_memory_event_begins(*p)) ||
        LJP_UNLIKELY(!ljp_memory_event_get(&p, &events[n])))
      break;
    at = p;
    n++;
  }
  r->at += at - r->at;
  r->events += n;
  return n;
}
