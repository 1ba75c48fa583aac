/*
** Makes the files of bench_import: symbols, and memory events. One thread.
*/
#include <string.h>

#include "bench/import_out.h"
#include "test/support/random.h"

enum {
  FILE_BYTES = 100000000,
  PIECE_BYTES = 64 << 10,
  PROTOS = 3000,
  CFUNCS = 6000,
  MANY = 100000, /* Functions, in a large program. */
  LINES = 40     /* Of each function, in the file with many places. */
};
#define SLOT(n) (UINT64_C(0x7f1200000000) + (uint64_t)(n)*224)

static void put_out(struct out *out, bool all)
{
  if (out->b.len < PIECE_BYTES && !all)
    return;
  if (fwrite(out->b.data, 1, out->b.len, out->file) != out->b.len)
    abort();
  out->bytes += out->b.len;
  out->b.len = 0;
}

bool import_more(struct out *out)
{
  out->events++;
  put_out(out, false);
  return out->bytes < FILE_BYTES;
}

/* -- Symbols --------------------------------------------------------------- */

void import_lfunc(struct buf *b, unsigned head, uint64_t key, uint64_t n)
{
  char name[32];
  snprintf(name, sizeof name, "@lua/module_%u.lua", (unsigned)(n / 20));
  put_u8(b, head);
  put_u(b, key);
  put_str(b, name);
  put_u(b, n % 20 * 30);
}

