/*
** See unzstd.h. The whole command is linked with libzstd.
*/
#include "parsers/stream/unzstd.h"

#include <zstd.h>

enum ljp_status ljp_unzstd_new(struct ljp_unzstd **out)
{
  *out = (struct ljp_unzstd *)ZSTD_createDCtx();
  return *out ? LJP_OK : LJP_ERR_MEM;
}

void ljp_unzstd_free(struct ljp_unzstd *unzstd)
{
  ZSTD_freeDCtx((ZSTD_DCtx *)unzstd);
}

bool ljp_unzstd(struct ljp_unzstd *unzstd, uint8_t *out, size_t out_len,
                const uint8_t *in, size_t in_len)
{
  return ZSTD_findFrameCompressedSize(in, in_len) == in_len &&
         ZSTD_decompressDCtx((ZSTD_DCtx *)unzstd, out, out_len, in, in_len) ==
             out_len;
}
