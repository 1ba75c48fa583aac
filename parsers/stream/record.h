/*
** Flat records: decodes the body of a record into an item. (bulk.h decodes
** records of many events.) The decoder never reads beyond the body, keeps no
** state between records, and says what is wrong with a malformed body. Any
** thread.
*/
#ifndef LJP_PARSERS_RECORD_H
#define LJP_PARSERS_RECORD_H

#include "parsers/stream/item.h"

enum ljp_field_type {
  LJP_FIELD_U,
  LJP_FIELD_U1,
  LJP_FIELD_S,
  LJP_FIELD_T,
  LJP_FIELD_STR,
  LJP_FIELD_PAIRS
};

/* How a view shows a field; see item.h. */
enum ljp_show {
  LJP_SHOW_DEC,
  LJP_SHOW_HEX,
  LJP_SHOW_TEXT,
  LJP_SHOW_BYTES,
  LJP_SHOW_RECORD,
  LJP_SHOW_PRODUCER,
  LJP_SHOW_VMSTATE,
  LJP_SHOW_GC_PHASE,
  LJP_SHOW_TRACE_WHAT,
  LJP_SHOW_INTERVAL_WHY,
  LJP_SHOW_EPOCH_WHY,
  LJP_SHOW_NOTE,
  LJP_SHOW_LOSS,
  LJP_SHOW_UNSAMPLED,
  LJP_SHOW_TIMER,
  LJP_SHOW_HEAP_TAKEN,
  LJP_SHOW_HEAP_CTYPE,
  LJP_SHOW_STATUS
};

struct ljp_field {
  const char *name;
  uint8_t type;    /* enum ljp_field_type */
  uint8_t show;    /* enum ljp_show */
  uint16_t offset; /* Of the member in the record's struct. */
};

/* The fields of a flat record and their number; NULL: not a flat record. */
const struct ljp_field *ljp_record_fields(uint64_t tag, unsigned *count);

/* Decodes a flat record into item->u, and item->time_ns if it has a time. */
enum ljp_bad_reason ljp_record_decode(uint64_t tag, const uint8_t *body,
                                      const uint8_t *end, uint64_t block_time,
                                      struct ljp_item *item);

#endif
