/*
** The handler's side of maps: borrowing the current one and looking into it.
** Safety: LJP_SIGSAFE throughout; no allocation, no lock, no system call.
*/
#include "profilers/unwind/map.h"
#include "src/base/assert.h"

/* A slot's count of users protects its map. The order matters. The handler
** counts itself in, then looks whether the slot is still current; the writer
** makes another slot current, then looks at the count. All of this is
** sequentially consistent, so at least one sees the other: either the handler
** turns back, or the writer keeps the map. If the slot has been reused between
** the handler's two looks, the handler gets the newer map, because it reads
** the slot's map last. */
const struct ljp_unwind_map *ljp_unwind_acquire(struct ljp_unwind *unwind)
{
  for (int attempt = 0; attempt < 3; attempt++) {
    unsigned slot =
        atomic_load_explicit(&unwind->current, memory_order_seq_cst);
    atomic_fetch_add_explicit(&unwind->slots[slot].users, 1,
                              memory_order_seq_cst);
    if (atomic_load_explicit(&unwind->current, memory_order_seq_cst) == slot) {
      const struct ljp_unwind_map *map = unwind->slots[slot].map;
      ljp_assert(map->slot == slot);
      return map;
    }
    /* release: nothing of the map was read, but the counts stay in order. */
    atomic_fetch_sub_explicit(&unwind->slots[slot].users, 1,
                              memory_order_release);
  }
  return NULL;
}

void ljp_unwind_release(struct ljp_unwind *unwind,
                        const struct ljp_unwind_map *map)
{
  /* release: all reads of the map come before the writer sees zero. */
  uint64_t users = atomic_fetch_sub_explicit(&unwind->slots[map->slot].users, 1,
                                             memory_order_release);
  ljp_assert(users > 0);
  (void)users;
}

uint64_t ljp_unwind_map_serial(const struct ljp_unwind_map *map)
{
  return map->serial;
}

const _Atomic uint64_t *ljp_unwind_serial(const struct ljp_unwind *unwind)
{
  return &unwind->serial;
}

bool ljp_unwind_wants_poll(const struct ljp_unwind *unwind)
{
  /* relaxed: a hint; the writer's next round finds out anyway. */
  return atomic_load_explicit(&unwind->wants_poll, memory_order_relaxed);
}

bool ljp_unwind_has_module(const struct ljp_unwind_map *map, uint64_t address)
{
  return ljp_unwind_find_range(map, address, 0) != NULL;
}
