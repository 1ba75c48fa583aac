/*
** Framing and recovery after damage (RFC 1, section 2).
**
** At each offset the input has either a whole block of ours, or a whole block
** that must not be used (another session's, one seen before, with flags or
** compression that we cannot undo), or no whole block. The last two make gaps;
** a gap is a run of bytes with one reason.
**
** How far to skip: a whole block that must not be used is skipped as one
** piece. So is a block whose header is valid and whose payload is damaged, if
** the stream continues right where the header says; otherwise bytes of the
** damaged payload could be taken for a block. In all other cases the search
** continues at the next sync bytes. One thread a reader.
*/
#include "parsers/stream/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/unzstd.h"
#include "src/base/assert.h"
#include "src/base/block.h"

enum {
  HEAD = LJP_BLOCK_HEAD_BYTES,
  SYNC = 4,
};

_Static_assert(LJP_WINDOW_BYTES >= LJP_BLOCK_MAX_BYTES + 2 * HEAD,
               "the window holds the largest block and the next header");

enum ljp_status ljp_blocks_init(struct ljp_blocks *b, struct ljp_input *input)
{
  *b = (struct ljp_blocks){.input = input};
  b->window = calloc(1, LJP_WINDOW_BYTES + LJP_BLOCK_SLACK);
  b->prefix =
      malloc((LJP_WINDOW_BYTES / LJP_CRCRANGE_STEP + 1) * sizeof *b->prefix);
  if (!b->window || !b->prefix) {
    ljp_blocks_fini(b);
    return LJP_ERR_MEM;
  }
  b->range = (struct ljp_crcrange){.base = b->window, .prefix = b->prefix};
  return LJP_OK;
}

void ljp_blocks_fini(struct ljp_blocks *b)
{
  free(b->window);
  free(b->raw);
  free(b->prefix);
  ljp_unzstd_free(b->zstd);
  *b = (struct ljp_blocks){0};
}

/* Makes `need` bytes available at start; fewer only at the end of the input. */
static enum ljp_status blocks_fill(struct ljp_blocks *b, size_t need)
{
  ljp_assert(b->start <= b->end && b->end <= LJP_WINDOW_BYTES);
  ljp_assert(need <= LJP_WINDOW_BYTES);
  if (b->end - b->start >= need || b->eof)
    return LJP_OK;
  if (LJP_WINDOW_BYTES - b->start < need) {
    memmove(b->window, b->window + b->start, b->end - b->start);
    b->end -= b->start;
    b->start = 0;
    ljp_crcrange_reset(&b->range);
  }
  while (b->end - b->start < need) {
    ssize_t got =
        b->input->read(b->input, b->window + b->end, LJP_WINDOW_BYTES - b->end);
    if (got < 0) {
      b->error = errno;
      return LJP_ERR_IO;
    }
    if (got == 0) {
      b->eof = true;
      break;
    }
    b->end += (size_t)got;
    ljp_assert(b->end <= LJP_WINDOW_BYTES);
  }
  return LJP_OK;
}

static size_t blocks_available(const struct ljp_blocks *b)
{
  return b->end - b->start;
}

static void blocks_consume(struct ljp_blocks *b, size_t n)
{
  ljp_assert(n <= blocks_available(b));
  b->start += n;
  b->offset += n;
}

/* Sets b->block.payload to that of the block at start, decompressed if it is
** compressed. */
static enum ljp_status blocks_unpack(struct ljp_blocks *b,
                                     const struct ljp_block_head *head,
                                     enum ljp_gap_reason *why)
{
  const uint8_t *stored = b->window + b->start + HEAD;
  enum ljp_status status;
  b->block.payload = stored;
  if (!(head->flags & LJP_BLOCK_ZSTD))
    return LJP_OK;
  if (!b->raw)
    b->raw = calloc(1, LJP_BLOCK_MAX_BYTES + LJP_BLOCK_SLACK);
  if (!b->raw)
    return LJP_ERR_MEM;
  if (!b->zstd && (status = ljp_unzstd_new(&b->zstd)) != LJP_OK)
    return status;
  if (!ljp_unzstd(b->zstd, b->raw, head->raw_len, stored, head->stored_len))
    *why = LJP_GAP_ZSTD;
  b->block.payload = b->raw;
  return LJP_OK;
}

