/*
** See addresses.h. At most half of the slots are used.
*/
#include "parsers/heap/addresses.h"

#include <stdlib.h>
#include <sys/random.h>

enum ljp_status ljp_heap_addresses_init(struct ljp_heap_addresses *a,
                                        const uint64_t *address, uint32_t count)
{
  uint32_t slots = 1024;
  while (slots < UINT32_C(1) << 31 && slots / 2 < count)
    slots *= 2;
  *a = (struct ljp_heap_addresses){.address = address, .mask = slots - 1};
  if (slots <= count)
    return LJP_ERR_LIMIT;
  a->slots = ljp_pages_items(slots, sizeof *a->slots);
  if (!a->slots)
    return LJP_ERR_MEM;
  if (getrandom(&a->seed, sizeof a->seed, GRND_NONBLOCK) < 0)
    a->seed = (uintptr_t)a->slots;
  for (uint32_t i = 1; i < count; i++) {
    enum { AHEAD = 16 };
    if (i + AHEAD < count)
      ljp_heap_addresses_fetch(a, address[i + AHEAD]);
    uint32_t slot = ljp_heap_addresses_slot(a, address[i]);
    while (a->slots[slot] && address[a->slots[slot]] != address[i])
      slot = (slot + 1) & a->mask;
    if (!a->slots[slot])
      a->slots[slot] = i;
  }
  return LJP_OK;
}

void ljp_heap_addresses_fini(struct ljp_heap_addresses *a)
{
  free(a->slots);
  a->slots = NULL;
}
