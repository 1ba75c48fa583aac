/*
** Reads a stream from memory to its end and keeps what tests ask about: blocks,
** gaps, bad records, marks, the end. It asserts for each stream that every byte
** belongs to exactly one block or gap, in order.
*/
#ifndef LJP_TEST_COLLECT_H
#define LJP_TEST_COLLECT_H

#include <string.h>

#include "parsers/stream/reader.h"

enum { COLLECT_MAX = 512 };

struct collect {
  enum ljp_status status;
  char error[LJP_READER_ERROR_BYTES];
  struct ljp_finish finish;
  struct ljp_tally tally; /* Only its numbers; its tables are freed. */
  unsigned blocks, gaps, bads, marks;
  struct {
    uint64_t offset, seq;
    uint32_t crc; /* Of the stored payload: it identifies the block. */
  } block[COLLECT_MAX];
  struct ljp_gap gap[COLLECT_MAX];
  struct ljp_bad bad[COLLECT_MAX];
  int64_t mark[COLLECT_MAX];
  uint64_t events[LJP_TALLY_TAGS]; /* By tag. */
  uint64_t unknown;
};

static inline void collect_from(struct collect *c, struct ljp_reader *r,
                                size_t size)
{
  const struct ljp_item *e;
  uint64_t at = 0;
  while (!(c->status = ljp_reader_next(r, &e)) && e->what != LJP_ITEM_FINISH) {
    if (e->what < LJP_TALLY_TAGS)
      c->events[e->what]++;
    switch (e->what) {
    case LJP_ITEM_BLOCK:
      assert_true(e->block->offset == at);
      at += LJP_BLOCK_HEAD_BYTES + e->block->head.stored_len;
      if (c->blocks < COLLECT_MAX) {
        c->block[c->blocks].offset = e->block->offset;
        c->block[c->blocks].seq = e->block->head.seq;
        c->block[c->blocks].crc = e->block->head.payload_crc;
      }
      c->blocks++;
      break;
    case LJP_ITEM_GAP:
      assert_true(e->u.gap.offset == at);
      at += e->u.gap.bytes;
      if (c->gaps < COLLECT_MAX)
        c->gap[c->gaps] = e->u.gap;
      c->gaps++;
      break;
    case LJP_ITEM_BAD:
      if (c->bads < COLLECT_MAX)
        c->bad[c->bads] = e->u.bad;
      c->bads++;
      break;
    case LJP_ITEM_UNKNOWN:
      c->unknown++;
      break;
    case LJP_REC_MARK:
      if (c->marks < COLLECT_MAX)
        c->mark[c->marks] = e->u.mark.value;
      c->marks++;
      break;
    }
  }
  memcpy(c->error, r->error, sizeof c->error);
  c->finish = r->finish;
  c->tally = r->tally;
  if (!c->status) {
    assert_true(at == size);
    assert_true(e->u.finish.bytes == size);
    assert_true(e->u.finish.blocks == c->blocks);
    assert_true(e->u.finish.gaps == c->gaps);
    c->finish = e->u.finish;
  }
}

static inline void collect(struct collect *c, const void *data, size_t size)
{
  static struct ljp_reader reader;
  memset(c, 0, sizeof *c);
  assert_int_equal(ljp_reader_memory(&reader, data, size), LJP_OK);
  collect_from(c, &reader, size);
  ljp_reader_fini(&reader);
}

#endif
