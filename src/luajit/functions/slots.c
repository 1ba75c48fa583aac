/*
** Slots of prototypes; see slots.h.
*/
#include "src/luajit/functions/slots.h"

#include <stdlib.h>

uint64_t *ljp_slot_chunks[LJP_SLOT_CHUNKS];
uint32_t ljp_slots_used = 1;
struct ljp_slot_list ljp_slot_free_list;
static struct ljp_slot_list slot_locked;

__attribute__((noinline)) uint32_t ljp_slot_make(void)
{
  uint32_t chunk = ljp_slots_used / LJP_SLOT_CHUNK;
  if (chunk >= LJP_SLOT_CHUNKS)
    return 0;
  if (!ljp_slot_chunks[chunk]) {
    ljp_slot_chunks[chunk] = malloc(LJP_SLOT_CHUNK * sizeof(uint64_t));
    if (!ljp_slot_chunks[chunk])
      return 0;
  }
  return ljp_slots_used++;
}

/* Frees all slots of a list. */
static void slot_free_all(struct ljp_slot_list *list)
{
  if (!list->first)
    return;
  *ljp_slot_at(list->last) = ljp_slot_free_list.first;
  ljp_slot_free_list.first = list->first;
  list->first = 0;
}

void ljp_slots_swept(struct ljp_vm *vm)
{
  slot_free_all(&vm->resting);
}

void ljp_slot_lock(uint32_t ref)
{
  ljp_slot_push(&slot_locked, ref);
}

void ljp_slots_unlock(void)
{
  slot_free_all(&slot_locked);
}
