/*
** How fast `ljprof report` is, run as users run it, on files that are made here:
** 40 million CPU samples, ten minutes of samples at 1 kHz, and 100 million
** memory events with 1.6 million live blocks. It prints the CPU time and the
** peak memory of the command; the best of several runs counts.
**
** bench_analyze [samples|minutes|memory]...: without an argument, all of them.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/child.h"
#include "test/support/encode.h"
#include "test/support/random.h"

enum { BLOCK_BYTES = 64 << 10, PROTOS = 3000 };

struct out {
  FILE *file;
  char path[64];
  uint64_t bytes, seq, time;
  struct buf payload, body, block;
};

static void put_out(struct out *out, uint64_t producer)
{
  struct ljp_block_head head = test_head(out->seq++);
  head.producer = (uint32_t)producer;
  head.time_ns = out->time;
  put_block_head(&out->block, head, &out->payload);
  if (fwrite(out->block.data, 1, out->block.len, out->file) != out->block.len)
    abort();
  out->bytes += out->block.len;
  out->block.len = 0;
}

/* Writes a thread, a VM, producers, functions, and a tree of stacks of 5 to 40
** frames. */
static void define(struct out *out, unsigned nodes)
{
  struct buf *b = &out->body;
  char name[32];
  put_u(b, 1);
  put_u(b, 4242);
  put_str(b, "worker");
  put_record(&out->payload, LJP_REC_THREAD, b);
  put_u(b, 1);
  put_u(b, 1);
  put_str(b, "main");
  put_record(&out->payload, LJP_REC_VM, b);
  for (uint64_t kind = LJP_PRODUCER_CPU; kind <= LJP_PRODUCER_MEMORY; kind++) {
    put_u(b, kind);
    put_u(b, kind);
    put_u(b, 1);
    put_u(b, kind == LJP_PRODUCER_CPU ? 1000000 : 0);
    put_record(&out->payload, LJP_REC_PRODUCER, b);
  }
  for (unsigned i = 1; i <= PROTOS; i++) {
    put_u(b, i);
    put_u(b, i * 7);
    put_u(b, i * 7 + 30);
    put_u(b, 0);
    snprintf(name, sizeof name, "@app/module_%u.lua", i % 61);
    put_str(b, name);
    snprintf(name, sizeof name, "handler_%u", i);
    put_str(b, name);
    put_record(&out->payload, LJP_REC_PROTO, b);
  }
  for (unsigned id = 1; id <= nodes; id++) {
    uint64_t r = random_number(), proto = 1 + (r >> 20) % PROTOS;
    uint64_t up = 1 + r % (nodes / 8);
    put_s(b, id == 1 || b->len == 0 ? (int64_t)id : 1);
    put_u(b, up < id ? up : id);
    put_u8(b, LJP_FRAME_LUA << 4);
    put_u(b, proto);
    put_u(b, proto * 7 + (r >> 40) % 30);
    if (b->len > BLOCK_BYTES) {
      put_record(&out->payload, LJP_REC_NODES, b);
      put_out(out, 0);
    }
  }
  if (b->len)
    put_record(&out->payload, LJP_REC_NODES, b);
  put_out(out, 0);
}

static void begin(struct out *out, unsigned nodes)
{
  memset(out, 0, sizeof *out);
  strcpy(out->path, "/tmp/ljprof-bench-XXXXXX");
  int fd = mkstemp(out->path);
  out->file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (!out->file) {
    perror("bench_analyze: mkstemp");
    exit(1);
  }
  out->time = TEST_TIME;
  define(out, nodes);
}

static void end(struct out *out)
{
  put_end_block(&out->block, out->seq);
  if (fwrite(out->block.data, 1, out->block.len, out->file) != out->block.len ||
      fclose(out->file) != 0)
    abort();
  out->bytes += out->block.len;
  buf_free(&out->payload);
  buf_free(&out->body);
  buf_free(&out->block);
}

