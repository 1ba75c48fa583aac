/*
** See ids.h.
*/
#include "tools/heap/ids.h"

#include <stdlib.h>

#include "parsers/base/array.h"

static uint32_t ids_hash(uint64_t key)
{
  return ljp_hash_finish(ljp_hash_mix(key, 1));
}

uint32_t ljp_heap_ids_find(const struct ljp_heap_ids *ids, uint64_t key)
{
  if (!ids->count)
    return LJP_HEAP_NO_ID;
  struct ljp_index_slot *slot = ljp_index_at(&ids->index, ids_hash(key));
  while (slot->item && ids->keys[slot->item - 1] != key)
    slot = ljp_index_next(&ids->index, slot);
  return slot->item ? slot->item - 1 : LJP_HEAP_NO_ID;
}

uint32_t ljp_heap_ids_add(struct ljp_heap_ids *ids, uint64_t key)
{
  uint32_t id = ljp_heap_ids_find(ids, key), hash = ids_hash(key);
  if (id != LJP_HEAP_NO_ID)
    return id;
  if (!ljp_array_reserve(&ids->keys, ids->count, &ids->room,
                         sizeof *ids->keys) ||
      !ljp_index_reserve(&ids->index))
    return LJP_HEAP_NO_ID;
  struct ljp_index_slot *slot = ljp_index_at(&ids->index, hash);
  while (slot->item)
    slot = ljp_index_next(&ids->index, slot);
  ids->keys[ids->count] = key;
  ljp_index_put(&ids->index, slot, hash, ids->count);
  return ids->count++;
}

void ljp_heap_ids_fini(struct ljp_heap_ids *ids)
{
  free(ids->keys);
  ljp_index_fini(&ids->index);
  *ids = (struct ljp_heap_ids){.keys = NULL};
}
