/*
** Block map: live memory blocks by address, for files whose events are exact
** and have no times: 16 bytes a block, in one hash table. live_blocks.h is the
** table for our own streams.
**
** Open addressing, in the order of the hashes: the upper bits of a block's hash
** are its slot, and blocks that do not fit there follow. So a table that grows
** is read and written from its beginning to its end, and gives its memory back
** meanwhile. A removal closes the gap it leaves. Between 3/8 (after it grew)
** and 3/4 of the slots are used: at most 43 bytes a block.
**
** Addresses and sizes come from the input and are never believed. The searches
** are inline because they are what the reader does most. One thread a map.
*/
#ifndef LJP_PARSERS_PROFILE_BLOCK_MAP_H
#define LJP_PARSERS_PROFILE_BLOCK_MAP_H

#include <stddef.h>

#include "parsers/base/index.h"
#include "src/base/status.h"

struct ljp_block_slot {
  uint64_t address;
  uint32_t size;   /* LARGE: place of the size in large[]. */
  uint32_t memory; /* Row of memory; 0: the slot is free. */
};
#define LJP_BLOCK_LARGE UINT32_C(0x80000000) /* Flag of slot->memory. */

struct ljp_block_map {
  struct ljp_block_slot *slots;
  size_t slot_count; /* A power of two. */
  size_t count;
  unsigned shift; /* 64 - logarithm of slot_count. */
  uint64_t seed;  /* Random: input cannot be made to collide. */
  uint64_t *large;
  uint32_t large_count, large_room;
  uint32_t large_free; /* First of those that are free again, + 1. */
};

/* An empty map that has slots. LJP_ERR_MEM. */
enum ljp_status ljp_block_map_init(struct ljp_block_map *map);
void ljp_block_map_fini(struct ljp_block_map *map);

/* Makes room for one more block, which may move all slots. LJP_ERR_MEM. */
enum ljp_status ljp_block_map_grow(struct ljp_block_map *map);
static inline enum ljp_status ljp_block_map_reserve(struct ljp_block_map *map)
{
  return LJP_LIKELY(map->count < map->slot_count / 4 * 3)
             ? LJP_OK
             : ljp_block_map_grow(map);
}

/* The hash of two words: both halves of their product. */
static inline uint64_t ljp_block_mix(uint64_t a, uint64_t b)
{
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t ljp_block_hash(const struct ljp_block_map *map,
                                      uint64_t address)
{
  return ljp_block_mix(address ^ map->seed, UINT64_C(0x9e3779b97f4a7c15));
}

/* Where the search for a hash begins. */
static inline struct ljp_block_slot *
ljp_block_home(const struct ljp_block_map *map, uint64_t hash)
{
  return &map->slots[hash >> map->shift];
}

/* The slot of an address, or the free slot where it belongs. */
static inline struct ljp_block_slot *
ljp_block_find(const struct ljp_block_map *map, uint64_t hash, uint64_t address)
{
  struct ljp_block_slot *slot = ljp_block_home(map, hash);
  while (slot->memory && slot->address != address)
    if (LJP_UNLIKELY(++slot == map->slots + map->slot_count))
      slot = map->slots;
  return slot;
}

/* Of slots with LJP_BLOCK_LARGE. */
enum ljp_status ljp_block_put_large(struct ljp_block_map *map,
                                    struct ljp_block_slot *slot, uint64_t size);
void ljp_block_drop_large(struct ljp_block_map *map,
                          const struct ljp_block_slot *slot);

static inline uint64_t ljp_block_size(const struct ljp_block_map *map,
                                      const struct ljp_block_slot *slot)
{
  return LJP_LIKELY(!(slot->memory & LJP_BLOCK_LARGE)) ? slot->size
                                                       : map->large[slot->size];
}

static inline uint32_t ljp_block_memory(const struct ljp_block_slot *slot)
{
  return slot->memory & ~LJP_BLOCK_LARGE;
}

/* Puts a block into a free slot that ljp_block_find() returned after
** ljp_block_map_reserve(). LJP_ERR_MEM. */
static inline enum ljp_status ljp_block_put(struct ljp_block_map *map,
                                            struct ljp_block_slot *slot,
                                            uint64_t address, uint64_t size,
                                            uint32_t memory)
{
  ljp_assert(!slot->memory && memory && memory < LJP_BLOCK_LARGE);
  *slot = (struct ljp_block_slot){address, (uint32_t)size, memory};
  map->count++;
  return LJP_LIKELY(size <= UINT32_MAX) ? LJP_OK
                                        : ljp_block_put_large(map, slot, size);
}

/* Frees the slot of a block, for another block with the same address, which
** must be put there next. */
static inline void ljp_block_take(struct ljp_block_map *map,
                                  struct ljp_block_slot *slot)
{
  if (LJP_UNLIKELY(slot->memory & LJP_BLOCK_LARGE))
    ljp_block_drop_large(map, slot);
  slot->memory = 0;
  map->count--;
}

/* Removes the block of a slot. */
static inline void ljp_block_remove(struct ljp_block_map *map,
                                    struct ljp_block_slot *hole)
{
  struct ljp_block_slot *slots = map->slots, *at = hole;
  size_t mask = map->slot_count - 1;
  if (LJP_UNLIKELY(hole->memory & LJP_BLOCK_LARGE))
    ljp_block_drop_large(map, hole);
  map->count--;
  for (;;) { /* Close the gap: move back each later block that may be there. */
    if (LJP_UNLIKELY(++at == slots + map->slot_count))
      at = slots;
    if (!at->memory)
      break;
    size_t home = ljp_block_hash(map, at->address) >> map->shift;
    size_t from_home = ((size_t)(at - slots) - home) & mask;
    if (from_home >= ((size_t)(at - hole) & mask)) {
      *hole = *at;
      hole = at;
    }
  }
  hole->memory = 0;
}

#endif
