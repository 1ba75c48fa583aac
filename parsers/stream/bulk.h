/*
** Bulk records, which hold many events or nodes: SAMPLES, MEM, NODES. Each
** call decodes the next one at *body (*body < end) into item->u, which must
** still hold the one before (all zero before the first), and moves *body.
**
** A reader spends most of its time here, so the functions are inlined into the
** iterator. A number is read without comparing with the record's end: the
** LJP_BLOCK_SLACK bytes after it may be read. Whether an event took bytes from
** beyond the end is checked once, after its last field. Any thread.
*/
#ifndef LJP_PARSERS_BULK_H
#define LJP_PARSERS_BULK_H

#include <string.h>

#include "parsers/stream/record.h"
#include "src/base/sigsafe.h"
#include "src/base/varint.h"

/* An event without its extra fields takes at most three bytes and eight
** numbers; a number is loaded as a word of 8 bytes. */
_Static_assert(LJP_BLOCK_SLACK >= 3 + 8 * LJP_VARINT_MAX_BYTES + 8,
               "an event fits into the slack");

/* Not inlined, and takes no address of the caller's p, which so stays in a
** register: long numbers are rare. NULL: more than 64 bits. */
static __attribute__((noinline, unused)) const uint8_t *
ljp_bulk_long(const uint8_t *p, uint64_t *value)
{
  return ljp_get_varint(p, p + LJP_VARINT_MAX_BYTES, value);
}

/* Reads a number at *p and moves p; false: more than 64 bits. There is no
** branch on the number of bytes up to four, since in real streams it varies. */
static inline bool ljp_bulk_number(const uint8_t **p, uint64_t *value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint32_t word;
  memcpy(&word, *p, sizeof word);
  uint32_t stops = ~word & 0x80808080u;
  if (LJP_LIKELY(stops)) {
    /* Bytes up to the first without a continuation bit, 7 bits of each. */
    *p += (unsigned)(__builtin_ctz(stops) + 1) / 8;
    word &= stops ^ (stops - 1);
    *value = (word & 0x7fu) | (word >> 1 & 0x3f80u) | (word >> 2 & 0x1fc000u) |
             (word >> 3 & 0xfe00000u);
    return true;
  }
#endif
  uint64_t number;
  const uint8_t *next = ljp_bulk_long(*p, &number);
  if (!next)
    return false;
  *p = next;
  *value = number;
  return true;
}

/* Reads two numbers, like two calls of ljp_bulk_number(). The place of an event
** is known only when the lengths of all numbers before it are, and the
** processor waits for that. So both numbers are read by one load if they are
** short. */
static inline bool ljp_bulk_two(const uint8_t **p, uint64_t *a, uint64_t *b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  memcpy(&word, *p, sizeof word);
  uint64_t stops = ~word & UINT64_C(0x8080808080808080);
  uint64_t others = stops & (stops - 1);
  if (LJP_LIKELY(others)) {
    unsigned first = (unsigned)__builtin_ctzll(stops) + 1; /* In bits. */
    unsigned both = (unsigned)__builtin_ctzll(others) + 1;
    if (LJP_LIKELY(first <= 32 && both - first <= 32)) {
      /* Move the numbers to the two halves of the word, then join the 7 bits
      ** of each byte in both halves at once. */
      word &= others ^ (others - 1);
      word = (word & (stops ^ (stops - 1))) | word >> first << 32;
      word = (word & UINT64_C(0x007f007f007f007f)) |
             (word >> 1 & UINT64_C(0x3f803f803f803f80));
      word = (word & UINT64_C(0x00003fff00003fff)) |
             (word >> 2 & UINT64_C(0x0fffc0000fffc000));
      *p += both / 8;
      *a = (uint32_t)word;
      *b = word >> 32;
      return true;
    }
  }
#endif
  return ljp_bulk_number(p, a) && ljp_bulk_number(p, b);
}

static inline bool ljp_bulk_two_deltas(const uint8_t **p, uint64_t *a,
                                       uint64_t *b)
{
  uint64_t x, y;
  if (!ljp_bulk_two(p, &x, &y))
    return false;
  *a += (uint64_t)ljp_unzigzag(x);
  *b += (uint64_t)ljp_unzigzag(y);
  return true;
}

static inline bool ljp_bulk_delta(const uint8_t **p, uint64_t *value)
{
  uint64_t zigzag;
  if (!ljp_bulk_number(p, &zigzag))
    return false;
  *value += (uint64_t)ljp_unzigzag(zigzag);
  return true;
}

/* Skips the fields of newer versions. */
static inline bool ljp_bulk_extra(const uint8_t **p, const uint8_t *end)
{
  uint64_t n;
  if (*p > end || !ljp_bulk_number(p, &n) || *p > end ||
      n > (uint64_t)(end - *p))
    return false;
  *p += n;
  return true;
}

static inline enum ljp_bad_reason ljp_bulk_bad(const uint8_t *p,
                                               const uint8_t *end)
{
  return end - p < LJP_VARINT_MAX_BYTES ? LJP_BAD_SHORT : LJP_BAD_NUMBER;
}

