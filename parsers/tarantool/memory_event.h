/*
** The bytes of a memory event. The caller has LJP_TARANTOOL_MEMORY_BYTES and a
** word of readable bytes at p.
*/
#ifndef LJP_PARSERS_TARANTOOL_MEMORY_EVENT_H
#define LJP_PARSERS_TARANTOOL_MEMORY_EVENT_H

#include "parsers/tarantool/number.h"
#include "parsers/tarantool/reader.h"

/* Whether a byte is the header of a memory event. */
static inline bool ljp_memory_event_begins(unsigned head)
{
  return (head & 3) && head >> 2 >= LJP_LJM_INTERNAL &&
         head >> 2 <= LJP_LJM_TRACE;
}

/* Reads an event, whose header is at *p, and moves p; false: p is at a number
** of more than 64 bits. */
static inline bool ljp_memory_event_get(const uint8_t **p,
                                        struct ljp_tarantool_memory *m)
{
  unsigned head = *(*p)++;
  m->kind = head & 3;
  m->source = (uint8_t)(head >> LJP_LJM_SOURCE_SHIFT);
  m->place = m->line = m->old_address = m->old_size = 0;
  if (m->source != LJP_LJM_INTERNAL) {
    if (LJP_UNLIKELY(!ljp_number_address(p, &m->place)))
      return false;
    if (m->source == LJP_LJM_LFUNC &&
        LJP_UNLIKELY(!ljp_number_get(p, &m->line)))
      return false;
  }
  if (m->kind == LJP_LJM_REALLOC &&
      LJP_UNLIKELY(!ljp_number_address(p, &m->old_address) ||
                   !ljp_number_get(p, &m->old_size)))
    return false;
  return LJP_LIKELY(ljp_number_address(p, &m->address) &&
                    ljp_number_get(p, &m->size));
}

#endif
