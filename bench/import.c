/*
** How fast `ljprof report` reads files of Tarantool's profilers, run as users
** run it, on files of 100 MB that are made here: memory events of a program
** with a million live blocks, and of one that only allocates; samples of
** traces, of 3,000 and of 100,000 different stacks. It prints CPU time, elapsed
** time and memory; the best of several runs counts.
**
** bench_import [FILE]...: measures these files instead.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/child.h"
#include "parsers/tarantool/format.h"
#include "test/support/encode.h"
#include "test/support/random.h"

enum {
  FILE_BYTES = 100000000,
  PIECE_BYTES = 64 << 10,
  PROTOS = 3000,
  CFUNCS = 6000,
  STACKS = 3000,
  VARIED = 100000,
  RUNS = 5
};
#define PROTO(n) (UINT64_C(0x7f4bad232b68) + (uint64_t)(n) % PROTOS * 176)
#define CFUNC(n) (UINT64_C(0x55ce235d1760) + (uint64_t)(n) % CFUNCS * 224)

struct out {
  FILE *file;
  char path[64];
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

static void begin_part(struct out *out, const char *magic, unsigned version)
{
  put_bytes(&out->b, magic, LJP_TARANTOOL_MAGIC_BYTES);
  put_u8(&out->b, version);
  put_bytes(&out->b, "\0\0\0", 3);
}

static void begin(struct out *out, const char *magic, unsigned version)
{
  char name[32];
  *out = (struct out){.path = "/tmp/ljprof-bench-XXXXXX"};
  int fd = mkstemp(out->path);
  if (fd < 0 || !(out->file = fdopen(fd, "wb")))
    abort();
  begin_part(out, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  for (unsigned i = 0; i < PROTOS; i++) {
    snprintf(name, sizeof name, "@lua/module_%u.lua", i / 20);
    put_u8(&out->b, LJP_LJS_LFUNC);
    put_u(&out->b, PROTO(i));
    put_str(&out->b, name);
    put_u(&out->b, i % 20 * 30);
  }
  for (unsigned i = 0; i < CFUNCS; i++) {
    snprintf(name, sizeof name, "c_function_%u", i);
    put_u8(&out->b, LJP_LJS_CFUNC);
    put_u(&out->b, CFUNC(i));
    put_str(&out->b, name);
  }
  put_u8(&out->b, LJP_TARANTOOL_END);
  begin_part(out, magic, version);
}

static void end(struct out *out)
{
  put_u8(&out->b, LJP_TARANTOOL_END);
  put_out(out, true);
  if (fclose(out->file) != 0)
    abort();
  buf_free(&out->b);
}

static void put_place(struct buf *b, unsigned kind, uint64_t r)
{
  uint64_t proto = r % 8 ? r >> 20 & 63 : r >> 20 & 511;
  if (r % 16 == 0) {
    put_u8(b, kind | LJP_LJM_INTERNAL << LJP_LJM_SOURCE_SHIFT);
  } else {
    put_u8(b, kind | LJP_LJM_LFUNC << LJP_LJM_SOURCE_SHIFT);
    put_u(b, PROTO(proto));
    put_u(b, proto % 20 * 30 + (r >> 40) % 8);
  }
}

/* Allocates; from `most` live blocks on, each allocation follows a free, or is
** a reallocation. */
static void memory(struct out *out, uint64_t most)
{
  uint64_t *sizes = calloc(most, sizeof *sizes);
  if (!sizes)
    abort();
  while (out->bytes < FILE_BYTES) {
    uint64_t r = random_number(), size = 16 + (r >> 8) % 200;
    uint64_t slot = out->live < most ? out->live : r % most;
    uint64_t at = UINT64_C(0x7f1200000000) + slot * 224;
    unsigned kind = LJP_LJM_ALLOC;
    if (out->live == most && r % 4 == 0) {
      kind = LJP_LJM_REALLOC;
    } else if (out->live == most) {
      put_place(&out->b, LJP_LJM_FREE, r >> 7);
      put_u(&out->b, at);
      put_u(&out->b, sizes[slot]);
      out->events++;
    }
    put_place(&out->b, kind, r);
    if (kind == LJP_LJM_REALLOC) {
      put_u(&out->b, at);
      put_u(&out->b, sizes[slot]);
    }
    put_u(&out->b, at);
    put_u(&out->b, size);
    sizes[slot] = size;
    out->live += out->live < most;
    out->events++;
    put_out(out, false);
  }
  free(sizes);
}

