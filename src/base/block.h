/*
** The header of a block: encodes it into its 56 bytes and decodes it. Writer
** and readers use it; needs src/base/crc32c.c. Any thread.
*/
#ifndef LJP_BLOCK_H
#define LJP_BLOCK_H

#include "src/base/crc32c.h"
#include "src/base/format.h"
#include "src/base/status.h"
#include "src/base/varint.h"

static inline void ljp_block_head_put(uint8_t out[LJP_BLOCK_HEAD_BYTES],
                                      const struct ljp_block_head *head)
{
  ljp_put_u32(out, LJP_BLOCK_SYNC);
  out[4] = head->major;
  out[5] = head->minor;
  ljp_put_u16(out + 6, head->flags);
  ljp_put_u64(out + 8, head->stream);
  ljp_put_u64(out + 16, head->seq);
  ljp_put_u64(out + 24, head->time_ns);
  ljp_put_u32(out + 32, head->epoch);
  ljp_put_u32(out + 36, head->producer);
  ljp_put_u32(out + 40, head->stored_len);
  ljp_put_u32(out + 44, head->raw_len);
  ljp_put_u32(out + 48, head->payload_crc);
  ljp_put_u32(out + 52, ljp_crc32c(0, out, 52));
}

/*
** LJP_OK: the checksum is right and the lengths are within the limits.
** LJP_ERR_VERSION: the checksum is right, but the major version is newer;
** ignore the other fields. LJP_ERR_FORMAT: not a header.
*/
static inline enum ljp_status
ljp_block_head_get(const uint8_t in[LJP_BLOCK_HEAD_BYTES],
                   struct ljp_block_head *head)
{
  if (ljp_get_u32(in) != LJP_BLOCK_SYNC ||
      ljp_get_u32(in + 52) != ljp_crc32c(0, in, 52))
    return LJP_ERR_FORMAT;
  head->major = in[4];
  head->minor = in[5];
  head->flags = ljp_get_u16(in + 6);
  head->stream = ljp_get_u64(in + 8);
  head->seq = ljp_get_u64(in + 16);
  head->time_ns = ljp_get_u64(in + 24);
  head->epoch = ljp_get_u32(in + 32);
  head->producer = ljp_get_u32(in + 36);
  head->stored_len = ljp_get_u32(in + 40);
  head->raw_len = ljp_get_u32(in + 44);
  head->payload_crc = ljp_get_u32(in + 48);
  if (head->major > LJP_FORMAT_MAJOR)
    return LJP_ERR_VERSION;
  if (head->major == 0 || head->stored_len > LJP_BLOCK_MAX_BYTES ||
      head->raw_len > LJP_BLOCK_MAX_BYTES ||
      (!(head->flags & LJP_BLOCK_ZSTD) && head->raw_len != head->stored_len))
    return LJP_ERR_FORMAT;
  return LJP_OK;
}

#endif
