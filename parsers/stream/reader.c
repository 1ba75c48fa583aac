/*
** The iterator: from blocks to records to items. One thread a reader.
*/
#include "parsers/stream/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/bulk.h"
#include "parsers/stream/names.h"
#include "parsers/stream/recording.h"
#include "src/base/assert.h"
#include "src/base/sigsafe.h"
#include "src/base/varint.h"

/* So that the function's registers do not burden its caller. */
#define NOINLINE __attribute__((noinline))

static enum ljp_status reader_begin(struct ljp_reader *r)
{
  enum ljp_status status = ljp_blocks_init(&r->blocks, &r->input);
  ljp_model_init(&r->model);
  ljp_tally_init(&r->tally);
  if (status) {
    snprintf(r->error, sizeof r->error, "%s", ljp_status_text(status));
    ljp_input_close(&r->input);
  }
  return status;
}

enum ljp_status ljp_reader_open(struct ljp_reader *r, const char *path)
{
  char why[LJP_INPUT_ERROR_BYTES];
  memset(r, 0, sizeof *r);
  enum ljp_status status = ljp_input_open(&r->input, path, why);
  if (status) {
    snprintf(r->error, sizeof r->error, "%s", why);
    return status;
  }
  return reader_begin(r);
}

enum ljp_status ljp_reader_input(struct ljp_reader *r,
                                 const struct ljp_input *input)
{
  memset(r, 0, sizeof *r);
  r->input = *input;
  return reader_begin(r);
}

enum ljp_status ljp_reader_memory(struct ljp_reader *r, const void *data,
                                  size_t size)
{
  memset(r, 0, sizeof *r);
  ljp_input_memory(&r->input, data, size);
  return reader_begin(r);
}

void ljp_reader_fini(struct ljp_reader *r)
{
  ljp_blocks_fini(&r->blocks);
  ljp_model_fini(&r->model);
  ljp_tally_fini(&r->tally);
  ljp_input_close(&r->input);
}

static enum ljp_status reader_fail(struct ljp_reader *r, enum ljp_status status)
{
  const struct ljp_blocks *b = &r->blocks;
  r->done = true;
  if (status == LJP_ERR_VERSION)
    snprintf(r->error, sizeof r->error,
             "the stream has format version %u, this program reads up to %d.x",
             b->newer_major, LJP_FORMAT_MAJOR);
  else if (status == LJP_ERR_IO)
    snprintf(r->error, sizeof r->error, "cannot read at offset %" PRIu64 ": %s",
             b->offset + (b->end - b->start), strerror(b->error));
  else if (status == LJP_ERR_FORMAT && r->input.script)
    snprintf(r->error, sizeof r->error,
             "a Lua script, not a profile: 'ljprof record %.180s' runs and "
             "records it",
             r->input.script);
  else if (status == LJP_ERR_FORMAT && b->offset == 0)
    snprintf(r->error, sizeof r->error, "not an ljprof stream: it is empty");
  else if (status == LJP_ERR_FORMAT)
    snprintf(r->error, sizeof r->error,
             "not an ljprof stream: no whole block in %" PRIu64 " bytes (%s)",
             b->offset, ljp_name_gap(b->gap.reason));
  else if (status == LJP_ERR_NOTSUP)
    snprintf(r->error, sizeof r->error,
             "compressed, and there is no libzstd.so.1 to read it with");
  else
    snprintf(r->error, sizeof r->error, "%s", ljp_status_text(status));
  r->failed = status;
  r->many = 0;
  return status;
}

/* Whether the newest gap is a block that is being written. If so, it is none. */
static bool reader_is_begun(struct ljp_reader *r)
{
  const struct ljp_blocks *b = &r->blocks;
  struct ljp_finish *f = &r->finish;
  if (b->gap.reason != LJP_GAP_CUT || !b->eof || b->start != b->end ||
      !f->blocks ||
      !ljp_recording(ljp_model_process(&r->model), r->input.fd, b->offset))
    return false;
  f->begun_bytes = b->gap.bytes;
  return f->recording = true;
}

