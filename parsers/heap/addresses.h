/*
** Objects by address: a hash table over an array of addresses, with a random
** seed, so that no file can make addresses collide. Of two objects at one address,
** the first is found. Object 0 has no address. One thread a table.
*/
#ifndef LJP_PARSERS_HEAP_ADDRESSES_H
#define LJP_PARSERS_HEAP_ADDRESSES_H

#include "parsers/base/index.h"
#include "src/base/status.h"

struct ljp_heap_addresses {
  const uint64_t *address; /* By object. Borrowed. */
  uint32_t *slots, mask;
  uint64_t seed;
};

enum ljp_status ljp_heap_addresses_init(struct ljp_heap_addresses *a,
                                        const uint64_t *address,
                                        uint32_t count);
void ljp_heap_addresses_fini(struct ljp_heap_addresses *a);

static inline uint32_t
ljp_heap_addresses_slot(const struct ljp_heap_addresses *a, uint64_t address)
{
  return ljp_hash_finish(ljp_hash_mix(a->seed, address)) & a->mask;
}

/* 0: there is no such object. */
static inline uint32_t ljp_heap_address(const struct ljp_heap_addresses *a,
                                        uint64_t address)
{
  uint32_t slot = ljp_heap_addresses_slot(a, address);
  while (a->slots[slot] && a->address[a->slots[slot]] != address)
    slot = (slot + 1) & a->mask;
  return a->slots[slot];
}

/* In large heaps each of the two reads of a search misses the caches. Whoever
** looks for many addresses asks for the first read of all of them, then for the
** second. */
static inline void ljp_heap_addresses_fetch(const struct ljp_heap_addresses *a,
                                            uint64_t address)
{
  __builtin_prefetch(&a->slots[ljp_heap_addresses_slot(a, address)]);
}

static inline void
ljp_heap_addresses_fetch_object(const struct ljp_heap_addresses *a,
                                uint64_t address)
{
  __builtin_prefetch(
      &a->address[a->slots[ljp_heap_addresses_slot(a, address)]]);
}

#endif
