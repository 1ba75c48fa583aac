/*
** Makes the files of bench_import. Each maker appends events until the file is
** large enough; the numbers are the same in every run. One thread.
*/
#include "bench/import_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/tarantool.h"
#include "test/support/encode.h"
#include "test/support/random.h"

enum {
  FILE_BYTES = 100000000,
  PIECE_BYTES = 64 << 10,
  PROTOS = 3000,
  CFUNCS = 6000,
  LINES = 40 /* Of each function, in the file with many places. */
};
#define PROTO(n) (UINT64_C(0x7f4bad232b68) + (uint64_t)(n) % PROTOS * 176)
#define CFUNC(n) (UINT64_C(0x55ce235d1760) + (uint64_t)(n) % CFUNCS * 224)
#define SLOT(n) (UINT64_C(0x7f1200000000) + (uint64_t)(n)*224)

struct out {
  FILE *file;
  uint64_t bytes, events, live;
  struct buf b;
};

static void put_out(struct out *out, bool all)
{
  if (out->b.len < PIECE_BYTES && !all)
    return;
  if (fwrite(out->b.data, 1, out->b.len, out->file) != out->b.len)
    abort();
  out->bytes += out->b.len;
  out->b.len = 0;
}

/* Ends an event; false: the file is large enough. */
static bool more(struct out *out)
{
  out->events++;
  put_out(out, false);
  return out->bytes < FILE_BYTES;
}

/* -- Symbols --------------------------------------------------------------- */

static void put_lfunc(struct buf *b, unsigned head, uint64_t key, uint64_t n)
{
  char name[32];
  snprintf(name, sizeof name, "@lua/module_%u.lua", (unsigned)(n / 20));
  put_u8(b, head);
  put_u(b, key);
  put_str(b, name);
  put_u(b, n % 20 * 30);
}

static void put_cfunc(struct buf *b, unsigned head, uint64_t n)
{
  char name[32];
  snprintf(name, sizeof name, "c_function_%u", (unsigned)(n % CFUNCS));
  put_u8(b, head);
  put_u(b, CFUNC(n));
  put_str(b, name);
}

static void put_part(struct out *out, const char *magic, unsigned version)
{
  put_bytes(&out->b, magic, LJP_TARANTOOL_MAGIC_BYTES);
  put_u8(&out->b, version);
  put_bytes(&out->b, "\0\0\0", 3);
}

