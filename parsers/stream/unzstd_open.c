/*
** See unzstd.h. The command without the analyzer (LJPROF_ANALYZER=OFF) is not
** linked with libzstd: it opens the library at the first compressed block, as
** the writer does (src/writer/compress.c). The functions' types are those of
** zstd's documentation.
*/
#include <dlfcn.h>
#include <stdlib.h>

#include "parsers/stream/unzstd.h"

struct ljp_unzstd {
  void *ctx;
  void *(*create)(void);
  size_t (*discard)(void *ctx);
  size_t (*frame_len)(const void *in, size_t len);
  size_t (*decompress)(void *ctx, void *out, size_t room, const void *in,
                       size_t len);
};

static bool unzstd_find(void *library, const char *name, void *function)
{
  void *address = dlsym(library, name);
  *(void **)function = address;
  return address != NULL;
}

enum ljp_status ljp_unzstd_new(struct ljp_unzstd **out)
{
  void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  struct ljp_unzstd *u = calloc(1, sizeof *u);
  enum ljp_status status = u ? LJP_ERR_NOTSUP : LJP_ERR_MEM;
  if (u && library && unzstd_find(library, "ZSTD_createDCtx", &u->create) &&
      unzstd_find(library, "ZSTD_freeDCtx", &u->discard) &&
      unzstd_find(library, "ZSTD_findFrameCompressedSize", &u->frame_len) &&
      unzstd_find(library, "ZSTD_decompressDCtx", &u->decompress)) {
    u->ctx = u->create();
    status = u->ctx ? LJP_OK : LJP_ERR_MEM;
  }
  if (status) {
    free(u);
    u = NULL;
  }
  *out = u;
  return status;
}

void ljp_unzstd_free(struct ljp_unzstd *unzstd)
{
  if (unzstd)
    unzstd->discard(unzstd->ctx);
  free(unzstd);
}

bool ljp_unzstd(struct ljp_unzstd *unzstd, uint8_t *out, size_t out_len,
                const uint8_t *in, size_t in_len)
{
  return unzstd->frame_len(in, in_len) == in_len &&
         unzstd->decompress(unzstd->ctx, out, out_len, in, in_len) == out_len;
}
