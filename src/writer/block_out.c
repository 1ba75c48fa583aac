/*
** See block_out.h.
*/
#include "src/writer/block_out.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/block.h"

enum { ROOM = LJP_BLOCK_HEAD_BYTES + LJP_BLOCK_MAX_BYTES };

enum ljp_status ljp_block_out_init(struct ljp_block_out *out,
                                   struct ljp_sink *sink, int zstd_level,
                                   bool ready, uint64_t stream)
{
  memset(out, 0, sizeof *out);
  out->sink = sink;
  out->stream = stream;
  out->block = malloc(ROOM);
  if (!out->block)
    return LJP_ERR_MEM;
  if (zstd_level) {
    out->packed = malloc(ROOM);
    enum ljp_status status =
        out->packed ? ljp_compress_new(&out->compress, zstd_level, ready)
                    : LJP_ERR_MEM;
    if (status) {
      ljp_block_out_fini(out);
      return status;
    }
  }
  return LJP_OK;
}

void ljp_block_out_fini(struct ljp_block_out *out)
{
  free(out->block);
  free(out->packed);
  ljp_compress_free(out->compress);
  out->block = out->packed = NULL;
  out->compress = NULL;
}

enum ljp_status ljp_block_out_write(struct ljp_block_out *out,
                                    struct ljp_builder *b, uint16_t flags,
                                    uint64_t now_ns)
{
  if (ljp_builder_empty(b))
    return out->status;
  if (!out->sink) {
    ljp_builder_reset(b, b->producer);
    return out->status;
  }
  struct ljp_block_head head = {.major = LJP_FORMAT_MAJOR,
                                .minor = LJP_FORMAT_MINOR,
                                .flags = flags,
                                .stream = out->stream,
                                .seq = out->seq,
                                .time_ns = ljp_builder_base(b, now_ns),
                                .epoch = out->epoch,
                                .producer = b->producer};
  uint8_t *block = out->block;
  size_t len = ljp_builder_finish(b, block + LJP_BLOCK_HEAD_BYTES);
  ljp_assert(len <= LJP_BLOCK_MAX_BYTES);
  head.raw_len = head.stored_len = (uint32_t)len;
  size_t packed = out->compress
                      ? ljp_compress_block(out->compress,
                                           out->packed + LJP_BLOCK_HEAD_BYTES,
                                           LJP_BLOCK_MAX_BYTES,
                                           block + LJP_BLOCK_HEAD_BYTES, len)
                      : 0;
  if (packed) {
    block = out->packed;
    head.stored_len = (uint32_t)packed;
    head.flags |= LJP_BLOCK_ZSTD;
  }
  head.payload_crc =
      ljp_crc32c(0, block + LJP_BLOCK_HEAD_BYTES, head.stored_len);
  ljp_block_head_put(block, &head);
  size_t total = LJP_BLOCK_HEAD_BYTES + head.stored_len;
  if (!out->status)
    out->status = ljp_sink_write(out->sink, block, total);
  if (!out->status) {
    out->seq++;
    out->epoch_bytes += LJP_BLOCK_HEAD_BYTES + len;
  }
  for (unsigned i = 0; i < LJP_RECORD_TAGS; i++)
    *(out->status ? &out->unwritten : &out->totals[i]) += b->events_in_block[i];
  ljp_builder_reset(b, b->producer);
  return out->status;
}