static enum ljp_status reader_finish(struct ljp_reader *r)
{
  struct ljp_finish *f = &r->finish;
  r->done = true;
  if (f->blocks == 0)
    return reader_fail(r, r->blocks.newer_major ? LJP_ERR_VERSION
                                                : LJP_ERR_FORMAT);
  f->bytes = f->block_bytes + f->gap_bytes + f->begun_bytes;
  ljp_assert(f->bytes == r->blocks.offset); /* Each byte is in one of them. */
  f->clean = f->closed != LJP_CLOSED_NOT && !r->gap_behind && !f->recording;
  if (!f->clean && !f->recording)
    f->recording =
        ljp_recording(ljp_model_process(&r->model), r->input.fd, f->bytes);
  r->item.what = LJP_ITEM_FINISH;
  r->item.block = NULL;
  r->item.time_ns = 0;
  r->item.u.finish = *f;
  return LJP_OK;
}

static void reader_take_gap(struct ljp_reader *r)
{
  struct ljp_finish *f = &r->finish;
  const struct ljp_gap *gap = &r->blocks.gap;
  if (f->gaps++ == 0)
    f->missing_known = true;
  f->gap_bytes += gap->bytes;
  f->missing_blocks += gap->missing;
  f->missing_known = f->missing_known && gap->missing_known;
  r->gap_behind = gap->bytes > 0;
  if (gap->missing || !gap->missing_known ||
      (gap->reason != LJP_GAP_FOREIGN && gap->reason != LJP_GAP_SEQ)) {
    r->model.lossy = true;
    ljp_tally_gap(&r->tally);
  }
  r->item.what = LJP_ITEM_GAP;
  r->item.block = NULL;
  r->item.time_ns = 0;
  r->item.u.gap = *gap;
}

static void reader_take_block(struct ljp_reader *r)
{
  const struct ljp_block *block = &r->blocks.block;
  r->finish.blocks++;
  r->finish.block_bytes += LJP_BLOCK_HEAD_BYTES + block->head.stored_len;
  r->finish.closed = LJP_CLOSED_NOT;
  r->finish.status = r->finish.error = 0;
  r->gap_behind = false;
  if (block->head.epoch != r->model.epoch)
    ljp_model_epoch(&r->model, block->head.epoch,
                    block->head.flags & LJP_BLOCK_KEY);
  ljp_tally_block(&r->tally, block);
  r->record = r->body = r->body_end = block->payload;
  r->payload_end = block->payload + block->head.raw_len;
  r->many = 0;
  r->item.what = LJP_ITEM_BLOCK;
  r->item.block = block;
  r->item.time_ns = block->head.time_ns;
}

/* Makes the item of a malformed record. */
static void reader_take_bad(struct ljp_reader *r, struct ljp_bad bad)
{
  r->finish.bad_records++;
  r->model.lossy = true;
  ljp_tally_gap(&r->tally);
  r->finding = false;
  r->many = 0;
  r->item.what = LJP_ITEM_BAD;
  r->item.time_ns = 0;
  r->item.u.bad = bad;
}

/* Describes what is wrong with the record being read. */
static struct ljp_bad reader_make_bad(const struct ljp_reader *r, uint64_t tag,
                                      enum ljp_bad_reason reason)
{
  return (struct ljp_bad){.tag = tag,
                          .payload_offset =
                              (uint32_t)(r->record - r->blocks.block.payload),
                          .bytes = (uint32_t)(r->body_end - r->record),
                          .reason = (uint8_t)reason};
}

/* The next event of a bulk record is malformed: ends the record. */
static NOINLINE enum ljp_status reader_end_many(struct ljp_reader *r,
                                                enum ljp_bad_reason bad)
{
  reader_take_bad(r, reader_make_bad(r, r->many, bad));
  return LJP_OK;
}

/* The next event of the bulk record being read, which has more bytes. A reader
** spends most of its time in these functions: there is one for each tag, and
** it calls nothing unless the record is malformed. */
static NOINLINE enum ljp_status reader_next_sample(struct ljp_reader *r)
{
  enum ljp_bad_reason bad = ljp_sample_decode(&r->body, r->body_end, &r->item);
  if (LJP_UNLIKELY(bad))
    return reader_end_many(r, bad);
  r->tally.read[LJP_REC_SAMPLES]++;
  return LJP_OK;
}

static NOINLINE enum ljp_status reader_next_mem(struct ljp_reader *r)
{
  enum ljp_bad_reason bad = ljp_mem_decode(&r->body, r->body_end, &r->item);
  if (LJP_UNLIKELY(bad))
    return reader_end_many(r, bad);
  r->tally.read[LJP_REC_MEM]++;
  return LJP_OK;
}

