/*
** Builder: gathers the records of one block, in the order in which they stand
** in the payload: definitions, nodes of the stack tree, events.
** Invariants: the buffers never grow; the caller asks ljp_builder_full before
** he adds and writes the block out first if it says so. Deltas start afresh in
** each record (RFC 1). Used by the writer thread only.
*/
#ifndef LJP_BUILDER_H
#define LJP_BUILDER_H

#include "src/base/format.h"
#include "src/push/producer.h"
#include "src/base/status.h"

#ifndef LJP_BLOCK_FILL_BYTES /* A block is written when a part reaches this.   \
                              */
#ifdef LJP_DEBUG
#define LJP_BLOCK_FILL_BYTES 1021u
#else
#define LJP_BLOCK_FILL_BYTES (64u << 10)
#endif
#endif

/* The largest single record that may be added to a part. */
#define LJP_RECORD_MAX_BYTES (40u << 10)

struct ljp_buffer {
  uint8_t *data;
  size_t len;
};

struct ljp_builder {
  struct ljp_buffer defs, nodes, events;
  uint32_t producer;
  uint64_t time_ns; /* Of the first event; 0 while there is none. */
  uint64_t last_node;
  /* The record of events that is open, if any, and its deltas' state. */
  uint8_t open_tag;
  size_t open_at;
  uint64_t last_time, last_stack, last_address, last_size, last_weight;
  uint32_t last_vm;
  uint8_t last_state, last_what;
  uint64_t events_in_block[64]; /* By tag; for TOTALS. */
};

enum ljp_status ljp_builder_init(struct ljp_builder *b);
void ljp_builder_fini(struct ljp_builder *b);
void ljp_builder_reset(struct ljp_builder *b, uint32_t producer);
bool ljp_builder_empty(const struct ljp_builder *b);

/* True if a part is so full that a record of the largest size may not fit. */
static inline bool ljp_builder_full(const struct ljp_builder *b)
{
  return b->defs.len >= LJP_BLOCK_FILL_BYTES ||
         b->nodes.len >= LJP_BLOCK_FILL_BYTES ||
         b->events.len >= LJP_BLOCK_FILL_BYTES;
}

/* A record whose body is ready. Definitions go before all events. */
void ljp_builder_define(struct ljp_builder *b, const uint8_t *record,
                        size_t len);
void ljp_builder_node(struct ljp_builder *b, uint64_t id, uint64_t parent,
                      unsigned kind, unsigned flags, uint64_t first,
                      uint64_t second);
void ljp_builder_sample(struct ljp_builder *b, const struct ljp_sample *s,
                        uint64_t stack);
/* stack: or that of the event before in the record, 0 in its first. */
#define LJP_STACK_AS_BEFORE UINT64_MAX
void ljp_builder_mem(struct ljp_builder *b, const struct ljp_mem *m,
                     uint64_t stack);
void ljp_builder_event(struct ljp_builder *b, enum ljp_record tag,
                       const uint8_t *body, size_t len);

/* Base of the block's times: the first event's, or this if there is none. */
uint64_t ljp_builder_base(struct ljp_builder *b, uint64_t time_ns);

/* Closes what is open and copies the payload to out, which has
** LJP_BLOCK_MAX_BYTES of room; returns its length. */
size_t ljp_builder_finish(struct ljp_builder *b, uint8_t *out);

/* -- Bodies, for definitions and events ---------------------------------- */

struct ljp_body {
  uint8_t data[LJP_RECORD_MAX_BYTES];
  size_t len;
};

void ljp_body_u(struct ljp_body *body, uint64_t value);
void ljp_body_s(struct ljp_body *body, int64_t value);

/* Cut to limit bytes. */
void ljp_body_str(struct ljp_body *body, const char *text, size_t len,
                  size_t limit);

/* Writes tag, length and body to out (room: body + 8); returns the length. */
size_t ljp_body_record(const struct ljp_body *body, enum ljp_record tag,
                       uint8_t *out);

#endif