/* Whether the stream continues (or the input ends) right after the block at
** start, whose header is valid and whose payload is damaged. */
static enum ljp_status
blocks_stream_continues(struct ljp_blocks *b, const struct ljp_block_head *head,
                        bool *yes)
{
  size_t size = HEAD + head->stored_len;
  struct ljp_block_head next;
  enum ljp_status status = blocks_fill(b, size + HEAD);
  *yes = false;
  if (status)
    return status;
  if (blocks_available(b) == size)
    *yes = b->eof;
  else if (blocks_available(b) >= size + HEAD)
    *yes = ljp_block_head_get(b->window + b->start + size, &next) == LJP_OK &&
           next.stream == head->stream && next.seq > head->seq;
  return LJP_OK;
}

/*
** Finds out what begins at start. *why is LJP_GAP_NONE for a block of ours,
** which is then in b->block. Otherwise *size is the number of bytes to skip as
** one piece; 0: search for the next sync bytes.
*/
static enum ljp_status blocks_probe(struct ljp_blocks *b,
                                    enum ljp_gap_reason *why, size_t *size)
{
  struct ljp_block_head head;
  enum ljp_status status = blocks_fill(b, HEAD);
  const uint8_t *p = b->window + b->start;
  size_t n = blocks_available(b);
  *size = 0;
  *why = LJP_GAP_GARBAGE;
  if (status)
    return status;
  if (n < HEAD) {
    if (memcmp(p, "\x89LJP", n < SYNC ? n : SYNC) == 0)
      *why = LJP_GAP_CUT;
    return LJP_OK;
  }
  if (ljp_get_u32(p) != LJP_BLOCK_SYNC)
    return LJP_OK;

  status = ljp_block_head_get(p, &head);
  if (status == LJP_ERR_VERSION) {
    b->newer_major = head.major;
    *why = LJP_GAP_VERSION;
    return LJP_OK;
  }
  if (status != LJP_OK) {
    *why = ljp_get_u32(p + 52) == ljp_crc32c(0, p, 52) ? LJP_GAP_HEAD_LIMIT
                                                       : LJP_GAP_HEAD_CRC;
    return LJP_OK;
  }
  if (b->begun && head.stream == b->stream && head.seq > b->seen_seq)
    b->seen_seq = head.seq;

  if ((status = blocks_fill(b, HEAD + head.stored_len)))
    return status;
  p = b->window + b->start;
  if (blocks_available(b) < HEAD + head.stored_len) {
    *why = LJP_GAP_CUT;
    return LJP_OK;
  }
  uint32_t crc =
      b->in_gap ? ljp_crcrange_get(&b->range, b->start + HEAD, head.stored_len)
                : ljp_crc32c(0, p + HEAD, head.stored_len);
  if (crc != head.payload_crc) {
    bool piece;
    *why = LJP_GAP_PAYLOAD_CRC;
    status = blocks_stream_continues(b, &head, &piece);
    if (piece)
      *size = HEAD + head.stored_len;
    return status;
  }

  *size = HEAD + head.stored_len;
  *why = LJP_GAP_NONE;
  if (b->begun && head.stream != b->stream)
    *why = LJP_GAP_FOREIGN;
  else if (b->begun && head.seq <= b->last_seq)
    *why = LJP_GAP_SEQ;
  else if (head.flags & LJP_BLOCK_MUST_KNOW & ~LJP_BLOCK_ZSTD)
    *why = LJP_GAP_FLAGS;
  else
    status = blocks_unpack(b, &head, why);
  b->block.head = head;
  b->block.offset = b->offset;
  return status;
}

/* The number of bytes, at least 1, from start to the next place where a block
** may begin; all available bytes if there is no such place. */
static size_t blocks_find_sync(const struct ljp_blocks *b)
{
  const uint8_t *from = b->window + b->start;
  const uint8_t *end = b->window + b->end;
  for (const uint8_t *p = from + 1; p < end; p++) {
    p = memchr(p, 0x89, (size_t)(end - p));
    if (!p)
      break;
    size_t n = (size_t)(end - p);
    if (memcmp(p, "\x89LJP", n < SYNC ? n : SYNC) == 0)
      return (size_t)(p - from);
  }
  return (size_t)(end - from);
}