static void traces(struct out *out)
{
  while (out->bytes < FILE_BYTES) {
    uint64_t r = random_number();
    put_u8(&out->b, LJP_LJP_TRACE);
    put_u(&out->b, 1 + r % 100);
    put_u(&out->b, PROTO(r % 100));
    put_u(&out->b, r % 20 * 30);
    out->events++;
    put_out(out, false);
  }
}

/* Samples of one of `count` stacks of 3 to 30 guest and 2 to 12 host frames. */
static void samples(struct out *out, uint64_t count)
{
  while (out->bytes < FILE_BYTES) {
    uint64_t seed = random_number() % count + 1;
    uint64_t r = random_next(&seed);
    put_u8(&out->b, r % 3 ? LJP_LJP_LFUNC : LJP_LJP_FFUNC);
    if (r % 3 == 0) {
      put_u8(&out->b, LJP_LJP_FRAME_BUILTIN);
      put_u(&out->b, 20 + r % 40);
    }
    for (uint64_t i = 3 + (r >> 8) % 28; i; i--) {
      put_u8(&out->b, LJP_LJP_FRAME_LUA);
      put_u(&out->b, PROTO(random_next(&seed) % 200 + i * 40));
      put_u(&out->b, i * 30);
    }
    put_u8(&out->b, LJP_TARANTOOL_END);
    for (uint64_t i = 2 + (r >> 16) % 11; i; i--)
      put_u(&out->b, CFUNC(random_next(&seed) % 50 + i * 70) + 77);
    put_u(&out->b, 0);
    out->events++;
    put_out(out, false);
  }
}

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* events, live: 0 if they are not known. */
static void measure(char *ljprof, const char *name, char *path, uint64_t events,
                    uint64_t live)
{
  char *argv[] = {ljprof, (char *)"report", path, NULL};
  double best = 1e9, elapsed = 1e9, mb = 0;
  struct stat st;
  if (stat(path, &st) != 0) {
    perror(path);
    exit(1);
  }
  for (int i = 0; i < RUNS; i++) {
    struct rusage used;
    double begin_at = seconds();
    child_run(argv, &used);
    double took = seconds() - begin_at, cpu = child_seconds(&used);
    best = cpu < best ? cpu : best;
    elapsed = took < elapsed ? took : elapsed;
    mb = (double)used.ru_maxrss / 1024;
  }
  printf("import %-10s %5.1f MB: %6.3f s of CPU time, %6.3f s; %5.0f MB/s",
         name, (double)st.st_size / 1e6, best, elapsed,
         (double)st.st_size / best / 1e6);
  if (events)
    printf(", %5.1f M events/s", (double)events / best / 1e6);
  printf(", %4.0f MiB of memory", mb);
  if (live)
    printf(", %4.1f bytes a live block", mb * 1048576 / (double)live);
  printf("\n");
  fflush(stdout);
}

static void measure_made(char *ljprof, const char *name, struct out *out)
{
  end(out);
  measure(ljprof, name, out->path, out->events, out->live);
  unlink(out->path);
}

int main(int argc, char **argv)
{
  char ljprof[4200];
  struct out out;
  child_ljprof(ljprof);
  for (int i = 1; i < argc; i++)
    measure(ljprof, "file", argv[i], 0, 0);
  if (argc > 1)
    return 0;
  begin(&out, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  memory(&out, 1000000);
  measure_made(ljprof, "ljm", &out);
  begin(&out, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  memory(&out, 100000000);
  measure_made(ljprof, "ljm grows", &out);
  begin(&out, LJP_LJP_MAGIC, LJP_LJP_VERSION);
  traces(&out);
  measure_made(ljprof, "ljp traces", &out);
  begin(&out, LJP_LJP_MAGIC, LJP_LJP_VERSION);
  samples(&out, STACKS);
  measure_made(ljprof, "ljp stacks", &out);
  begin(&out, LJP_LJP_MAGIC, LJP_LJP_VERSION);
  samples(&out, VARIED);
  measure_made(ljprof, "ljp varied", &out);
  return 0;
}
