/*
** See compress.h. The context is made once; blocks are independent frames.
*/
#include "src/compress.h"

#include <stdlib.h>

#ifdef LJP_HAVE_ZSTD
#include <zstd.h>

struct ljp_compress {
  ZSTD_CCtx *ctx;
  int level;
};

enum ljp_status ljp_compress_new(struct ljp_compress **out, int level)
{
  struct ljp_compress *compress = calloc(1, sizeof *compress);
  if (!compress)
    return LJP_ERR_MEM;
  compress->level = level;
  compress->ctx = ZSTD_createCCtx();
  if (!compress->ctx) {
    free(compress);
    return LJP_ERR_MEM;
  }
  *out = compress;
  return LJP_OK;
}

void ljp_compress_free(struct ljp_compress *compress)
{
  if (compress)
    ZSTD_freeCCtx(compress->ctx);
  free(compress);
}

size_t ljp_compress_block(struct ljp_compress *compress, uint8_t *out,
                          size_t room, const uint8_t *in, size_t len)
{
  if (room > len)
    room = len;
  size_t n =
      ZSTD_compressCCtx(compress->ctx, out, room, in, len, compress->level);
  return ZSTD_isError(n) || n >= len ? 0 : n;
}

#else

enum ljp_status ljp_compress_new(struct ljp_compress **out, int level)
{
  (void)out;
  (void)level;
  return LJP_ERR_NOTSUP;
}

void ljp_compress_free(struct ljp_compress *compress)
{
  (void)compress;
}

size_t ljp_compress_block(struct ljp_compress *compress, uint8_t *out,
                          size_t room, const uint8_t *in, size_t len)
{
  (void)compress;
  (void)out;
  (void)room;
  (void)in;
  (void)len;
  return 0;
}
#endif
