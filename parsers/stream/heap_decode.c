/*
** See heap_decode.h.
*/
#include "parsers/stream/heap_decode.h"

#include <string.h>

#include "src/base/varint.h"

/* The rest of a record. */
struct cursor {
  const uint8_t *p, *end;
  enum ljp_bad_reason bad; /* The first thing that was wrong. */
};

static uint64_t decode_number(struct cursor *c)
{
  uint64_t value = 0;
  if (c->bad)
    return 0;
  const uint8_t *next = ljp_get_varint(c->p, c->end, &value);
  if (!next) {
    c->bad =
        c->end - c->p < LJP_VARINT_MAX_BYTES ? LJP_BAD_SHORT : LJP_BAD_NUMBER;
    return 0;
  }
  c->p = next;
  return value;
}

static uint8_t decode_byte(struct cursor *c)
{
  if (!c->bad && c->p == c->end)
    c->bad = LJP_BAD_SHORT;
  return c->bad ? 0 : *c->p++;
}

static struct ljp_str decode_text(struct cursor *c, uint64_t limit)
{
  uint64_t len = decode_number(c);
  if (!c->bad && (len > limit || len > (uint64_t)(c->end - c->p)))
    c->bad = LJP_BAD_STRING;
  if (c->bad)
    return (struct ljp_str){"", 0};
  struct ljp_str text = {(const char *)c->p, (uint32_t)len};
  c->p += len;
  return text;
}

static uint64_t decode_address(struct cursor *c, uint64_t before)
{
  uint64_t address = before + (uint64_t)ljp_unzigzag(decode_number(c));
  if (!c->bad && (!address || address >> (64 - LJP_HEAP_ALIGN_SHIFT)))
    c->bad = LJP_BAD_ADDRESS;
  return address;
}

static uint64_t decode_target(struct ljp_heap_decoder *d, struct cursor *c)
{
  uint64_t number = decode_number(c), target;
  if (c->bad)
    return 0;
  if (number & 1) {
    number >>= 1;
    target = number < LJP_HEAP_TABLE_SLOTS ? d->table[number] : 0;
  } else {
    target = d->last_target + (uint64_t)ljp_unzigzag(number >> 1);
    if (target >> (64 - LJP_HEAP_ALIGN_SHIFT))
      target = 0;
    if (target) {
      d->last_target = target;
      d->table[ljp_heap_table_slot(target)] = target;
    }
  }
  if (!target)
    c->bad = LJP_BAD_ADDRESS;
  return target << LJP_HEAP_ALIGN_SHIFT;
}

enum ljp_bad_reason ljp_heap_decode_begin(struct ljp_heap_decoder *d,
                                          const uint8_t **body,
                                          const uint8_t *end)
{
  struct cursor c = {*body, end, LJP_BAD_NONE};
  memset(d, 0, sizeof *d);
  d->snapshot = decode_number(&c);
  *body = c.p;
  return c.bad;
}

static void decode_object(struct ljp_heap_decoder *d, struct cursor *c,
                          struct ljp_item *item)
{
  struct ljp_rec_object *o = &item->u.object;
  memset(o, 0, sizeof *o);
  uint8_t head = decode_byte(c);
  item->what = LJP_REC_OBJECTS;
  o->snapshot = d->snapshot;
  o->type = head & LJP_HEAP_TYPE_MASK;
  if (head & LJP_HEAP_HAS_FLAGS)
    o->flags = decode_byte(c);
  d->object = d->last_target = decode_address(c, d->object);
  o->address = d->object << LJP_HEAP_ALIGN_SHIFT;
  o->text = (struct ljp_str){"", 0};
  if (o->type != LJP_MEM_TYPE_NONE) {
    unsigned count = ljp_heap_numbers(o->type);
    o->bytes = decode_number(c);
    for (unsigned i = 0; i < count; i++)
      o->numbers[i] = decode_number(c);
    if (ljp_heap_has_text(o->type))
      o->text = decode_text(c, LJP_HEAP_TEXT_MAX_BYTES);
  }
  o->extra = head & LJP_HEAP_EXTRA;
  if (o->extra)
    decode_text(c, LJP_BLOCK_MAX_BYTES);
  d->in_refs = head & LJP_HEAP_HAS_REFS;
  d->run_left = 0;
}

/* The fields between a reference's first byte and its target. */
static void decode_how(struct ljp_heap_decoder *d, struct cursor *c,
                       struct ljp_rec_ref *ref)
{
  switch (ljp_heap_shape(ref->how)) {
  case LJP_HEAP_SHAPE_RUN:
    ref->number = decode_number(c);
    d->run_left = decode_byte(c);
    if (!c->bad && (!d->run_left || d->run_left > LJP_HEAP_RUN_MAX))
      c->bad = LJP_BAD_PAIRS;
    d->run_left--;
    d->run_how = ref->how | ref->flags;
    d->run_next = ref->number + 1;
    break;
  case LJP_HEAP_SHAPE_PAIR:
    ref->key = decode_target(d, c);
    break;
  case LJP_HEAP_SHAPE_SIGNED:
    ref->number = (uint64_t)ljp_unzigzag(decode_number(c));
    break;
  case LJP_HEAP_SHAPE_LINE:
    ref->number = decode_number(c);
    break;
  case LJP_HEAP_SHAPE_BITS:
    for (int shift = 0; shift < 64; shift += 8)
      ref->number |= (uint64_t)decode_byte(c) << shift;
    break;
  case LJP_HEAP_SHAPE_TEXT:
    ref->name = decode_text(c, LJP_HEAP_TEXT_MAX_BYTES);
    break;
  case LJP_HEAP_SHAPE_PLAIN:
  case LJP_HEAP_SHAPE_NONE:
    break;
  }
}

static void decode_ref(struct ljp_heap_decoder *d, struct cursor *c,
                       struct ljp_item *item)
{
  struct ljp_rec_ref *ref = &item->u.ref;
  memset(ref, 0, sizeof *ref);
  ref->snapshot = d->snapshot;
  ref->object = d->object << LJP_HEAP_ALIGN_SHIFT;
  ref->name = (struct ljp_str){"", 0};
  uint8_t head = d->run_how;
  bool runs = d->run_left > 0;
  if (runs) {
    d->run_left--;
    ref->number = d->run_next++;
  } else {
    head = decode_byte(c);
  }
  ref->how = head & LJP_HEAP_HOW_MASK;
  ref->flags = head & (uint8_t)~LJP_HEAP_HOW_MASK;
  item->what = LJP_ITEM_REF;
  if (!runs && ref->how == LJP_HEAP_HOW_END) {
    item->what = LJP_ITEM_BLOCK;
    d->in_refs = false;
    return;
  }
  if (!runs)
    decode_how(d, c, ref);
  ref->target = decode_target(d, c);
}

enum ljp_bad_reason ljp_heap_decode(struct ljp_heap_decoder *d,
                                    const uint8_t **body, const uint8_t *end,
                                    struct ljp_item *item)
{
  struct cursor c = {*body, end, LJP_BAD_NONE};
  item->time_ns = 0;
  if (d->in_refs)
    decode_ref(d, &c, item);
  else
    decode_object(d, &c, item);
  *body = c.p;
  return c.bad;
}
