/*
** The smallest strict reader of streams, for the tests of the writer: it checks
** every rule of RFC 1 that the writer must keep, and describes the first broken
** one in error[]. It shares no code with parsers/, so that a misreading of the
** RFC in one of the two shows. Not for untrusted input.
*/
#ifndef LJP_TEST_MINI_READER_H
#define LJP_TEST_MINI_READER_H

#ifdef LJP_HAVE_ZSTD
#include <zstd.h>
#endif

#include "test/stream/mini_records.h"

static inline bool mini_block(struct mini *m, const struct ljp_block_head *h,
                              const uint8_t *payload)
{
  uint8_t *raw = NULL;
  if (m->have_seq && h->seq != m->next_seq)
    MINI_FAIL("block %llu where %llu should be", (unsigned long long)h->seq,
              (unsigned long long)m->next_seq);
  if (m->have_seq && h->stream != m->stream)
    MINI_FAIL("another stream");
  if (m->clean)
    MINI_FAIL("a block after END");
  if (h->flags & LJP_BLOCK_KEY) {
    if (h->epoch <= m->epoch)
      MINI_FAIL("epoch %u after %llu", h->epoch, (unsigned long long)m->epoch);
    m->epoch = h->epoch;
    m->epoch_bytes = 0;
    m->key_blocks++;
  }
  if (h->epoch != m->epoch || !h->stream)
    MINI_FAIL("block of epoch %u in %llu", h->epoch,
              (unsigned long long)m->epoch);
  if (!m->have_seq)
    m->begin_time = h->time_ns;
  m->have_seq = true;
  m->next_seq = h->seq + 1;
  m->stream = h->stream;
  m->segment_end = false;
  m->blocks++;
  m->raw_bytes += h->raw_len;
  m->stored_bytes += h->stored_len;
  m->epoch_bytes += h->raw_len;
  if (m->epoch_bytes > m->most_epoch_bytes)
    m->most_epoch_bytes = m->epoch_bytes;
#ifdef LJP_HAVE_ZSTD
  if (h->flags & LJP_BLOCK_ZSTD) {
    raw = malloc(h->raw_len + 1u);
    m->zstd_blocks++;
    if (ZSTD_decompress(raw, h->raw_len, payload, h->stored_len) !=
        h->raw_len) {
      free(raw);
      MINI_FAIL("not one zstd frame of raw_len bytes");
    }
    payload = raw;
  }
#endif
  struct mini_cursor c = {.p = payload, .end = payload + h->raw_len};
  bool first = true, ok = true;
  while (ok && c.p < c.end) {
    uint64_t tag = mini_u(&c), len = mini_u(&c);
    if (c.bad || len > (uint64_t)(c.end - c.p)) {
      ok = false;
      break;
    }
    struct mini_cursor body = {.p = c.p, .end = c.p + len};
    if (first && (h->flags & LJP_BLOCK_KEY) && tag != LJP_REC_EPOCH)
      ok = false;
    first = false;
    ok = ok && mini_record(m, (unsigned)tag, &body, h) && !body.bad;
    c.p += len;
  }
  free(raw);
  if (!ok)
    MINI_FAIL("malformed record in block %llu", (unsigned long long)h->seq);
  return true;
}

/* Reads whole blocks from the start of data; false if a rule is broken. Bytes
** after the last whole block are no error: see end_offset. */
static inline bool mini_read(struct mini *m, const uint8_t *data, size_t len)
{
  size_t at = 0;
  struct ljp_block_head h;
  m->end_offset = 0;
  while (len - at >= LJP_BLOCK_HEAD_BYTES &&
         ljp_block_head_get(data + at, &h) == LJP_OK &&
         h.stored_len <= len - at - LJP_BLOCK_HEAD_BYTES &&
         ljp_crc32c(0, data + at + LJP_BLOCK_HEAD_BYTES, h.stored_len) ==
             h.payload_crc) {
    if (!mini_block(m, &h, data + at + LJP_BLOCK_HEAD_BYTES))
      return false;
    at += LJP_BLOCK_HEAD_BYTES + h.stored_len;
    m->end_offset = at;
  }
  return true;
}

static inline bool mini_read_file(struct mini *m, const char *path,
                                  uint64_t *file_bytes)
{
  FILE *f = fopen(path, "rb");
  if (!f)
    MINI_FAIL("cannot open the file");
  size_t len = 0, room = 1 << 16, n;
  uint8_t *data = malloc(room);
  while ((n = fread(data + len, 1, room - len, f)) > 0) {
    len += n;
    if (len == room)
      data = realloc(data, room *= 2);
  }
  fclose(f);
  if (file_bytes)
    *file_bytes = len;
  bool ok = mini_read(m, data, len);
  free(data);
  return ok;
}

#endif
