/*
** See builder.h. Each part is a buffer of LJP_BLOCK_FILL_BYTES and the largest
** record. Writer thread only.
*/
#include "src/writer/builder.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/varint.h"

enum { PART_BYTES = LJP_BLOCK_FILL_BYTES + LJP_RECORD_MAX_BYTES + 64 };
_Static_assert(3 * (uint64_t)PART_BYTES < LJP_BLOCK_MAX_BYTES,
               "a block holds its three parts");

enum ljp_status ljp_builder_init(struct ljp_builder *b)
{
  memset(b, 0, sizeof *b);
  b->defs.data = malloc(3 * (size_t)PART_BYTES);
  if (!b->defs.data)
    return LJP_ERR_MEM;
  b->nodes.data = b->defs.data + PART_BYTES;
  b->events.data = b->nodes.data + PART_BYTES;
  return LJP_OK;
}

void ljp_builder_fini(struct ljp_builder *b)
{
  free(b->defs.data);
  b->defs.data = NULL;
}

void ljp_builder_reset(struct ljp_builder *b, uint32_t producer)
{
  b->defs.len = b->nodes.len = b->events.len = 0;
  b->producer = producer;
  b->time_ns = 0;
  b->last_node = 0;
  b->open_tag = 0;
  memset(b->events_in_block, 0, sizeof b->events_in_block);
}

bool ljp_builder_empty(const struct ljp_builder *b)
{
  return b->defs.len + b->nodes.len + b->events.len == 0;
}

/* The length of a record is known when it is closed: its varint is padded to 3
** bytes. */
static size_t builder_open_record(struct ljp_buffer *buffer, uint8_t tag)
{
  buffer->data[buffer->len] = tag;
  buffer->len += 4;
  return buffer->len;
}

static void builder_close_record(struct ljp_buffer *buffer, size_t at)
{
  size_t len = buffer->len - at;
  ljp_assert(len < 1u << 21);
  uint8_t *p = buffer->data + at - 3;
  p[0] = (uint8_t)(len | 0x80);
  p[1] = (uint8_t)(len >> 7 | 0x80);
  p[2] = (uint8_t)(len >> 14);
}

static void builder_close_events(struct ljp_builder *b)
{
  if (b->open_tag)
    builder_close_record(&b->events, b->open_at);
  b->open_tag = 0;
}

uint64_t ljp_builder_base(struct ljp_builder *b, uint64_t time_ns)
{
  if (!b->time_ns)
    b->time_ns = time_ns;
  return b->time_ns;
}

static void builder_open_events(struct ljp_builder *b, uint8_t tag,
                                uint64_t time_ns)
{
  if (b->open_tag == tag)
    return;
  builder_close_events(b);
  b->last_time = ljp_builder_base(b, time_ns);
  b->last_stack = b->last_address = b->last_size = b->last_weight = 0;
  b->last_vm = 0;
  b->last_state = b->last_what = 0;
  b->open_at = builder_open_record(&b->events, tag);
  b->open_tag = tag;
}

void ljp_builder_define(struct ljp_builder *b, const uint8_t *record,
                        size_t len)
{
  ljp_assert(b->defs.len + len <= PART_BYTES);
  memcpy(b->defs.data + b->defs.len, record, len);
  b->defs.len += len;
}

void ljp_builder_node(struct ljp_builder *b, uint64_t id, uint64_t parent,
                      unsigned kind, unsigned flags, uint64_t first,
                      uint64_t second)
{
  if (!b->nodes.len)
    builder_open_record(&b->nodes, LJP_REC_NODES);
  ljp_assert(parent < id && kind < 16 && flags < 16);
  ljp_assert(b->nodes.len < LJP_BLOCK_FILL_BYTES + 4);
  uint8_t *p = b->nodes.data + b->nodes.len;
  p = ljp_put_delta(p, id, b->last_node);
  p = ljp_put_varint(p, id - parent);
  *p++ = (uint8_t)(kind << 4 | flags);
  p = ljp_put_varint(p, first);
  if (ljp_frame_shape(kind) != LJP_SHAPE_NUM)
    p = ljp_put_varint(p, second);
  b->nodes.len = (size_t)(p - b->nodes.data);
  b->last_node = id;
}

void ljp_builder_sample(struct ljp_builder *b, const struct ljp_sample *s,
                        uint64_t stack)
{
  ljp_assert(b->events.len < LJP_BLOCK_FILL_BYTES);
  builder_open_events(b, LJP_REC_SAMPLES, s->time_ns);
  uint8_t *first = b->events.data + b->events.len, *p = first + 1;
  *first = 0;
  p = ljp_put_delta(p, s->time_ns, b->last_time);
  if (stack != b->last_stack) {
    *first |= LJP_SAMPLE_STACK;
    p = ljp_put_delta(p, stack, b->last_stack);
  }
  if (s->vmstate != b->last_state) {
    *first |= LJP_SAMPLE_STATE;
    *p++ = s->vmstate;
  }
  if (s->vm != b->last_vm) {
    *first |= LJP_SAMPLE_VM;
    p = ljp_put_varint(p, s->vm);
  }
  if (s->weight != b->last_weight) {
    *first |= LJP_SAMPLE_WEIGHT;
    p = ljp_put_varint(p, s->weight);
  }
  if (s->cut) {
    *first |= LJP_SAMPLE_CUT;
    *p++ = s->cut;
  }
  b->last_time = s->time_ns;
  b->last_stack = stack;
  b->last_state = s->vmstate;
  b->last_vm = s->vm;
  b->last_weight = s->weight;
  b->events.len = (size_t)(p - b->events.data);
  b->events_in_block[LJP_REC_SAMPLES]++;
}

