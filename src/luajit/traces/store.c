/*
** The memory of traces' entries, with their markers behind them.
**
** Programs that flush their code make and free thousands of entries of a few
** hundred bytes, while their compiler waits. So entries are cut from blocks,
** one after the other, and a free entry is reused for one of the same size
** (rounded to steps). When no entry is left, all blocks but one are freed.
**
** Invariant: all blocks together have at most LJP_MARKERS_TOTAL_BYTES. An entry
** that is large, or does not fit there, comes from malloc() and has pool_bytes
** 0. Under the lock of traces.
*/
#include <stdlib.h>

#include "src/base/assert.h"
#include "src/luajit/traces/trace.h"

enum {
  STEP = 32,
  LARGEST = 2048, /* bytes of an entry in store_blocks */
  BLOCK_BYTES = 32 << 10,
  BLOCKS = LJP_MARKERS_TOTAL_BYTES / BLOCK_BYTES
};

struct block {
  struct block *next;
  uint64_t reserved; /* entries are aligned as malloc() aligns */
  char entries[BLOCK_BYTES - 16];
};

struct unused {
  struct unused *next;
};

static struct block *store_blocks; /* the first one is being cut */
static uint32_t store_block_count, store_cut_bytes, store_entries_alive;
static struct unused *store_unused[LARGEST / STEP + 1]; /* by steps */

static void store_keep(void *p, size_t bytes)
{
  struct unused *u = p;
  u->next = store_unused[bytes / STEP];
  store_unused[bytes / STEP] = u;
}

/* Begins a block. The rest of the previous block becomes a free entry. */
__attribute__((noinline)) static bool store_add_block(void)
{
  struct block *fresh =
      store_block_count < BLOCKS ? malloc(sizeof *fresh) : NULL;
  if (!fresh)
    return false;
  uint32_t left =
      store_blocks ? sizeof store_blocks->entries - store_cut_bytes : 0;
  left -= left % STEP;
  if (left)
    store_keep(store_blocks->entries + store_cut_bytes, left);
  fresh->next = store_blocks;
  store_blocks = fresh;
  store_block_count++;
  store_cut_bytes = 0;
  return true;
}

static void *store_take(size_t bytes)
{
  struct unused *u = store_unused[bytes / STEP];
  if (u) {
    store_unused[bytes / STEP] = u->next;
    return u;
  }
  if (LJP_UNLIKELY(!store_blocks ||
                   sizeof store_blocks->entries - store_cut_bytes < bytes) &&
      !store_add_block())
    return NULL;
  void *p = store_blocks->entries + store_cut_bytes;
  store_cut_bytes += (uint32_t)bytes;
  return p;
}

static void store_give_back(void)
{
  while (store_blocks && store_blocks->next) {
    struct block *next = store_blocks->next;
    free(store_blocks);
    store_blocks = next;
    store_block_count--;
  }
  store_cut_bytes = 0;
  for (size_t i = 0; i < sizeof store_unused / sizeof *store_unused; i++)
    store_unused[i] = NULL;
}

struct ljp_trace *ljp_trace_new(size_t marker_bytes)
{
  size_t bytes = sizeof(struct ljp_trace) + marker_bytes;
  size_t steps = (bytes + STEP - 1) / STEP * STEP;
  struct ljp_trace *trace = steps <= LARGEST ? store_take(steps) : NULL;
  if (LJP_LIKELY(trace)) {
    store_entries_alive++;
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
  ljp_assert(store_entries_alive > 0 && trace->pool_bytes % STEP == 0);
  store_keep(trace, trace->pool_bytes);
  if (--store_entries_alive == 0)
    store_give_back();
}
