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
  void *memory; /* Of the context, if it takes no more; else NULL. */
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

/* These two are not in zstd's stable interface, but in each libzstd.so since
** 1.3; if one lacks them, there is no compression. */
static enum ljp_status compress_make_ready(struct ljp_compress *c,
                                           void *library)
{
  size_t (*estimate)(int level);
  void *(*place)(void *memory, size_t bytes);
  if (!compress_find(library, "ZSTD_estimateCCtxSize", &estimate) ||
      !compress_find(library, "ZSTD_initStaticCCtx", &place))
    return LJP_ERR_NOTSUP;
  size_t bytes = estimate(c->level);
  if (c->is_error(bytes))
    return LJP_ERR_NOTSUP;
  c->memory = malloc(bytes);
  c->ctx = c->memory ? place(c->memory, bytes) : NULL;
  return c->ctx ? LJP_OK : LJP_ERR_MEM;
}

enum ljp_status ljp_compress_new(struct ljp_compress **out, int level,
                                 bool ready)
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
  enum ljp_status status = LJP_OK;
  if (ready)
    status = compress_make_ready(c, library);
  else if (!(c->ctx = c->create()))
    status = LJP_ERR_MEM;
  if (status) {
    free(c->memory);
    free(c);
    return status;
  }
  *out = c;
  return LJP_OK;
}

void ljp_compress_free(struct ljp_compress *compress)
{
  if (compress && !compress->memory)
    compress->discard(compress->ctx);
  if (compress)
    free(compress->memory);
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
