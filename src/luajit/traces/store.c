/*
** The memory of traces' records, with their marks behind them.
**
** Programs that flush make and free thousands, each a few hundred bytes, while
** their compiler waits. So records are cut from blocks, one after the other, and
** one that is free is used again for one of the same size (in steps). When
** there is no record left, the blocks are given back, but for one.
**
** Invariant: all blocks together are at most LJP_MARKS_TOTAL_BYTES; what has no
** place there, or is large, comes from malloc() and has pool_bytes 0.
** Under the lock of traces.
*/
#include <stdlib.h>

#include "src/luajit/traces/traces.h"

enum {
  STEP = 32,
  LARGEST = 2048, /* of records in blocks */
  BLOCK_BYTES = 32 << 10,
  BLOCKS = LJP_MARKS_TOTAL_BYTES / BLOCK_BYTES
};

struct block {
  struct block *next;
  uint64_t reserved; /* records are aligned as malloc() aligns */
  char records[BLOCK_BYTES - 16];
};

struct unused {
  struct unused *next;
};

static struct block *blocks; /* the first one is being cut */
static uint32_t block_count, cut_bytes, records_alive;
static struct unused *unused[LARGEST / STEP + 1]; /* by steps */

static void keep(void *p, size_t bytes)
{
  struct unused *u = p;
  u->next = unused[bytes / STEP];
  unused[bytes / STEP] = u;
}

/* Begins a block. What is left of the one before is cut up at its end. */
__attribute__((noinline)) static bool add_block(void)
{
  struct block *fresh = block_count < BLOCKS ? malloc(sizeof *fresh) : NULL;
  if (!fresh)
    return false;
  uint32_t left = blocks ? sizeof blocks->records - cut_bytes : 0;
  left -= left % STEP;
  if (left)
    keep(blocks->records + cut_bytes, left);
  fresh->next = blocks;
  blocks = fresh;
  block_count++;
  cut_bytes = 0;
  return true;
}

static void *take(size_t bytes)
{
  struct unused *u = unused[bytes / STEP];
  if (u) {
    unused[bytes / STEP] = u->next;
    return u;
  }
  if (LJP_UNLIKELY(!blocks || sizeof blocks->records - cut_bytes < bytes) &&
      !add_block())
    return NULL;
  void *p = blocks->records + cut_bytes;
  cut_bytes += (uint32_t)bytes;
  return p;
}

static void give_back(void)
{
  while (blocks && blocks->next) {
    struct block *next = blocks->next;
    free(blocks);
    blocks = next;
    block_count--;
  }
  cut_bytes = 0;
  for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
    unused[i] = NULL;
}

struct ljp_trace *ljp_trace_new(size_t marks_bytes)
{
  size_t bytes = sizeof(struct ljp_trace) + marks_bytes;
  size_t steps = (bytes + STEP - 1) / STEP * STEP;
  struct ljp_trace *trace = steps <= LARGEST ? take(steps) : NULL;
  if (LJP_LIKELY(trace)) {
    records_alive++;
  } else {
    steps = 0;
    trace = malloc(bytes);
    if (!trace)
      return NULL;
  }
  trace->pool_bytes = (uint32_t)steps;
  return trace;
}

void ljp_trace_free(struct ljp_trace *trace)
{
  if (!trace->pool_bytes) {
    free(trace);
    return;
  }
  keep(trace, trace->pool_bytes);
  if (--records_alive == 0)
    give_back();
}