/* Samples at 1 kHz with jitter. Most stacks are near the one before; states
** change. */
static void samples(struct out *out, uint64_t count, unsigned nodes)
{
  struct buf *b = &out->body;
  int64_t stack = 0;
  uint64_t block_time = out->time, before = 0;
  bool first = true;
  while (count--) {
    uint64_t r = random_number();
    uint64_t near = (uint64_t)stack + r % 401;
    int64_t next = r >> 60 ? (int64_t)(near < 200 ? 1 : near - 200)
                           : (int64_t)(1 + (r >> 8) % nodes);
    if (next < 1 || next > (int64_t)nodes)
      next = 1 + (int64_t)((r >> 8) % nodes);
    bool state = r >> 32 & 1;
    put_u8(b, LJP_SAMPLE_STACK | (state ? LJP_SAMPLE_STATE : 0) |
                  (first ? LJP_SAMPLE_VM | LJP_SAMPLE_WEIGHT : 0));
    out->time += 970000 + (r >> 40) % 60000;
    put_s(b, (int64_t)(out->time - block_time - before));
    before = out->time - block_time;
    put_s(b, next - stack);
    stack = next;
    if (state)
      put_u8(b, 1 + (r >> 33) % 4);
    if (first) {
      put_u(b, 1);
      put_u(b, 1000003);
    }
    first = false;
    if (b->len > BLOCK_BYTES || !count) {
      uint64_t now = out->time;
      put_record(&out->payload, LJP_REC_SAMPLES, b);
      out->time = block_time;
      put_out(out, LJP_PRODUCER_CPU);
      out->time = block_time = now;
      before = 0;
      stack = 0;
      first = true;
    }
  }
}

/* Allocates `live` blocks, then frees one and allocates one in turn. */
static void memory(struct out *out, uint64_t events, uint32_t live,
                   unsigned nodes)
{
  struct buf *b = &out->body;
  uint64_t *sizes = malloc(live * sizeof *sizes);
  uint64_t address = 0;
  int64_t stack = 0;
  uint32_t filled = 0, slot = 0;
  bool first = true, is_free = false;
  if (!sizes)
    abort();
  while (events--) {
    uint64_t r = random_number(), size;
    if (filled < live) {
      slot = filled++;
      size = sizes[slot] = 16 + (r >> 8) % 200;
    } else if (!is_free) {
      slot = (uint32_t)(r % live);
      size = sizes[slot];
      is_free = true;
    } else {
      size = sizes[slot] = 16 + (r >> 8) % 200;
      is_free = false;
    }
    uint64_t at = UINT64_C(0x7f1200000000) + (uint64_t)slot * 224;
    bool moves = r % 3 == 0;
    put_u8(b, (is_free ? LJP_MEM_FREE : LJP_MEM_ALLOC) | LJP_MEM_SIZE |
                  (moves ? LJP_MEM_STACK : 0) | (first ? LJP_MEM_STATE : 0));
    put_s(b, 40 + (int64_t)(r >> 50) % 900);
    put_s(b, (int64_t)(ljp_rotate_address(at) - ljp_rotate_address(address)));
    address = at;
    put_u(b, size);
    if (moves) {
      int64_t next = 1 + (int64_t)((r >> 20) % nodes);
      put_s(b, next - stack);
      stack = next;
    }
    if (first) {
      put_u8(b, LJP_VMSTATE_INTERP);
      put_u(b, 1);
    }
    first = false;
    if (b->len > BLOCK_BYTES || !events) {
      put_record(&out->payload, LJP_REC_MEM, b);
      put_out(out, LJP_PRODUCER_MEMORY);
      out->time += 5000000;
      stack = 0;
      address = 0;
      first = true;
    }
  }
  free(sizes);
}

static void measure(char *ljprof, const char *name, const char *option,
                    struct out *out, uint64_t events, int runs)
{
  char *argv[] = {ljprof, (char *)"report", (char *)option, out->path, NULL};
  double best = 1e9, mb = 0;
  end(out);
  while (runs--) {
    struct rusage used;
    child_run(argv, &used);
    double t = child_seconds(&used);
    if (t < best)
      best = t;
    mb = (double)used.ru_maxrss / 1024;
  }
  printf("analyze %-8s %-7s %6.0f MB %6.1f M events: %7.2f s, %5.0f MB/s, "
         "%5.1f M events/s, %4.0f MB of memory\n",
         name, option, (double)out->bytes / 1e6, (double)events / 1e6, best,
         (double)out->bytes / best / 1e6, (double)events / best / 1e6, mb);
  fflush(stdout);
}

static bool wanted(int argc, char **argv, const char *name)
{
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0)
      return true;
  return argc < 2;
}

int main(int argc, char **argv)
{
  char ljprof[4200];
  struct out out;
  child_ljprof(ljprof);
  if (wanted(argc, argv, "samples")) {
    begin(&out, 20000);
    samples(&out, 40000000, 20000);
    measure(ljprof, "samples", "--cpu", &out, 40000000, 7);
    unlink(out.path);
  }
  if (wanted(argc, argv, "minutes")) {
    begin(&out, 50000);
    samples(&out, 600000, 50000);
    measure(ljprof, "minutes", "--cpu", &out, 600000, 5);
    unlink(out.path);
  }
  if (wanted(argc, argv, "memory")) {
    begin(&out, 20000);
    memory(&out, 100000000, 1600000, 20000);
    measure(ljprof, "memory", "--live", &out, 100000000, 1);
    unlink(out.path);
  }
  return 0;
}
