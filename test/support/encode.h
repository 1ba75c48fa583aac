/*
** An encoder of streams for tests of readers: it writes what it is told, valid
** or not. (The writer in src/ cannot write invalid streams.) Buffers grow; a
** test that runs out of memory aborts.
*/
#ifndef LJP_TEST_ENCODE_H
#define LJP_TEST_ENCODE_H

#include <stdlib.h>
#include <string.h>

#include "src/base/block.h"

struct buf {
  uint8_t *data;
  size_t len, room;
};

static inline void buf_free(struct buf *b)
{
  free(b->data);
  *b = (struct buf){0};
}

static inline uint8_t *buf_more(struct buf *b, size_t n)
{
  if (b->room - b->len < n) {
    b->room = (b->len + n) * 2;
    b->data = realloc(b->data, b->room);
    if (!b->data)
      abort();
  }
  b->len += n;
  return b->data + b->len - n;
}

static inline void put_bytes(struct buf *b, const void *data, size_t n)
{
  uint8_t *to = buf_more(b, n);
  if (n)
    memcpy(to, data, n);
}

static inline void put_u8(struct buf *b, unsigned byte)
{
  *buf_more(b, 1) = (uint8_t)byte;
}

static inline void put_u(struct buf *b, uint64_t value)
{
  uint8_t bytes[LJP_VARINT_MAX_BYTES];
  put_bytes(b, bytes, (size_t)(ljp_put_varint(bytes, value) - bytes));
}

static inline void put_s(struct buf *b, int64_t value)
{
  put_u(b, ljp_zigzag(value));
}

static inline void put_str(struct buf *b, const char *text)
{
  put_u(b, strlen(text));
  put_bytes(b, text, strlen(text));
}

/* Appends a record with this body, and empties the body. */
static inline void put_record(struct buf *payload, uint64_t tag,
                              struct buf *body)
{
  put_u(payload, tag);
  put_u(payload, body->len);
  put_bytes(payload, body->data, body->len);
  body->len = 0;
}

#define TEST_STREAM UINT64_C(0x1122334455667788)
#define TEST_TIME UINT64_C(1000000007)

/* The header that a session would write for block seq, in epoch 1. */
static inline struct ljp_block_head test_head(uint64_t seq)
{
  return (struct ljp_block_head){.major = LJP_FORMAT_MAJOR,
                                 .stream = TEST_STREAM,
                                 .seq = seq,
                                 .flags = seq == 0 ? LJP_BLOCK_KEY : 0,
                                 .time_ns = TEST_TIME,
                                 .epoch = 1,
                                 .producer = 1};
}

/* Appends a block with this payload as it is, compressed or not, and empties the
** payload. Fills in lengths and checksums, but raw_len only if it is 0. */
static inline void put_block_head(struct buf *file, struct ljp_block_head head,
                                  struct buf *payload)
{
  uint8_t bytes[LJP_BLOCK_HEAD_BYTES];
  head.stored_len = (uint32_t)payload->len;
  if (!head.raw_len)
    head.raw_len = head.stored_len;
  head.payload_crc = ljp_crc32c(0, payload->data, payload->len);
  ljp_block_head_put(bytes, &head);
  put_bytes(file, bytes, sizeof bytes);
  put_bytes(file, payload->data, payload->len);
  payload->len = 0;
}

static inline void put_block(struct buf *file, uint64_t seq,
                             struct buf *payload)
{
  put_block_head(file, test_head(seq), payload);
}

/* Appends block seq with one MARK, which differs from block to block. */
static inline void put_mark_block(struct buf *file, uint64_t seq)
{
  struct buf payload = {0}, body = {0};
  put_s(&body, 7);
  put_u(&body, 1);
  put_u(&body, 1);
  put_s(&body, (int64_t)seq * 1009);
  put_str(&body, "mark");
  put_record(&payload, LJP_REC_MARK, &body);
  put_block(file, seq, &payload);
  buf_free(&payload);
  buf_free(&body);
}

/* The same for blocks from..to. */
static inline void put_marks(struct buf *file, uint64_t from, uint64_t to)
{
  for (uint64_t seq = from; seq <= to; seq++)
    put_mark_block(file, seq);
}

/* Appends the last record of a session, in a block of its own. */
static inline void put_end_block(struct buf *file, uint64_t seq)
{
  struct buf payload = {0}, body = {0};
  put_s(&body, 11);
  put_u(&body, 0);
  put_u(&body, 0);
  put_str(&body, "stopped");
  put_record(&payload, LJP_REC_END, &body);
  put_block(file, seq, &payload);
  buf_free(&payload);
  buf_free(&body);
}

#endif
