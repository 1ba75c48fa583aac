/*
** Index: a hash table over the items of an array. It maps a hash to positions
** in the array; the caller compares the items.
**
** Invariants: the number of slots is a power of two; at most 3/4 of them are
** used, so every search ends at a free slot. Positions are below 2^32 - 1 and
** are never removed. One thread an index.
*/
#ifndef LJP_PARSERS_INDEX_H
#define LJP_PARSERS_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "parsers/base/pages.h"
#include "src/base/assert.h"
#include "src/base/sigsafe.h"

#ifdef LJP_DEBUG /* Makes indexes grow in every test. */
#define LJP_INDEX_FIRST 4u
#else
#define LJP_INDEX_FIRST 128u
#endif

struct ljp_index_slot {
  uint32_t hash, item; /* item: position + 1; 0: free. */
};

struct ljp_index {
  struct ljp_index_slot *slots;
  uint32_t count, used; /* Number of slots; of used ones. */
};

/* Combines a hash so far (or a seed) with another word. */
static inline uint64_t ljp_hash_mix(uint64_t a, uint64_t b)
{
  a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
  return (a ^ a >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

static inline uint32_t ljp_hash_finish(uint64_t hash)
{
  return (uint32_t)(hash >> 32);
}

/* Makes room for one more item; false: no memory. */
static inline bool ljp_index_reserve(struct ljp_index *index)
{
  if (LJP_LIKELY(index->used < index->count / 4 * 3))
    return true;
  uint32_t count = index->count ? index->count * 2 : LJP_INDEX_FIRST;
  struct ljp_index_slot *slots =
      count ? ljp_pages_take(count * sizeof *slots) : NULL;
  if (!slots)
    return false;
  for (uint32_t i = 0; i < index->count; i++)
    if (index->slots[i].item) {
      uint32_t at = index->slots[i].hash & (count - 1);
      while (slots[at].item)
        at = (at + 1) & (count - 1);
      slots[at] = index->slots[i];
    }
  ljp_pages_give_back(index->slots, index->count * sizeof *slots);
  index->slots = slots;
  index->count = count;
  return true;
}

/*
** Finds or adds an item. Call ljp_index_reserve() first, then visit the slots
** that may hold the hash. The free slot that ends the loop is where a new item
** belongs (ljp_index_put).
**
**   for (slot = ljp_index_at(ix, hash); slot->item;
**        slot = ljp_index_next(ix, slot))
**     if (slot->hash == hash && same(slot->item - 1)) ...
*/
static inline struct ljp_index_slot *ljp_index_at(const struct ljp_index *index,
                                                  uint32_t hash)
{
  return &index->slots[hash & (index->count - 1)];
}

static inline struct ljp_index_slot *
ljp_index_next(const struct ljp_index *index, struct ljp_index_slot *slot)
{
  return ++slot == index->slots + index->count ? index->slots : slot;
}

static inline void ljp_index_put(struct ljp_index *index,
                                 struct ljp_index_slot *slot, uint32_t hash,
                                 uint32_t item)
{
  ljp_assert(!slot->item && item < UINT32_MAX);
  *slot = (struct ljp_index_slot){hash, item + 1};
  index->used++;
  ljp_assert(index->used <= index->count / 4 * 3);
}

static inline void ljp_index_fini(struct ljp_index *index)
{
  ljp_pages_give_back(index->slots, index->count * sizeof *index->slots);
  *index = (struct ljp_index){0};
}

#endif
