/*
** See compress.h. libzstd is opened when a session asks for compression, and
** stays loaded: a host whose sessions never ask neither needs nor loads it. Its
** interface has been stable since 1.0; the few functions used are declared here
** as its documentation has them. One context serves all blocks, each of which
** is an independent frame.
*/
#include "src/writer/compress.h"

#include <dlfcn.h>
#include <stdlib.h>

struct ljp_compress {
  void *ctx;
  int level;
  void *(*create)(void);
  size_t (*discard)(void *ctx);
  size_t (*compress)(void *ctx, void *out, size_t room, const void *in,
                     size_t len, int level);
  unsigned (*is_error)(size_t code);
};

static bool compress_find(void *library, const char *name, void *function)
{
  void *address = dlsym(library, name);
  *(void **)function = address;
  return address != NULL;
}

enum ljp_status ljp_compress_new(struct ljp_compress **out, int level)
{
  void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    return LJP_ERR_NOTSUP;
  struct ljp_compress *c = calloc(1, sizeof *c);
  if (!c)
    return LJP_ERR_MEM;
  if (!compress_find(library, "ZSTD_createCCtx", &c->create) ||
      !compress_find(library, "ZSTD_freeCCtx", &c->discard) ||
      !compress_find(library, "ZSTD_compressCCtx", &c->compress) ||
      !compress_find(library, "ZSTD_isError", &c->is_error)) {
    free(c);
    return LJP_ERR_NOTSUP;
  }
  c->level = level;
  c->ctx = c->create();
  if (!c->ctx) {
    free(c);
    return LJP_ERR_MEM;
  }
  *out = c;
  return LJP_OK;
}

void ljp_compress_free(struct ljp_compress *compress)
{
  if (compress)
    compress->discard(compress->ctx);
  free(compress);
}

size_t ljp_compress_block(struct ljp_compress *compress, uint8_t *out,
                          size_t room, const uint8_t *in, size_t len)
{
  if (room > len)
    room = len;
  size_t n =
      compress->compress(compress->ctx, out, room, in, len, compress->level);
  return compress->is_error(n) || n >= len ? 0 : n;
}