/* Whether a file segment other than the first begins with this block, as its
** EPOCH says. */
static bool blocks_begins_segment(const struct ljp_block *block)
{
  const uint8_t *p = block->payload, *end = p + block->head.raw_len;
  uint64_t tag, len, segment, why;
  return (block->head.flags & LJP_BLOCK_KEY) &&
         (p = ljp_get_varint(p, end, &tag)) && tag == LJP_REC_EPOCH &&
         (p = ljp_get_varint(p, end, &len)) &&
         (p = ljp_get_varint(p, end, &segment)) &&
         ljp_get_varint(p, end, &why) && why == LJP_EPOCH_SEGMENT;
}

/* Whether a gap of this reason consists of whole blocks. */
static bool blocks_is_whole(enum ljp_gap_reason why)
{
  return why == LJP_GAP_FOREIGN || why == LJP_GAP_SEQ;
}

static void blocks_open_gap(struct ljp_blocks *b, enum ljp_gap_reason why)
{
  ljp_assert(!b->in_gap && why != LJP_GAP_NONE);
  b->in_gap = true;
  b->gap = (struct ljp_gap){
      .offset = b->offset, .reason = (uint8_t)why, .missing_known = true};
}

static enum ljp_found blocks_close_gap(struct ljp_blocks *b)
{
  b->in_gap = false;
  return LJP_FOUND_GAP;
}

/* Takes the block of ours at start. Counts the blocks that are missing before
** it; a gap is returned before the block. */
static enum ljp_found blocks_accept(struct ljp_blocks *b)
{
  const struct ljp_block_head *head = &b->block.head;
  uint64_t missing = 0;
  bool known = true;
  if (b->begun)
    missing = head->seq - b->last_seq - 1;
  else if (head->epoch == 1) /* Only segment 0 has this epoch. */
    missing = head->seq;
  else
    known = blocks_begins_segment(&b->block);
  if (missing || !known) {
    if (b->in_gap && blocks_is_whole((enum ljp_gap_reason)b->gap.reason))
      return blocks_close_gap(b); /* The next call finds the block again. */
    if (!b->in_gap)
      blocks_open_gap(b, LJP_GAP_MISSING);
    b->gap.missing = missing;
    b->gap.missing_known = known;
  }
  ljp_assert(!b->begun ||
             (head->stream == b->stream && head->seq > b->last_seq));
  b->begun = true;
  b->stream = head->stream;
  b->last_seq = b->seen_seq = head->seq;
  b->ready = b->in_gap;
  b->hold = HEAD + head->stored_len;
  return b->in_gap ? blocks_close_gap(b) : LJP_FOUND_BLOCK;
}

enum ljp_status ljp_blocks_next(struct ljp_blocks *b, enum ljp_found *item)
{
  if (b->ready) {
    b->ready = false;
    *item = LJP_FOUND_BLOCK;
    return LJP_OK;
  }
  blocks_consume(b, b->hold);
  b->hold = 0;
  for (;;) {
    enum ljp_gap_reason why, now = (enum ljp_gap_reason)b->gap.reason;
    size_t size;
    enum ljp_status status = blocks_probe(b, &why, &size);
    if (status)
      return status;
    if (why == LJP_GAP_NONE) {
      *item = blocks_accept(b);
      return LJP_OK;
    }
    if (blocks_available(b) == 0) {
      *item = LJP_FOUND_END;
      if (b->in_gap) {
        if (b->begun && !blocks_is_whole(now))
          b->gap.missing = b->seen_seq - b->last_seq;
        *item = blocks_close_gap(b);
        b->last_seq = b->seen_seq;
      }
      return LJP_OK;
    }
    if (b->in_gap && now != why &&
        (blocks_is_whole(now) || blocks_is_whole(why))) {
      *item = blocks_close_gap(b);
      return LJP_OK;
    }
    if (why == LJP_GAP_VERSION && b->offset == 0)
      return LJP_ERR_VERSION;
    if (!b->in_gap)
      blocks_open_gap(b, why);
    if (size == 0)
      size = blocks_find_sync(b);
    b->gap.bytes += size;
    blocks_consume(b, size);
    if (!b->begun && b->offset > LJP_LEAD_MAX_BYTES)
      return LJP_ERR_FORMAT;
  }
}
