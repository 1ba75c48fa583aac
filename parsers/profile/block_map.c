/*
** Block map: what happens rarely. One thread a map.
*/
#include "parsers/profile/block_map.h"

#include <sys/random.h>

#include "parsers/base/array.h"
#include "parsers/base/pages.h"

#ifdef LJP_DEBUG
#define FIRST_BITS 3u
#else
#define FIRST_BITS 12u
#endif

enum ljp_status ljp_block_map_init(struct ljp_block_map *map)
{
  *map = (struct ljp_block_map){.slot_count = (size_t)1 << FIRST_BITS,
                                .shift = 64 - FIRST_BITS};
  map->slots = ljp_pages_take(map->slot_count * sizeof *map->slots);
  if (!map->slots)
    return LJP_ERR_MEM;
  if (getrandom(&map->seed, sizeof map->seed, GRND_NONBLOCK) < 0)
    map->seed = (uintptr_t)map->slots;
  return LJP_OK;
}

void ljp_block_map_fini(struct ljp_block_map *map)
{
  ljp_pages_give_back(map->slots, map->slot_count * sizeof *map->slots);
  free(map->large);
  *map = (struct ljp_block_map){0};
}

enum ljp_status ljp_block_map_grow(struct ljp_block_map *map)
{
  const size_t old_count = map->slot_count;
  const size_t old_bytes = old_count * sizeof *map->slots;
  struct ljp_block_slot *old = map->slots, *slots;
  size_t given = 0;
  if (old_count > UINT32_MAX || !(slots = ljp_pages_take(old_bytes * 2)))
    return LJP_ERR_MEM;
  map->slots = slots;
  map->slot_count *= 2;
  map->shift--;
  for (size_t i = 0; i < old_count; i++) {
    if (old[i].memory)
      *ljp_block_find(map, ljp_block_hash(map, old[i].address),
                      old[i].address) = old[i];
    if (i % (LJP_PAGES_LARGE / sizeof *old) == 0)
      ljp_pages_release(old, old_bytes, i * sizeof *old, &given);
  }
  ljp_pages_give_back(old, old_bytes);
  return LJP_OK;
}

enum ljp_status ljp_block_put_large(struct ljp_block_map *map,
                                    struct ljp_block_slot *slot, uint64_t size)
{
  uint32_t at = map->large_free;
  if (at) {
    map->large_free = (uint32_t)map->large[--at];
  } else {
    if (!ljp_array_reserve(&map->large, map->large_count, &map->large_room,
                           sizeof *map->large))
      return LJP_ERR_MEM;
    at = map->large_count++;
  }
  map->large[at] = size;
  slot->size = at;
  slot->memory |= LJP_BLOCK_LARGE;
  return LJP_OK;
}

void ljp_block_drop_large(struct ljp_block_map *map,
                          const struct ljp_block_slot *slot)
{
  map->large[slot->size] = map->large_free;
  map->large_free = slot->size + 1;
}
