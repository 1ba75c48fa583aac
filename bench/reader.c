/*
** How fast the reader is, from a file to events: MB/s and events/s of one core
** for samples, memory events, stack nodes, and a mix of them as a session
** writes it. The streams are made here, in a temporary file. The best of
** several runs counts, in CPU time of this thread, so that a busy machine
** matters little.
*/
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "parsers/stream/reader.h"
#include "test/support/encode.h"
#include "test/support/random.h"

enum { RUNS = 7, BLOCK_BYTES = 64 << 10, FILE_BYTES = 192 << 20 };

/* Samples at 1 kHz with jitter. Most stacks are near the one before; the state
** changes now and then. */
static void samples(struct buf *body)
{
  while (body->len < BLOCK_BYTES) {
    uint64_t r = random_number();
    bool state = r % 5 == 0;
    put_u8(body, LJP_SAMPLE_STACK | (state ? LJP_SAMPLE_STATE : 0));
    put_s(body, (int64_t)(1000000 + (r >> 40) % 30000));
    put_s(body, (int64_t)(r >> 8 & 2047) - 1024);
    if (state)
      put_u8(body, 1 + r % 3);
  }
}

/* Allocations with some frees, most at the stack of the event before. */
static void memory(struct buf *body)
{
  while (body->len < BLOCK_BYTES) {
    uint64_t r = random_number();
    bool stack = r % 3 == 0;
    bool is_free = r % 4 == 0;
    put_u8(body, (is_free ? LJP_MEM_FREE : LJP_MEM_ALLOC) | LJP_MEM_SIZE |
                     (stack ? LJP_MEM_STACK : 0));
    put_s(body, (int64_t)(r >> 50) % 900 + 40);
    put_s(body, (int64_t)(r >> 16 & 0xfffff) - 0x80000);
    put_u(body, 16 + (r >> 8) % 200);
    if (stack)
      put_s(body, (int64_t)(r >> 20 & 255) - 128);
  }
}

static uint64_t last_node;

static void nodes(struct buf *body)
{
  uint64_t before = 0;
  while (body->len < BLOCK_BYTES) {
    uint64_t r = random_number(), id = ++last_node;
    put_s(body, (int64_t)(id - before));
    put_u(body, id > 300 ? 1 + r % 300 : id);
    put_u8(body, LJP_FRAME_LUA << 4);
    put_u(body, 1 + (r >> 20) % 4000);
    put_u(body, 1 + (r >> 40) % 700);
    before = id;
  }
}

/* Writes a stream of blocks with one record each. The shares, in percent, say
** how many records are samples and memory events; the others are nodes. */
static void make(FILE *file, int sample_share, int memory_share)
{
  struct buf payload = {0}, body = {0}, block = {0};
  uint64_t bytes = 0, seq = 0;
  uint32_t epoch = 1;
  last_node = 0;
  while (bytes < FILE_BYTES) {
    int kind = (int)(random_number() >> 20) % 100;
    struct ljp_block_head head = test_head(seq++);
    if (last_node + BLOCK_BYTES > LJP_EPOCH_MAX_NODES) {
      epoch++;
      last_node = 0;
    }
    head.epoch = epoch;
    if (kind < sample_share) {
      samples(&body);
      put_record(&payload, LJP_REC_SAMPLES, &body);
    } else if (kind < sample_share + memory_share) {
      memory(&body);
      put_record(&payload, LJP_REC_MEM, &body);
    } else {
      nodes(&body);
      put_record(&payload, LJP_REC_NODES, &body);
    }
    put_block_head(&block, head, &payload);
    if (fwrite(block.data, 1, block.len, file) != block.len)
      abort();
    bytes += block.len;
    block.len = 0;
  }
  if (fflush(file) != 0)
    abort();
  buf_free(&payload);
  buf_free(&body);
  buf_free(&block);
}

static double cpu_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads the whole stream once. The sum keeps the compiler from skipping work. */
static double read_once(const char *path, uint64_t *events, uint64_t *bytes)
{
  static struct ljp_reader reader;
  static volatile uint64_t sink;
  const struct ljp_item *e;
  uint64_t sum = 0;
  double begin = cpu_seconds();
  *events = 0;
  if (ljp_reader_open(&reader, path)) {
    fprintf(stderr, "bench_reader: %s: %s\n", path, reader.error);
    exit(1);
  }
  for (;;) {
    if (ljp_reader_next(&reader, &e)) {
      fprintf(stderr, "bench_reader: %s\n", reader.error);
      exit(1);
    }
    if (e->what == LJP_ITEM_FINISH)
      break;
    sum += e->time_ns + e->u.sample.stack;
    ++*events;
  }
  const struct ljp_finish *f = &e->u.finish;
  if (f->gaps || f->bad_records) {
    fprintf(stderr, "bench_reader: the stream made here is damaged\n");
    exit(1);
  }
  *bytes = f->bytes;
  sink = sum;
  (void)sink;
  double end = cpu_seconds();
  ljp_reader_fini(&reader);
  return end - begin;
}

static void bench(const char *name, int sample_share, int memory_share)
{
  char path[] = "/tmp/ljprof-bench-XXXXXX";
  int fd = mkstemp(path);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
  double best = 1e9;
  uint64_t events = 0, bytes = 0;
  if (!file) {
    perror("bench_reader: mkstemp");
    exit(1);
  }
  make(file, sample_share, memory_share);
  for (int i = 0; i < RUNS; i++) {
    double t = read_once(path, &events, &bytes);
    if (t < best)
      best = t;
  }
  printf("reader %-8s %6.0f MB/s  %6.1f M events/s  %4.1f bytes each\n", name,
         (double)bytes / best / 1e6, (double)events / best / 1e6,
         (double)bytes / (double)events);
  fclose(file);
  unlink(path);
}

int main(void)
{
  bench("samples", 100, 0);
  bench("memory", 0, 100);
  bench("nodes", 0, 0);
  bench("mixed", 60, 32);
  return 0;
}