/* Decodes a sample. No branch depends on whether the sample has a state, which
** varies from one to the next. Fields other than stack and state are rare. */
static inline __attribute__((always_inline)) enum ljp_bad_reason
ljp_sample_step(const uint8_t **body, const uint8_t *end, uint64_t *time_ns,
                struct ljp_rec_sample *s)
{
  const uint8_t *p = *body;
  unsigned has = *p++;
  if (!(LJP_LIKELY(has & LJP_SAMPLE_STACK)
            ? ljp_bulk_two_deltas(&p, time_ns, &s->stack)
            : ljp_bulk_delta(&p, time_ns)))
    return has & ~LJP_SAMPLE_KNOWN ? LJP_BAD_RESERVED : ljp_bulk_bad(p, end);
  unsigned with_state = has / LJP_SAMPLE_STATE & 1;
  s->state ^= (uint8_t)((s->state ^ *p) & (0u - with_state));
  p += with_state;
  s->cut = 0;
  if (LJP_UNLIKELY(has & ~(LJP_SAMPLE_STACK | LJP_SAMPLE_STATE))) {
    if (has & ~LJP_SAMPLE_KNOWN)
      return LJP_BAD_RESERVED;
    if ((has & LJP_SAMPLE_VM) && !ljp_bulk_number(&p, &s->vm))
      return ljp_bulk_bad(p, end);
    if ((has & LJP_SAMPLE_WEIGHT) && !ljp_bulk_number(&p, &s->weight))
      return ljp_bulk_bad(p, end);
    if (has & LJP_SAMPLE_CUT)
      s->cut = *p++;
    if ((has & LJP_SAMPLE_EXTRA) && !ljp_bulk_extra(&p, end))
      return LJP_BAD_SHORT;
  }
  if (LJP_UNLIKELY(p > end))
    return LJP_BAD_SHORT;
  *body = p;
  return LJP_BAD_NONE;
}

static inline enum ljp_bad_reason ljp_sample_decode(const uint8_t **body,
                                                    const uint8_t *end,
                                                    struct ljp_item *item)
{
  return ljp_sample_step(body, end, &item->time_ns, &item->u.sample);
}

static inline enum ljp_bad_reason
ljp_mem_decode(const uint8_t **body, const uint8_t *end, struct ljp_item *item)
{
  struct ljp_rec_mem *m = &item->u.mem;
  const uint8_t *p = *body;
  unsigned has = *p++;
  uint64_t rotated = ljp_rotate_address(m->address);
  if ((has & LJP_MEM_OP_MASK) > LJP_MEM_REALLOC)
    return LJP_BAD_OPERATION;
  m->op = has & LJP_MEM_OP_MASK;
  if (!ljp_bulk_two_deltas(&p, &item->time_ns, &rotated))
    return ljp_bulk_bad(p, end);
  m->address = ljp_unrotate_address(rotated);
  if ((has & LJP_MEM_SIZE) && !ljp_bulk_number(&p, &m->size))
    return ljp_bulk_bad(p, end);
  m->old_address = m->old_size = 0;
  if (m->op == LJP_MEM_REALLOC) {
    if (!ljp_bulk_delta(&p, &rotated) || !ljp_bulk_number(&p, &m->old_size))
      return ljp_bulk_bad(p, end);
    m->old_address = ljp_unrotate_address(rotated);
  }
  if ((has & LJP_MEM_STACK) && !ljp_bulk_delta(&p, &m->stack))
    return ljp_bulk_bad(p, end);
  if (has & LJP_MEM_STATE) {
    m->state = *p++;
    if (!ljp_bulk_number(&p, &m->vm))
      return ljp_bulk_bad(p, end);
  }
  if ((has & LJP_MEM_WEIGHT) && !ljp_bulk_number(&p, &m->weight))
    return ljp_bulk_bad(p, end);
  if (has & LJP_MEM_WHAT) {
    m->type = *p & LJP_MEM_TYPE_MASK;
    m->flags = *p++ & (uint8_t)~LJP_MEM_TYPE_MASK;
  }
  if (LJP_UNLIKELY(has & LJP_MEM_EXTRA) && !ljp_bulk_extra(&p, end))
    return LJP_BAD_SHORT;
  if (LJP_UNLIKELY(p > end))
    return LJP_BAD_SHORT;
  *body = p;
  return LJP_BAD_NONE;
}

static inline enum ljp_bad_reason
ljp_node_decode(const uint8_t **body, const uint8_t *end, struct ljp_item *item)
{
  struct ljp_rec_node *n = &item->u.node;
  const uint8_t *p = *body;
  uint64_t id, up;
  if (!ljp_bulk_two(&p, &id, &up))
    return ljp_bulk_bad(p, end);
  n->id += (uint64_t)ljp_unzigzag(id);
  uint8_t byte = *p++;
  n->kind = byte >> 4;
  n->flags = byte & 15;
  n->ref = 0;
  if (!(ljp_frame_shape(n->kind) != LJP_SHAPE_NUM
            ? ljp_bulk_two(&p, &n->ref, &n->value)
            : ljp_bulk_number(&p, &n->value)))
    return ljp_bulk_bad(p, end);
  if (LJP_UNLIKELY(p > end))
    return LJP_BAD_SHORT;
  /* Ids of one epoch lie within LJP_EPOCH_MAX_NODES of each other. */
  if (up == 0 || up > n->id)
    return LJP_BAD_NODE_PARENT;
  if (up == n->id)
    up = 0;
  else if (LJP_UNLIKELY((up >= LJP_EPOCH_MAX_NODES) |
                        (n->kind == LJP_FRAME_LABELS)))
    return up >= LJP_EPOCH_MAX_NODES ? LJP_BAD_NODE_PARENT
                                     : LJP_BAD_LABELS_PARENT;
  n->up = (uint32_t)up;
  *body = p;
  return LJP_BAD_NONE;
}

#endif
