/*
** The costs of the stream's producing side: a push into the ring, the writer's
** draining (interning, encoding, checksums, writing to /dev/null), and bytes in
** the file. Takes the best of several runs, and CPU time of this thread for the
** draining, so that a busy machine matters less. Usage: bench_stream
*/
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/writer/writer.h"
#include "test/stream/source.h"
#include "test/support/random.h"

enum { LUA_FRAMES = 30, FRAMES = 60, REPEATS = 7, PUSHES = 20000 };

/* 30 Lua and 30 host frames. The first `fresh` frames from the leaf are random
** numbers below `variety`. */
static void make_stack(uint64_t *frames, unsigned fresh, unsigned variety)
{
  for (unsigned i = 0; i < FRAMES; i++) {
    uint32_t r = i < fresh ? (uint32_t)(random_number() % variety) : 7 + i * 3;
    if (i % 2)
      frames[i] = ljp_frame(LJP_FRAME_HOST, 0, 0x7f0000000000u + i * 65536 + r);
    else
      frames[i] = ljp_frame_lua(LJP_FRAME_LUA, 0, i * 13 + 1, r + 1);
  }
}

static void empty(struct ljp_producer *p)
{
  ljp_ring_release(&p->ring, ljp_ring_head(&p->ring));
  atomic_store(&source_wake.word, 1); /* No system call: nobody sleeps. */
}

/* The ns of a push. fresh: the frames that differ from the push before. */
static double push_ns(unsigned fresh)
{
  static uint64_t stacks[64][FRAMES];
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 256 << 10);
  double best = 1e9;
  for (unsigned i = 0; i < 64; i++)
    make_stack(stacks[i], fresh, 1000000);
  /* A fresh root differs in all frames. */
  for (unsigned i = 0; i < 64 && fresh == FRAMES; i++)
    stacks[i][FRAMES - 1] = ljp_frame(LJP_FRAME_HOST, 0, 4096 + i);
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    uint64_t total = 0, pushed = 0;
    while (pushed < PUSHES) {
      empty(p);
      uint64_t start = ljp_clock_ns();
      for (unsigned i = 0; i < 256; i++) {
        const struct ljp_sample s = {
            .time_ns = i, .weight = 1000000, .vm = 1, .vmstate = 1};
        if (!ljp_push_sample(p, &s, stacks[i % 64], FRAMES))
          exit(1);
      }
      total += ljp_clock_ns() - start;
      pushed += 256;
    }
    double ns = (double)total / (double)pushed;
    best = ns < best ? ns : best;
  }
  source_free(p);
  return best;
}

struct workload {
  const char *name;
  bool memory;
  unsigned fresh, variety, new_stack_each;
  bool known; /* One of 1,000 stacks that share no frame. */
};

static uint64_t fill(struct ljp_producer *p, const struct workload *load)
{
  uint64_t frames[FRAMES], n = 0, time = 1000000000, at = 0x7f0000000000u;
  make_stack(frames, 0, 1);
  for (bool room = true; room; n++) {
    if (load->known) {
      make_stack(frames, 0, 1);
      frames[FRAMES - 1] =
          ljp_frame(LJP_FRAME_HOST, 0, 4096 + random_number() % 1000);
    } else if (n % load->new_stack_each == 0)
      make_stack(frames, load->fresh, load->variety);
    if (load->memory) {
      const struct ljp_mem m = {.time_ns = time += 150 + random_number() % 100,
                                .address = at += 16 * (random_number() % 100),
                                .size = 16 + 8 * (random_number() % 8),
                                .vm = 1,
                                .vmstate = 1,
                                .op = (uint8_t)(n % 2)};
      room = ljp_push_mem(p, &m, frames, FRAMES);
    } else {
      const struct ljp_sample s = {.time_ns = time +=
                                   1000000 + random_number() % 1000,
                                   .weight = 1000000 + random_number() % 1000,
                                   .vm = 1,
                                   .vmstate = 1};
      room = ljp_push_sample(p, &s, frames, FRAMES);
    }
  }
  return n - 1;
}

static uint64_t cpu_ns(void)
{
  return ljp_clock_of(CLOCK_THREAD_CPUTIME_ID);
}

static void drain(const struct workload *load)
{
  double best = 0, bytes = 0;
  uint64_t events = 0;
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    struct ljp_sink sink;
    struct ljp_writer *w;
    const struct ljp_writer_options options = {.describe = known()};
    struct ljp_producer *p =
        source_new(1, 0, LJP_PRODUCER_CPU, (size_t)32 << 20);
    uint64_t now = ljp_clock_ns();
    if (ljp_sink_init_file(&sink, "/dev/null", false) ||
        ljp_writer_new(&w, &sink, &options) || ljp_writer_start(w, now))
      exit(1);
    /* The first fill makes the stacks known, as in a session that has run for a
    ** second. */
    for (int round = 0; round < 2; round++) {
      events = fill(p, load);
      uint64_t used = ljp_ring_head(&p->ring) - ljp_ring_tail(&p->ring);
      ljp_writer_begin(w, now);
      if (round == 0) {
        ljp_writer_add_vm(w, 1, 0, "vm");
        ljp_writer_add_producer(w, p, 0);
        ljp_writer_begin(w, now);
      }
      uint64_t before = sink.file.whole_bytes, start = cpu_ns();
      ljp_writer_drain(w);
      uint64_t ns = cpu_ns() - start;
      double rate = (double)used * 1000 / (double)ns;
      if (round && rate > best)
        best = rate;
      bytes = (double)(sink.file.whole_bytes - before) / (double)events;
    }
    ljp_writer_free(w);
    ljp_sink_fini(&sink);
    source_free(p);
  }
  printf("  %-44s %7.0f MB/s  %6.2f bytes/event\n", load->name, best, bytes);
}

int main(void)
{
  printf("push of a sample with %u Lua and %u host frames:\n", LUA_FRAMES,
         FRAMES - LUA_FRAMES);
  printf("  %-44s %7.1f ns\n", "the same stack again", push_ns(0));
  printf("  %-44s %7.1f ns\n", "6 frames differ", push_ns(6));
  printf("  %-44s %7.1f ns\n", "all 60 frames differ", push_ns(FRAMES));
  printf("writer, one core, bytes of entries in the ring:\n");
  static const struct workload loads[] = {
      {"samples, same stack", false, 1, 50, 1000000, false},
      {"samples, 6 of 60 frames differ", false, 6, 3, 1, false},
      {"samples, 60 of 60 differ, 1,000 known stacks", false, 0, 1, 1, true},
      {"samples, 60 of 60 differ, never seen before", false, 60, 2, 1, false},
      {"memory events, same stack", true, 1, 50, 1000000, false},
      {"memory events, 4 frames differ each 10th", true, 4, 3, 10, false}};
  for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
    drain(&loads[i]);
  return 0;
}