void ljp_builder_mem(struct ljp_builder *b, const struct ljp_mem *m,
                     uint64_t stack)
{
  ljp_assert(b->events.len < LJP_BLOCK_FILL_BYTES);
  ljp_assert(m->op <= LJP_MEM_REALLOC);
  builder_open_events(b, LJP_REC_MEM, m->time_ns);
  if (stack == LJP_STACK_AS_BEFORE)
    stack = b->last_stack;
  uint64_t address = ljp_rotate_address(m->address);
  uint8_t *first = b->events.data + b->events.len, *p = first + 1;
  *first = m->op;
  p = ljp_put_delta(p, m->time_ns, b->last_time);
  p = ljp_put_delta(p, address, b->last_address);
  if (m->size != b->last_size) {
    *first |= LJP_MEM_SIZE;
    p = ljp_put_varint(p, m->size);
  }
  if (m->op == LJP_MEM_REALLOC) {
    p = ljp_put_delta(p, ljp_rotate_address(m->old_address), address);
    p = ljp_put_varint(p, m->old_size);
  }
  if (stack != b->last_stack) {
    *first |= LJP_MEM_STACK;
    p = ljp_put_delta(p, stack, b->last_stack);
  }
  if (m->vmstate != b->last_state || m->vm != b->last_vm) {
    *first |= LJP_MEM_STATE;
    *p++ = m->vmstate;
    p = ljp_put_varint(p, m->vm);
  }
  if (m->weight != b->last_weight) {
    *first |= LJP_MEM_WEIGHT;
    p = ljp_put_varint(p, m->weight);
  }
  if (m->what != b->last_what) {
    *first |= LJP_MEM_WHAT;
    *p++ = m->what;
  }
  b->last_time = m->time_ns;
  b->last_address = address;
  b->last_size = m->size;
  b->last_stack = stack;
  b->last_state = m->vmstate;
  b->last_vm = m->vm;
  b->last_weight = m->weight;
  b->last_what = m->what;
  b->events.len = (size_t)(p - b->events.data);
  b->events_in_block[LJP_REC_MEM]++;
}

void ljp_builder_event(struct ljp_builder *b, enum ljp_record tag,
                       const uint8_t *body, size_t len)
{
  builder_close_events(b);
  uint8_t *p = b->events.data + b->events.len;
  ljp_assert(b->events.len + len + 8 <= PART_BYTES);
  *p++ = (uint8_t)tag;
  p = ljp_put_varint(p, len);
  memcpy(p, body, len);
  b->events.len = (size_t)(p + len - b->events.data);
  b->events_in_block[tag]++;
}

size_t ljp_builder_finish(struct ljp_builder *b, uint8_t *out)
{
  const struct ljp_buffer *parts[] = {&b->defs, &b->nodes, &b->events};
  size_t len = 0;
  builder_close_events(b);
  if (b->nodes.len) /* Behind tag and length of the one record there. */
    builder_close_record(&b->nodes, 4);
  for (int i = 0; i < 3; i++) {
    memcpy(out + len, parts[i]->data, parts[i]->len);
    len += parts[i]->len;
  }
  return len;
}

void ljp_body_u(struct ljp_body *body, uint64_t value)
{
  ljp_assert(body->len + LJP_VARINT_MAX_BYTES <= sizeof body->data);
  body->len =
      (size_t)(ljp_put_varint(body->data + body->len, value) - body->data);
}

void ljp_body_s(struct ljp_body *body, int64_t value)
{
  ljp_body_u(body, ljp_zigzag(value));
}

void ljp_body_str(struct ljp_body *body, const char *text, size_t len,
                  size_t limit)
{
  if (len > limit)
    len = limit;
  ljp_body_u(body, len);
  ljp_assert(body->len + len <= sizeof body->data);
  if (len) /* Without memory for the text there is no pointer either. */
    memcpy(body->data + body->len, text, len);
  body->len += len;
}

size_t ljp_body_record(const struct ljp_body *body, enum ljp_record tag,
                       uint8_t *out)
{
  uint8_t *p = out;
  *p++ = (uint8_t)tag;
  p = ljp_put_varint(p, body->len);
  memcpy(p, body->data, body->len);
  return (size_t)(p + body->len - out);
}