/* The next node, which goes to the model, too. */
static NOINLINE enum ljp_status reader_next_node(struct ljp_reader *r)
{
  enum ljp_bad_reason bad = ljp_node_decode(&r->body, r->body_end, &r->item);
  if (LJP_UNLIKELY(bad))
    return reader_end_many(r, bad);
  r->tally.read[LJP_REC_NODES]++;
  enum ljp_status status = ljp_model_define_node(&r->model, &r->item.u.node);
  if (LJP_LIKELY(!status))
    return LJP_OK;
  return status == LJP_ERR_FORMAT ? reader_end_many(r, LJP_BAD_NODE_ID)
                                  : reader_fail(r, status);
}

static NOINLINE enum ljp_status reader_next_slow(struct ljp_reader *r);

/* The next object or reference of a heap snapshot. The end of an object's
** references is no item. */
static NOINLINE enum ljp_status reader_next_object(struct ljp_reader *r)
{
  do {
    enum ljp_bad_reason bad =
        ljp_heap_decode(&r->heap, &r->body, r->body_end, &r->item);
    if (LJP_UNLIKELY(bad))
      return reader_end_many(r, bad);
  } while (r->item.what == LJP_ITEM_BLOCK && r->body < r->body_end);
  if (r->body == r->body_end && ljp_heap_decode_end(&r->heap)) {
    r->finding = true;
    r->bad = reader_make_bad(r, LJP_REC_OBJECTS, LJP_BAD_SHORT);
  }
  if (r->item.what == LJP_ITEM_BLOCK)
    return reader_next_slow(r);
  r->tally.read[LJP_REC_OBJECTS] += r->item.what == LJP_REC_OBJECTS &&
                                    r->item.u.object.type != LJP_MEM_TYPE_NONE;
  return LJP_OK;
}

static inline enum ljp_status reader_next_of_many(struct ljp_reader *r)
{
  switch (r->many) {
  case LJP_REC_OBJECTS:
    return reader_next_object(r);
  case LJP_REC_SAMPLES:
    return reader_next_sample(r);
  case LJP_REC_MEM:
    return reader_next_mem(r);
  default:
    return reader_next_node(r);
  }
}

/* Updates the model and the tally by a record. If it does not fit them, the
** item of a malformed record follows. LJP_ERR_MEM is the only failure. */
static enum ljp_status reader_account(struct ljp_reader *r)
{
  const struct ljp_item *e = &r->item;
  enum ljp_bad_reason reason = LJP_BAD_TABLE;
  enum ljp_status status;
  switch (e->what) {
  case LJP_REC_TOTALS:
    reason = LJP_BAD_TOTALS;
    status = ljp_tally_totals(&r->tally, e->u.totals.counts);
    break;
  case LJP_REC_LOSS:
    status = ljp_tally_loss(&r->tally, e->u.loss.producer, e->u.loss.reason,
                            e->u.loss.count, false);
    break;
  case LJP_REC_OVERRUN:
    status = ljp_tally_loss(&r->tally, e->u.overrun.producer, 0,
                            e->u.overrun.count, true);
    break;
  case LJP_REC_END:
    r->finish.closed = LJP_CLOSED_END;
    r->finish.status = e->u.end.status;
    r->finish.error = e->u.end.error;
    return LJP_OK;
  case LJP_REC_SEGMENT_END:
    r->finish.closed = LJP_CLOSED_SEGMENT;
    return LJP_OK;
  default:
    status = ljp_model_define(&r->model, e);
  }
  if (status == LJP_OK || status == LJP_ERR_MEM)
    return status;
  r->finding = true;
  r->bad = reader_make_bad(r, e->what, reason);
  return LJP_OK;
}

