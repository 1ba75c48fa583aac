/*
** Records that hold many events: SAMPLES, MEM, NODES. This is where a reader
** spends its time. A number is fetched without looking at the record's end
** each time (the slack behind a payload makes that safe); an event that took
** bytes from beyond the end is found out once, afterwards.
*/
#include <string.h>

#include "parsers/record.h"
#include "src/sigsafe.h"
#include "src/varint.h"

/* The most that one event takes without its extra fields: two bytes and eight
** numbers. */
_Static_assert(LJP_BLOCK_SLACK >= 2 + 8 * LJP_VARINT_MAX_BYTES + 8,
               "an event fits the slack");

/* Reads a number at *p and moves it; false: more than 64 bits. */
static inline bool number(const uint8_t **p, uint64_t *value)
{
  uint64_t word;
  if (LJP_LIKELY(**p < 0x80)) {
    *value = *(*p)++;
    return true;
  }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(&word, *p, sizeof word);
  uint64_t stops = ~word & UINT64_C(0x8080808080808080);
  if (LJP_LIKELY(stops)) {
    /* Bytes up to the first without a continuation bit, 7 bits of each. */
    *p += (unsigned)(__builtin_ctzll(stops) + 1) / 8;
    word &= stops ^ (stops - 1);
    word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
    word = (word & UINT64_C(0x007f007f007f007f)) |
           (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) |
           (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    *value = (word & UINT64_C(0x0fffffff)) |
             (word & UINT64_C(0x0fffffff00000000)) >> 4;
    return true;
  }
#endif
  const uint8_t *next = ljp_get_varint(*p, *p + LJP_VARINT_MAX_BYTES, value);
  if (!next)
    return false;
  *p = next;
  return true;
}

static inline bool delta(const uint8_t **p, uint64_t *value)
{
  uint64_t zigzag;
  if (!number(p, &zigzag))
    return false;
  *value += (uint64_t)ljp_unzigzag(zigzag);
  return true;
}

/* Passes over the fields of newer versions. */
static bool extra(const uint8_t **p, const uint8_t *end)
{
  uint64_t n;
  if (*p > end || !number(p, &n) || *p > end || n > (uint64_t)(end - *p))
    return false;
  *p += n;
  return true;
}

static enum ljp_bad_reason bad_number(const uint8_t *p, const uint8_t *end)
{
  return end - p < LJP_VARINT_MAX_BYTES ? LJP_BAD_SHORT : LJP_BAD_NUMBER;
}

enum ljp_bad_reason ljp_sample_decode(const uint8_t **body, const uint8_t *end,
                                      struct ljp_event *event)
{
  struct ljp_rec_sample *s = &event->u.sample;
  const uint8_t *p = *body;
  unsigned has = *p++;
  if (LJP_UNLIKELY(has & ~LJP_SAMPLE_KNOWN))
    return LJP_BAD_RESERVED;
  if (!delta(&p, &event->time_ns))
    return bad_number(p, end);
  if ((has & LJP_SAMPLE_STACK) && !delta(&p, &s->stack))
    return bad_number(p, end);
  if (has & LJP_SAMPLE_STATE)
    s->state = *p++;
  if ((has & LJP_SAMPLE_VM) && !number(&p, &s->vm))
    return bad_number(p, end);
  if ((has & LJP_SAMPLE_WEIGHT) && !number(&p, &s->weight))
    return bad_number(p, end);
  s->cut = 0;
  if (has & LJP_SAMPLE_CUT)
    s->cut = *p++;
  if (LJP_UNLIKELY(has & LJP_SAMPLE_EXTRA) && !extra(&p, end))
    return LJP_BAD_SHORT;
  if (LJP_UNLIKELY(p > end))
    return LJP_BAD_SHORT;
  *body = p;
  return LJP_BAD_NONE;
}

enum ljp_bad_reason ljp_mem_decode(const uint8_t **body, const uint8_t *end,
                                   struct ljp_event *event)
{
  struct ljp_rec_mem *m = &event->u.mem;
  const uint8_t *p = *body;
  unsigned has = *p++;
  uint64_t rotated = ljp_rotate_address(m->address);
  if (LJP_UNLIKELY(has & ~LJP_MEM_KNOWN))
    return LJP_BAD_RESERVED;
  if ((has & LJP_MEM_OP_MASK) > LJP_MEM_REALLOC)
    return LJP_BAD_OPERATION;
  m->op = has & LJP_MEM_OP_MASK;
  if (!delta(&p, &event->time_ns) || !delta(&p, &rotated))
    return bad_number(p, end);
  m->address = ljp_unrotate_address(rotated);
  if ((has & LJP_MEM_SIZE) && !number(&p, &m->size))
    return bad_number(p, end);
  m->old_address = m->old_size = 0;
  if (m->op == LJP_MEM_REALLOC) {
    if (!delta(&p, &rotated) || !number(&p, &m->old_size))
      return bad_number(p, end);
    m->old_address = ljp_unrotate_address(rotated);
  }
  if ((has & LJP_MEM_STACK) && !delta(&p, &m->stack))
    return bad_number(p, end);
  if (has & LJP_MEM_STATE) {
    m->state = *p++;
    if (!number(&p, &m->vm))
      return bad_number(p, end);
  }
  if ((has & LJP_MEM_WEIGHT) && !number(&p, &m->weight))
    return bad_number(p, end);
  if (LJP_UNLIKELY(has & LJP_MEM_EXTRA) && !extra(&p, end))
    return LJP_BAD_SHORT;
  if (LJP_UNLIKELY(p > end))
    return LJP_BAD_SHORT;
  *body = p;
  return LJP_BAD_NONE;
}

enum ljp_bad_reason ljp_node_decode(const uint8_t **body, const uint8_t *end,
                                    struct ljp_event *event)
{
  struct ljp_rec_node *n = &event->u.node;
  const uint8_t *p = *body;
  uint64_t up;
  if (!delta(&p, &n->id) || !number(&p, &up))
    return bad_number(p, end);
  uint8_t byte = *p++;
  n->kind = byte >> 4;
  n->flags = byte & 15;
  n->ref = 0;
  if (ljp_frame_shape(n->kind) != LJP_SHAPE_NUM && !number(&p, &n->ref))
    return bad_number(p, end);
  if (!number(&p, &n->value))
    return bad_number(p, end);
  if (LJP_UNLIKELY(p > end))
    return LJP_BAD_SHORT;
  /* Ids of one epoch lie within LJP_EPOCH_MAX_NODES of each other. */
  if (up == 0 || up > n->id)
    return LJP_BAD_NODE_PARENT;
  if (up == n->id)
    up = 0;
  else if (up >= LJP_EPOCH_MAX_NODES)
    return LJP_BAD_NODE_PARENT;
  n->up = (uint32_t)up;
  *body = p;
  return LJP_BAD_NONE;
}
