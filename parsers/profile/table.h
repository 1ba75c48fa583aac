/*
** Growing arrays, and an index over one: hash -> position of an item, which
** the caller compares. Used by the profile's tables. Items are numbers below
** 2^32 - 1, never removed. One thread a table.
*/
#ifndef LJP_PARSERS_TABLE_H
#define LJP_PARSERS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/sigsafe.h"

#ifdef LJP_DEBUG /* So that growth happens in every test. */
#define LJP_TABLE_FIRST 2u
#else
#define LJP_TABLE_FIRST 64u
#endif

struct ljp_index_slot {
  uint32_t hash, item; /* item + 1; 0: free. */
};

struct ljp_index {
  struct ljp_index_slot *slots; /* A power of two, at most 3/4 full. */
  uint32_t count, used;
};

static inline uint64_t ljp_mix(uint64_t a, uint64_t b)
{
  a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
  return (a ^ a >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

static inline uint32_t ljp_hash_end(uint64_t hash)
{
  return (uint32_t)(hash >> 32);
}

/* Makes room for one more item; false: no memory. */
static inline bool ljp_index_reserve(struct ljp_index *index)
{
  if (LJP_LIKELY(index->used < index->count / 4 * 3))
    return true;
  uint32_t count = index->count ? index->count * 2 : LJP_TABLE_FIRST * 2;
  struct ljp_index_slot *slots = calloc(count, sizeof *slots);
  if (!slots || !count) {
    free(slots);
    return false;
  }
  for (uint32_t i = 0; i < index->count; i++)
    if (index->slots[i].item) {
      uint32_t at = index->slots[i].hash & (count - 1);
      while (slots[at].item)
        at = (at + 1) & (count - 1);
      slots[at] = index->slots[i];
    }
  free(index->slots);
  index->slots = slots;
  index->count = count;
  return true;
}

/*
** For each item that may have the hash (reserve first): a slot whose item is
** 0 ends the search and is where the new one belongs.
**   for (slot = ljp_index_at(ix, hash); slot->item; slot = next(ix, slot))
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
  *slot = (struct ljp_index_slot){hash, item + 1};
  index->used++;
}

static inline void ljp_index_fini(struct ljp_index *index)
{
  free(index->slots);
  *index = (struct ljp_index){0};
}

/* What a full array grows to; 0: it cannot. */
static inline uint32_t ljp_more_room(uint32_t room)
{
  uint32_t more = room ? room + room / 2 + 1 : LJP_TABLE_FIRST;
  return more > room ? more : 0;
}

/* Room for one more at the end of an array; false: no memory. */
static inline bool ljp_array_reserve(void *array_pointer, uint32_t count,
                                     uint32_t *room, size_t item_bytes)
{
  void **array = array_pointer;
  if (LJP_LIKELY(count < *room))
    return true;
  uint32_t more = ljp_more_room(*room);
  if (!more)
    return false;
  void *bigger = realloc(*array, (size_t)more * item_bytes);
  if (!bigger)
    return false;
  *array = bigger;
  *room = more;
  return true;
}

/* Likewise, for items that are come back to in no order: none of a size that
** divides LJP_LINE_BYTES, or is a multiple, crosses a line of the cache. */
#define LJP_LINE_BYTES 64u
static inline bool ljp_lines_reserve(void *array_pointer, uint32_t count,
                                     uint32_t *room, size_t item_bytes)
{
  void **array = array_pointer;
  if (LJP_LIKELY(count < *room))
    return true;
  uint32_t more = ljp_more_room(*room);
  if (!more)
    return false;
  size_t bytes = (size_t)more * item_bytes;
  bytes += (LJP_LINE_BYTES - bytes % LJP_LINE_BYTES) % LJP_LINE_BYTES;
  void *bigger = aligned_alloc(LJP_LINE_BYTES, bytes);
  if (!bigger)
    return false;
  if (*array)
    memcpy(bigger, *array, (size_t)count * item_bytes);
  free(*array);
  *array = bigger;
  *room = more;
  return true;
}

#endif