/* Begins the next record of the block. *got: it has made an item (a bulk
** record makes its items later). */
static enum ljp_status reader_next_record(struct ljp_reader *r, bool *got)
{
  struct ljp_item *e = &r->item;
  const struct ljp_block *block = &r->blocks.block;
  const uint8_t *p;
  uint64_t tag = 0, len = 0;
  unsigned fields;
  ljp_assert(r->body_end < r->payload_end);
  r->record = r->body_end;
  p = ljp_get_varint(r->record, r->payload_end, &tag);
  if (p)
    p = ljp_get_varint(p, r->payload_end, &len);
  *got = true;
  if (!p || len > (uint64_t)(r->payload_end - p)) {
    r->body = r->body_end = r->payload_end;
    reader_take_bad(r, reader_make_bad(r, tag, LJP_BAD_FRAMING));
    return LJP_OK;
  }
  r->body = p;
  r->body_end = p + len;
  if (tag < LJP_TALLY_TAGS)
    r->tally.records[tag]++;
  e->time_ns = 0;
  e->block = block;
  if (tag == LJP_REC_SAMPLES || tag == LJP_REC_MEM || tag == LJP_REC_NODES) {
    memset(&e->u, 0, sizeof e->u);
    e->what = r->many = (unsigned)tag;
    if (tag != LJP_REC_NODES)
      e->time_ns = block->head.time_ns;
    *got = false;
    return LJP_OK;
  }
  if (tag == LJP_REC_OBJECTS) {
    enum ljp_bad_reason begun =
        ljp_heap_decode_begin(&r->heap, &r->body, r->body_end);
    if (begun) {
      reader_take_bad(r, reader_make_bad(r, tag, begun));
      return LJP_OK;
    }
    e->what = r->many = LJP_REC_OBJECTS;
    *got = false;
    return LJP_OK;
  }
  if (!ljp_record_fields(tag, &fields)) {
    r->finish.unknown_records++;
    e->what = LJP_ITEM_UNKNOWN;
    e->u.unknown = (struct ljp_unknown){
        .tag = tag,
        .payload_offset = (uint32_t)(r->record - block->payload),
        .bytes = (uint32_t)(r->body_end - r->record)};
    return LJP_OK;
  }
  enum ljp_bad_reason bad =
      ljp_record_decode(tag, r->body, r->body_end, block->head.time_ns, e);
  if (bad) {
    reader_take_bad(r, reader_make_bad(r, tag, bad));
    return LJP_OK;
  }
  e->what = (unsigned)tag;
  r->tally.read[tag]++;
  return reader_account(r);
}

static NOINLINE enum ljp_status reader_next_slow(struct ljp_reader *r)
{
  enum ljp_status status;
  r->many = 0;
  if (r->failed || r->done)
    return r->failed;
  if (r->finding) {
    reader_take_bad(r, r->bad);
    return LJP_OK;
  }
  for (;;) {
    while (r->body_end < r->payload_end) {
      bool got;
      if ((status = reader_next_record(r, &got)))
        return reader_fail(r, status);
      if (got)
        return LJP_OK;
      ljp_assert(r->body <= r->body_end && r->body_end <= r->payload_end);
      if (r->body < r->body_end)
        return reader_next_of_many(r);
      r->many = 0;
    }
    enum ljp_found item;
    if ((status = ljp_blocks_next(&r->blocks, &item)))
      return reader_fail(r, status);
    if (item == LJP_FOUND_END)
      return reader_finish(r);
    if (item == LJP_FOUND_GAP && reader_is_begun(r))
      continue;
    if (item == LJP_FOUND_GAP)
      reader_take_gap(r);
    else
      reader_take_block(r);
    return LJP_OK;
  }
}

enum ljp_status ljp_reader_next(struct ljp_reader *r,
                                const struct ljp_item **item)
{
  *item = &r->item;
  return LJP_LIKELY(r->many && r->body < r->body_end) ? reader_next_of_many(r)
                                                      : reader_next_slow(r);
}

size_t ljp_reader_samples(struct ljp_reader *r, struct ljp_timed_sample *out,
                          size_t room)
{
  struct ljp_item *e = &r->item;
  struct ljp_rec_sample now = e->u.sample;
  uint64_t time_ns = e->time_ns;
  const uint8_t *p = r->body, *end = r->body_end;
  size_t n = 0;
  if (r->many != LJP_REC_SAMPLES)
    return 0;
  while (n < room && p < end) {
    if (LJP_UNLIKELY(ljp_sample_step(&p, end, &time_ns, &now)))
      break; /* ljp_reader_next() finds it again and reports it. */
    /* Member by member: straight from registers. */
    out[n].time_ns = time_ns;
    out[n].sample.stack = now.stack;
    out[n].sample.vm = now.vm;
    out[n].sample.weight = now.weight;
    out[n].sample.state = now.state;
    out[n].sample.cut = now.cut;
    n++;
  }
  if (n) {
    e->time_ns = out[n - 1].time_ns;
    e->u.sample = out[n - 1].sample;
  }
  r->body = p;
  r->tally.read[LJP_REC_SAMPLES] += n;
  return n;
}