void import_cfunc(struct buf *b, unsigned head, uint64_t n)
{
  char name[32];
  snprintf(name, sizeof name, "c_function_%u", (unsigned)n);
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

static void put_begin(struct out *out, const struct import_kind *kind)
{
  bool memory = memcmp(kind->name, LJP_LJM_MAGIC, 3) == 0;
  uint64_t protos = kind->protos ? kind->protos : PROTOS;
  uint64_t cfuncs = kind->cfuncs ? kind->cfuncs : CFUNCS;
  put_part(out, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  for (uint64_t i = 0; i < protos; i++)
    import_lfunc(&out->b, LJP_LJS_LFUNC, PROTO(i), i);
  for (uint64_t i = 0; i < cfuncs; i++)
    import_cfunc(&out->b, LJP_LJS_CFUNC, i);
  put_u8(&out->b, LJP_TARANTOOL_END);
  put_part(out, memory ? LJP_LJM_MAGIC : LJP_LJP_MAGIC,
           memory ? LJP_LJM_VERSION : LJP_LJP_VERSION);
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

static void put_many_functions(struct buf *b, unsigned kind, uint64_t r)
{
  put_lua(b, kind, (r >> 20) % MANY, (r >> 40) % 4);
}

static void put_many_cfuncs(struct buf *b, unsigned kind, uint64_t r)
{
  put_u8(b, kind | LJP_LJM_CFUNC << LJP_LJM_SOURCE_SHIFT);
  put_u(b, CFUNC((r >> 20) % MANY));
}

/* Traces are flushed now and then: their numbers come again. */
static void put_trace_place(struct buf *b, unsigned kind, uint64_t r)
{
  uint64_t number = 1 + (r >> 20) % 5000;
  if (r % 64 == 0) {
    put_u8(b, LJP_LJM_SYMBOL | LJP_LJM_TRACE << 2);
    put_u(b, number);
    put_u(b, PROTO((r >> 40) % PROTOS));
    put_u(b, (r >> 50) % 20 * 30);
  }
  put_u8(b, kind | LJP_LJM_TRACE << LJP_LJM_SOURCE_SHIFT);
  put_u(b, number);
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
  bool large;        /* Some blocks have more than 4 GB. */
};

static void make_memory(struct out *out, const struct memory_program *program)
{
  struct live_block *list = calloc(program->live, sizeof *list);
  if (!list)
    abort();
  do {
    uint64_t r = random_number(), size = 16 + (r >> 8) % 200;
    if (program->large && r % 4 == 0)
      size <<= 32;
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
  } while (import_more(out));
  free(list);
}

#define MEMORY(name, ...)                                                      \
  static void name(void *context)                                              \
  {                                                                            \
    static const struct memory_program program = {__VA_ARGS__};                \
    make_memory(context, &program);                                            \
  }

MEMORY(make_ljm, .place = put_place, .live = 1000000, .realloc_ratio = 4)
MEMORY(make_grows, .place = put_place, .live = 100000000)
MEMORY(make_few, .place = put_few_places, .live = 1000, .realloc_ratio = 8)
MEMORY(make_places, .place = put_many_places, .live = 1000000,
       .realloc_ratio = 4)
MEMORY(make_internal, .place = put_internal_place, .live = 100000,
       .realloc_ratio = 8)
MEMORY(make_anywhere, .place = put_place, .live = 1000000, .realloc_ratio = 4,
       .anywhere = true)
MEMORY(make_moves, .place = put_place, .live = 200000, .realloc_ratio = 1)
MEMORY(make_functions, .place = put_many_functions, .live = 1000000,
       .realloc_ratio = 4)
MEMORY(make_cfuncs, .place = put_many_cfuncs, .live = 1000000,
       .realloc_ratio = 4)
MEMORY(make_trace_places, .place = put_trace_place, .live = 1000000,
       .realloc_ratio = 4)
MEMORY(make_large, .place = put_place, .live = 1000000, .realloc_ratio = 4,
       .large = true)

/* Frees of blocks that the file does not have. */
static void make_before(void *context)
{
  struct out *out = context;
  put_internal(&out->b, LJP_LJM_ALLOC); /* A report needs one. */
  put_memory(&out->b, 64, 64);
  do {
    uint64_t r = random_number();
    put_place(&out->b, LJP_LJM_FREE, r);
    put_memory(&out->b, SLOT(r >> 40), 16 + (r >> 8) % 200);
  } while (import_more(out));
}

/* A library's symbols again before each allocation that a C function does. */
static void make_symbols(void *context)
{
  struct out *out = context;
  do {
    uint64_t r = random_number();
    if (r % 1024 == 0)
      for (unsigned i = 0; i < 2000; i++)
        import_cfunc(&out->b, LJP_LJM_SYMBOL | LJP_LJM_CFUNC << 2, i);
    put_u8(&out->b, LJP_LJM_ALLOC | LJP_LJM_CFUNC << LJP_LJM_SOURCE_SHIFT);
    put_u(&out->b, CFUNC((r >> 30) % CFUNCS));
    put_memory(&out->b, SLOT(r % 100000), 16 + (r >> 8) % 200);
  } while (import_more(out));
}

/* A new function each few events, at the address of one that is gone. */
static void make_loads(void *context)
{
  struct out *out = context;
  do {
    uint64_t r = random_number();
    if (r % 8 == 0)
      import_lfunc(&out->b, LJP_LJM_SYMBOL | LJP_LJM_LFUNC << 2,
                   PROTO((r >> 20) % 500), (r >> 30) % 2000);
    put_lua(&out->b, r % 2 ? LJP_LJM_ALLOC : LJP_LJM_FREE, (r >> 20) % 500,
            (r >> 40) % 8);
    put_memory(&out->b, SLOT((r >> 8) % 100000), 64);
  } while (import_more(out));
}

const struct import_kind import_kinds[] = {
    {"ljm", make_ljm, 0, 0},
    {"ljm grows", make_grows, 0, 0},
    {"ljm few", make_few, 0, 0},
    {"ljm places", make_places, 0, 0},
    {"ljm functions", make_functions, MANY, 0},
    {"ljm cfuncs", make_cfuncs, 0, MANY},
    {"ljm traces", make_trace_places, 0, 0},
    {"ljm internal", make_internal, 0, 0},
    {"ljm anywhere", make_anywhere, 0, 0},
    {"ljm large", make_large, 0, 0},
    {"ljm moves", make_moves, 0, 0},
    {"ljm before", make_before, 0, 0},
    {"ljm symbols", make_symbols, 0, 0},
    {"ljm loads", make_loads, 0, 0},
    {"ljp traces", import_traces, 0, 0},
    {"ljp stacks", import_stacks, 0, 0},
    {"ljp varied", import_varied, 0, 0},
    {"ljp new", import_new, 0, 0},
    {"ljp deep", import_deep, 0, 0},
    {"ljp sections", import_sections, 0, 0},
    {"ljp addresses", import_addresses, 0, 0},
    {"ljp functions", import_functions, MANY, MANY},
    {"ljp symbols", import_symbols, 0, 0},
    {"ljp loads", import_loads, 0, 0},
    {NULL, NULL, 0, 0}};

struct import_made import_make(const struct import_kind *kind, const char *path)
{
  struct out out = {.file = fopen(path, "wb")};
  if (!out.file) {
    perror(path);
    exit(1);
  }
  put_begin(&out, kind);
  kind->make(&out);
  put_u8(&out.b, LJP_TARANTOOL_END);
  put_out(&out, true);
  if (fclose(out.file) != 0)
    abort();
  buf_free(&out.b);
  return (struct import_made){out.events, out.live};
}
