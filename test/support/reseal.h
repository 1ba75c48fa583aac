/*
** Corrects the checksums and lengths of damaged block headers, so that a
** fuzzer's changes reach the code behind the checksums.
*/
#ifndef LJP_TEST_RESEAL_H
#define LJP_TEST_RESEAL_H

#include <string.h>

#include "src/base/block.h"

static inline void reseal(uint8_t *data, size_t size)
{
  struct ljp_block_head head;
  size_t at = 0;
  while (size - at >= LJP_BLOCK_HEAD_BYTES) {
    uint8_t *p = data + at;
    size_t room = size - at - LJP_BLOCK_HEAD_BYTES;
    if (ljp_get_u32(p) != LJP_BLOCK_SYNC) {
      at++;
      continue;
    }
    uint32_t stored = ljp_get_u32(p + 40);
    if (stored > room)
      stored = (uint32_t)room;
    if (!(p[6] & LJP_BLOCK_ZSTD))
      ljp_put_u32(p + 44, stored);
    ljp_put_u32(p + 40, stored);
    ljp_put_u32(p + 48, ljp_crc32c(0, p + LJP_BLOCK_HEAD_BYTES, stored));
    ljp_put_u32(p + 52, ljp_crc32c(0, p, 52));
    at += ljp_block_head_get(p, &head) ? 1 : LJP_BLOCK_HEAD_BYTES + stored;
  }
}

#endif
