/*
** Builder: collects the records of one block in three parts, in the order of
** the payload: definitions, nodes of the stack tree, events.
** Invariants: the buffers never grow. Before the caller adds a record it asks
** ljp_builder_full(), and if so writes the block first. Deltas start afresh in
** each record (RFC 1). Writer thread only.
*/
#ifndef LJP_BUILDER_H
#define LJP_BUILDER_H

#include "src/base/assert.h"
#include "src/base/format.h"
#include "src/base/status.h"
#include "src/base/varint.h"
#include "src/push/producer.h"

/* A block is written when a part reaches this. */
#ifndef LJP_BLOCK_FILL_BYTES
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
  /* The open record of events, if any, and the state of its deltas. */
  uint8_t open_tag;
  size_t open_at;
  uint64_t last_time, last_stack, last_address, last_size, last_weight;
  uint32_t last_vm;
  uint8_t last_state, last_what;
  uint64_t events_in_block[LJP_RECORD_TAGS]; /* By tag; for TOTALS. */
};

enum ljp_status ljp_builder_init(struct ljp_builder *b);
void ljp_builder_fini(struct ljp_builder *b);
void ljp_builder_reset(struct ljp_builder *b, uint32_t producer);
bool ljp_builder_empty(const struct ljp_builder *b);

/* True if the largest record may not fit into a part. */
static inline bool ljp_builder_full(const struct ljp_builder *b)
{
  return b->defs.len >= LJP_BLOCK_FILL_BYTES ||
         b->nodes.len >= LJP_BLOCK_FILL_BYTES ||
         b->events.len >= LJP_BLOCK_FILL_BYTES;
}

/* Adds a whole record to the definitions, which precede all events. */
void ljp_builder_define(struct ljp_builder *b, const uint8_t *record,
                        size_t len);
void ljp_builder_node(struct ljp_builder *b, uint64_t id, uint64_t parent,
                      unsigned kind, unsigned flags, uint64_t first,
                      uint64_t second);
void ljp_builder_sample(struct ljp_builder *b, const struct ljp_sample *s,
                        uint64_t stack);
/* stack: an id, or LJP_STACK_AS_BEFORE for the stack of the event before in the
** same record (0 in its first event). */
#define LJP_STACK_AS_BEFORE UINT64_MAX
void ljp_builder_mem(struct ljp_builder *b, const struct ljp_mem *m,
                     uint64_t stack);
/* Adds memory events to the open record. Each of them has the time, the VM and
** the weight of the one before, and none is a reallocation. Until the run ends,
** the last event is remembered here instead of in the builder. */
struct ljp_mem_run {
  uint8_t *end;        /* of the last event */
  const uint8_t *full; /* no event may begin here or later */
  uint64_t count, address, size, stack;
  uint32_t vm;
  uint8_t state, what;
};

/* Begins a run after an event that ljp_builder_mem() has added. */
static inline struct ljp_mem_run ljp_builder_begin_run(struct ljp_builder *b)
{
  ljp_assert(b->open_tag == LJP_REC_MEM);
  return (struct ljp_mem_run){.end = b->events.data + b->events.len,
                              .full = b->events.data + LJP_BLOCK_FILL_BYTES,
                              .address = b->last_address,
                              .size = b->last_size,
                              .stack = b->last_stack,
                              .vm = b->last_vm,
                              .state = b->last_state,
                              .what = b->last_what};
}

static inline void ljp_builder_end_run(struct ljp_builder *b,
                                       const struct ljp_mem_run *run)
{
  b->events.len = (size_t)(run->end - b->events.data);
  b->events_in_block[LJP_REC_MEM] += run->count;
  b->last_address = run->address;
  b->last_size = run->size;
  b->last_stack = run->stack;
  b->last_state = run->state;
  b->last_what = run->what;
}

/* Only if run->end < run->full. stack: as in ljp_builder_mem(). */
static inline void ljp_mem_run_add(struct ljp_mem_run *run, uint8_t op,
                                   uint64_t address, uint64_t size,
                                   uint64_t stack, uint8_t state, uint8_t what)
{
  uint8_t *first = run->end, *p = first + 2, flags = op;
  ljp_assert(first < run->full && op < LJP_MEM_REALLOC);
  first[1] = 0; /* the time's delta */
  address = ljp_rotate_address(address);
  p = ljp_put_varint_quick(p, ljp_zigzag((int64_t)(address - run->address)));
  run->address = address;
  if (size != run->size) {
    flags |= LJP_MEM_SIZE;
    p = ljp_put_varint(p, size);
    run->size = size;
  }
  if (stack != LJP_STACK_AS_BEFORE && stack != run->stack) {
    flags |= LJP_MEM_STACK;
    p = ljp_put_delta(p, stack, run->stack);
    run->stack = stack;
  }
  if (state != run->state) {
    flags |= LJP_MEM_STATE;
    *p++ = run->state = state;
    p = ljp_put_varint(p, run->vm);
  }
  if (what != run->what) {
    flags |= LJP_MEM_WHAT;
    *p++ = run->what = what;
  }
  *first = flags;
  run->end = p;
  run->count++;
}

void ljp_builder_event(struct ljp_builder *b, enum ljp_record tag,
                       const uint8_t *body, size_t len);

/* Base of the block's times: the time of the first event. Sets it to time_ns if
** there is none yet. */
uint64_t ljp_builder_base(struct ljp_builder *b, uint64_t time_ns);

/* Closes the open records and copies the payload to out, which has
** LJP_BLOCK_MAX_BYTES of room. Returns the payload's length. */
size_t ljp_builder_finish(struct ljp_builder *b, uint8_t *out);

/* -- Bodies, for definitions and events ---------------------------------- */

struct ljp_body {
  uint8_t data[LJP_RECORD_MAX_BYTES];
  size_t len;
};

void ljp_body_u(struct ljp_body *body, uint64_t value);
void ljp_body_s(struct ljp_body *body, int64_t value);

/* Cuts the text to limit bytes. */
void ljp_body_str(struct ljp_body *body, const char *text, size_t len,
                  size_t limit);

/* Writes tag, length and body to out, which has room for the body and 8 bytes.
** Returns the length of the record. */
size_t ljp_body_record(const struct ljp_body *body, enum ljp_record tag,
                       uint8_t *out);

#endif
