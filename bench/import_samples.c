/*
** Makes the files of bench_import that have samples. One thread.
*/
#include "bench/import_out.h"
#include "test/support/random.h"

void import_traces(void *context)
{
  struct out *out = context;
  do {
    uint64_t r = random_number();
    put_u8(&out->b, LJP_LJP_TRACE);
    put_u(&out->b, 1 + r % 100);
    put_u(&out->b, PROTO(r % 100));
    put_u(&out->b, r % 20 * 30);
  } while (import_more(out));
}

struct sample_program {
  uint64_t stacks;      /* So many different ones. */
  uint32_t guest, host; /* So many frames, or fewer. */
  uint32_t callees;     /* So many functions may be called at a depth. */
  uint32_t step;        /* Functions between those of two depths. */
  uint32_t offsets;     /* Each host function has so many return addresses. */
  uint32_t sections;    /* One of so many guest frames is a C function's that is
                     ** in the host stack, too. 0: none. */
  uint32_t loads; /* One of so many samples follows the symbol of a new function
                  ** at the address of one that is gone. 0: none. */
  uint32_t symbols; /* One of so many follows 500 symbols of a library. */
};

/* A sample: for each seed another one. */
static void put_sample(struct buf *b, const struct sample_program *program,
                       uint64_t seed)
{
  uint64_t r = random_next(&seed), host[64];
  uint32_t hosts = 2 + (uint32_t)(r >> 16) % (program->host - 1), h = 0;
  for (uint32_t i = 0; i < hosts; i++)
    host[i] = CFUNC(random_next(&seed) % (program->callees / 4) +
                    (hosts - i) * program->step);
  put_u8(b, r % 3 ? LJP_LJP_LFUNC : LJP_LJP_FFUNC);
  if (r % 3 == 0) {
    put_u8(b, LJP_LJP_FRAME_BUILTIN);
    put_u(b, 20 + r % 40);
  }
  for (uint64_t i = 3 + (r >> 8) % (program->guest - 2); i; i--) {
    if (program->sections && i % program->sections == 0 && h < hosts) {
      put_u8(b, LJP_LJP_FRAME_C);
      put_u(b, host[h++]);
    }
    put_u8(b, LJP_LJP_FRAME_LUA);
    put_u(b, PROTO(random_next(&seed) % program->callees + i * program->step));
    put_u(b, i % 30 * 30);
  }
  put_u8(b, LJP_TARANTOOL_END);
  for (uint32_t i = 0; i < hosts; i++)
    put_u(b, host[i] + 7 + random_next(&seed) % program->offsets * 2);
  put_u(b, 0);
}

static void make_samples(struct out *out, const struct sample_program *program)
{
  do {
    uint64_t r = random_number();
    if (program->loads && (r >> 40) % program->loads == 0)
      import_lfunc(&out->b, LJP_LJP_SYMBOL + LJP_LJS_LFUNC,
                   PROTO((r >> 20) % 100), (r >> 30) % 2000);
    if (program->symbols && (r >> 40) % program->symbols == 0)
      for (unsigned i = 0; i < 500; i++)
        import_cfunc(&out->b, LJP_LJP_SYMBOL + LJP_LJS_CFUNC,
                     (r >> 20) % 8 * 500 + i);
    put_sample(&out->b, program, r % program->stacks + 1);
  } while (import_more(out));
}

#define SAMPLES(name, ...)                                                     \
  void name(void *context)                                                     \
  {                                                                            \
    static const struct sample_program program = {__VA_ARGS__};                \
    make_samples(context, &program);                                           \
  }
#define USUAL .guest = 30, .host = 12, .callees = 200, .step = 40, .offsets = 1

SAMPLES(import_stacks, USUAL, .stacks = 3000)
SAMPLES(import_varied, USUAL, .stacks = 100000)
SAMPLES(import_new, USUAL, .stacks = UINT64_MAX)
SAMPLES(import_deep, .stacks = 3000, .guest = 400, .host = 60, .callees = 200,
        .step = 5, .offsets = 1)
SAMPLES(import_sections, USUAL, .stacks = 100000, .sections = 4)
SAMPLES(import_addresses, .stacks = 100000, .guest = 30, .host = 12,
        .callees = 200, .step = 40, .offsets = 100)
SAMPLES(import_functions, .stacks = 100000, .guest = 30, .host = 12,
        .callees = 50000, .step = 40, .offsets = 1)
SAMPLES(import_symbols, USUAL, .stacks = 3000, .symbols = 1000)
SAMPLES(import_loads, USUAL, .stacks = 3000, .loads = 4)