static void put_begin(struct out *out, const char *magic, unsigned version)
{
  put_part(out, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  for (unsigned i = 0; i < PROTOS; i++)
    put_lfunc(&out->b, LJP_LJS_LFUNC, PROTO(i), i);
  for (unsigned i = 0; i < CFUNCS; i++)
    put_cfunc(&out->b, LJP_LJS_CFUNC, i);
  put_u8(&out->b, LJP_TARANTOOL_END);
  put_part(out, magic, version);
}

/* -- Memory events --------------------------------------------------------- */

static void put_lua(struct buf *b, unsigned kind, uint64_t proto, uint64_t line)
{
  put_u8(b, kind | LJP_LJM_LFUNC << LJP_LJM_SOURCE_SHIFT);
  put_u(b, PROTO(proto));
  put_u(b, line);
}

static void put_internal(struct buf *b, unsigned kind)
{
  put_u8(b, kind | LJP_LJM_INTERNAL << LJP_LJM_SOURCE_SHIFT);
}

/* One of some hundred places, most of them Lua. */
static void put_place(struct buf *b, unsigned kind, uint64_t r)
{
  uint64_t proto = r % 8 ? r >> 20 & 63 : r >> 20 & 511;
  if (r % 16)
    put_lua(b, kind, proto, proto % 20 * 30 + (r >> 40) % 8);
  else
    put_internal(b, kind);
}

static void put_many_places(struct buf *b, unsigned kind, uint64_t r)
{
  put_lua(b, kind, (r >> 20) % PROTOS, (r >> 40) % LINES);
}

static void put_internal_place(struct buf *b, unsigned kind, uint64_t r)
{
  (void)r;
  put_internal(b, kind);
}

static void put_few_places(struct buf *b, unsigned kind, uint64_t r)
{
  put_lua(b, kind, (r >> 20) % 4, (r >> 40) % 4);
}

static void put_memory(struct buf *b, uint64_t address, uint64_t size)
{
  put_u(b, address);
  put_u(b, size);
}

struct live_block {
  uint64_t address, size;
};

struct memory_program {
  void (*place)(struct buf *b, unsigned kind, uint64_t r);
  uint64_t live; /* From so many blocks on, an event frees one first. */
  unsigned
      realloc_ratio; /* One of so many allocations moves a block; 0: none. */
  bool anywhere;     /* A block has an address that no other has had. */
};

static void make_memory(struct out *out, const struct memory_program *program)
{
  struct live_block *list = calloc(program->live, sizeof *list);
  if (!list)
    abort();
  do {
    uint64_t r = random_number(), size = 16 + (r >> 8) % 200;
    bool full = out->live == program->live;
    uint64_t n = full ? r % program->live : out->live;
    bool moves = full && program->realloc_ratio &&
                 (r >> 50) % program->realloc_ratio == 0;
    struct live_block *block = &list[n], old = *block;
    if (full && !moves) {
      program->place(&out->b, LJP_LJM_FREE, r >> 7);
      put_memory(&out->b, old.address, old.size);
      out->events++;
    }
    block->size = size;
    block->address = !program->anywhere
                         ? SLOT(n)
                         : UINT64_C(0x7f0000000000) +
                               (random_number() & UINT64_C(0xfffffffff0));
    program->place(&out->b, moves ? LJP_LJM_REALLOC : LJP_LJM_ALLOC, r);
    if (moves)
      put_memory(&out->b, old.address, old.size);
    put_memory(&out->b, block->address, size);
    out->live += !full;
  } while (more(out));
  free(list);
}

#define MEMORY(name, ...)                                                      \
  static void name(void *context)                                              \
  {                                                                            \
    static const struct memory_program program = {__VA_ARGS__};                \
    put_begin(context, LJP_LJM_MAGIC, LJP_LJM_VERSION);                        \
    make_memory(context, &program);                                            \
  }

MEMORY(make_ljm, put_place, 1000000, 4, false)
MEMORY(make_grows, put_place, 100000000, 0, false)
MEMORY(make_few, put_few_places, 1000, 8, false)
MEMORY(make_places, put_many_places, 1000000, 4, false)
MEMORY(make_internal, put_internal_place, 100000, 8, false)
MEMORY(make_anywhere, put_place, 1000000, 4, true)
MEMORY(make_moves, put_place, 200000, 1, false)

/* Frees of blocks that the file does not have. */
static void make_before(void *context)
{
  struct out *out = context;
  put_begin(out, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  put_internal(&out->b, LJP_LJM_ALLOC); /* A report needs one. */
  put_memory(&out->b, 64, 64);
  do {
    uint64_t r = random_number();
    put_place(&out->b, LJP_LJM_FREE, r);
    put_memory(&out->b, SLOT(r >> 40), 16 + (r >> 8) % 200);
  } while (more(out));
}

/* A library's symbols again before each allocation that a C function does. */
static void make_symbols(void *context)
{
  struct out *out = context;
  put_begin(out, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  do {
    uint64_t r = random_number();
    if (r % 1024 == 0)
      for (unsigned i = 0; i < 2000; i++)
        put_cfunc(&out->b, LJP_LJM_SYMBOL | LJP_LJM_CFUNC << 2, i);
    put_u8(&out->b, LJP_LJM_ALLOC | LJP_LJM_CFUNC << LJP_LJM_SOURCE_SHIFT);
    put_u(&out->b, CFUNC(r >> 30));
    put_memory(&out->b, SLOT(r % 100000), 16 + (r >> 8) % 200);
  } while (more(out));
}

/* A new function each few events, at the address of one that is gone. */
static void make_loads(void *context)
{
  struct out *out = context;
  put_begin(out, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  do {
    uint64_t r = random_number();
    if (r % 8 == 0)
      put_lfunc(&out->b, LJP_LJM_SYMBOL | LJP_LJM_LFUNC << 2,
                PROTO((r >> 20) % 500), (r >> 30) % 2000);
    put_lua(&out->b, r % 2 ? LJP_LJM_ALLOC : LJP_LJM_FREE, (r >> 20) % 500,
            (r >> 40) % 8);
    put_memory(&out->b, SLOT((r >> 8) % 100000), 64);
  } while (more(out));
}

/* -- Samples --------------------------------------------------------------- */

static void make_traces(void *context)
{
  struct out *out = context;
  put_begin(out, LJP_LJP_MAGIC, LJP_LJP_VERSION);
  do {
    uint64_t r = random_number();
    put_u8(&out->b, LJP_LJP_TRACE);
    put_u(&out->b, 1 + r % 100);
    put_u(&out->b, PROTO(r % 100));
    put_u(&out->b, r % 20 * 30);
  } while (more(out));
}

/* A sample with a stack of 3 to 30 guest and 2 to 12 host frames. */
static void put_sample(struct buf *b, uint64_t seed)
{
  uint64_t r = random_next(&seed);
  put_u8(b, r % 3 ? LJP_LJP_LFUNC : LJP_LJP_FFUNC);
  if (r % 3 == 0) {
    put_u8(b, LJP_LJP_FRAME_BUILTIN);
    put_u(b, 20 + r % 40);
  }
  for (uint64_t i = 3 + (r >> 8) % 28; i; i--) {
    put_u8(b, LJP_LJP_FRAME_LUA);
    put_u(b, PROTO(random_next(&seed) % 200 + i * 40));
    put_u(b, i * 30);
  }
  put_u8(b, LJP_TARANTOOL_END);
  for (uint64_t i = 2 + (r >> 16) % 11; i; i--)
    put_u(b, CFUNC(random_next(&seed) % 50 + i * 70) + 77);
  put_u(b, 0);
}

/* loads: one of so many samples follows the symbol of a new function at the
** address of one that is gone; 0: none. */
static void make_samples(struct out *out, uint64_t stacks, unsigned loads)
{
  put_begin(out, LJP_LJP_MAGIC, LJP_LJP_VERSION);
  do {
    uint64_t r = random_number();
    if (loads && (r >> 40) % loads == 0)
      put_lfunc(&out->b, LJP_LJP_SYMBOL + LJP_LJS_LFUNC, PROTO((r >> 20) % 100),
                (r >> 30) % 2000);
    put_sample(&out->b, r % stacks + 1);
  } while (more(out));
}

#define SAMPLES(name, stacks, loads)                                           \
  static void name(void *context)                                              \
  {                                                                            \
    make_samples(context, stacks, loads);                                      \
  }

SAMPLES(make_stacks, 3000, 0)
SAMPLES(make_varied, 100000, 0)
SAMPLES(make_new_code, 3000, 4)

const struct import_kind import_kinds[] = {{"ljm", make_ljm},
                                           {"ljm grows", make_grows},
                                           {"ljm few", make_few},
                                           {"ljm places", make_places},
                                           {"ljm internal", make_internal},
                                           {"ljm anywhere", make_anywhere},
                                           {"ljm moves", make_moves},
                                           {"ljm before", make_before},
                                           {"ljm symbols", make_symbols},
                                           {"ljm loads", make_loads},
                                           {"ljp traces", make_traces},
                                           {"ljp stacks", make_stacks},
                                           {"ljp varied", make_varied},
                                           {"ljp loads", make_new_code},
                                           {NULL, NULL}};

struct import_made import_make(const struct import_kind *kind, const char *path)
{
  struct out out = {.file = fopen(path, "wb")};
  if (!out.file) {
    perror(path);
    exit(1);
  }
  kind->make(&out);
  put_u8(&out.b, LJP_TARANTOOL_END);
  put_out(&out, true);
  if (fclose(out.file) != 0)
    abort();
  buf_free(&out.b);
  return (struct import_made){out.events, out.live};
}
