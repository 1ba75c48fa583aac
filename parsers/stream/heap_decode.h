/*
** OBJECTS: the records that hold the objects of a heap snapshot and their
** references (RFC 7). Each call decodes the next object or reference of a
** record. Input is untrusted. Any thread.
*/
#ifndef LJP_PARSERS_HEAP_DECODE_H
#define LJP_PARSERS_HEAP_DECODE_H

#include "parsers/stream/record.h"
#include "src/base/heap_format.h"

/* Addresses in here are divided, as the stream has them. */
struct ljp_heap_decoder {
  uint64_t snapshot;
  uint64_t object, last_target;
  bool in_refs; /* The next entry is a reference of the object. */
  uint8_t run_how;
  unsigned run_left; /* Targets of the run that are still to come. */
  uint64_t run_next;
  uint64_t table[LJP_HEAP_TABLE_SLOTS];
};

/* Begins a record. */
enum ljp_bad_reason ljp_heap_decode_begin(struct ljp_heap_decoder *d,
                                          const uint8_t **body,
                                          const uint8_t *end);

/* The next entry at *body (*body < end). item->what becomes LJP_REC_OBJECTS,
** LJP_ITEM_REF, or LJP_ITEM_BLOCK if there is none (the end of references). */
enum ljp_bad_reason ljp_heap_decode(struct ljp_heap_decoder *d,
                                    const uint8_t **body, const uint8_t *end,
                                    struct ljp_item *item);

/* The record has ended. */
static inline enum ljp_bad_reason
ljp_heap_decode_end(const struct ljp_heap_decoder *d)
{
  return d->in_refs ? LJP_BAD_SHORT : LJP_BAD_NONE;
}

#endif
