/*
** The places of Tarantool's memory events, and the row of memory that each
** leads to: 16 bytes a place, in one hash table, in the order of the hashes
** (see block_map.h). What a place means may change while the file is read; then
** it is removed. One thread a table.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_PLACES_H
#define LJP_PARSERS_PROFILE_TARANTOOL_PLACES_H

#include "parsers/profile/block_map.h"
#include "parsers/tarantool/reader.h"

struct ljp_tarantool_place {
  uint64_t number; /* As in the event: address, trace; else 0. */
  uint32_t what;   /* LFUNC: the line and a flag; else the source. */
  uint32_t memory; /* Row of memory; 0: the slot is free. */
};
#define LJP_TARANTOOL_PLACE_LINE UINT32_C(0x80000000)

struct ljp_tarantool_places {
  struct ljp_tarantool_place *slots;
  size_t slot_count, count; /* A power of two, of which half is used at most. */
  unsigned shift;
  uint64_t seed;
};

/* An empty table that has slots. seed: random. LJP_ERR_MEM. */
enum ljp_status ljp_tarantool_places_init(struct ljp_tarantool_places *places,
                                          uint64_t seed);
void ljp_tarantool_places_fini(struct ljp_tarantool_places *places);
/* Removes all places. */
void ljp_tarantool_places_clear(struct ljp_tarantool_places *places);

/* Adds a place that is not in the table. LJP_ERR_MEM. */
enum ljp_status
ljp_tarantool_places_add(struct ljp_tarantool_places *places,
                         const struct ljp_tarantool_place *place);
/* Removes a place, if it is in the table. */
void ljp_tarantool_places_remove(struct ljp_tarantool_places *places,
                                 uint64_t number, uint32_t what);

/* Lines that no function can have mean the same as none. */
static inline uint32_t
ljp_tarantool_place_what(const struct ljp_tarantool_memory *m)
{
  uint32_t line = m->line <= INT32_MAX ? (uint32_t)m->line : 0;
  return m->source == LJP_LJM_LFUNC ? LJP_TARANTOOL_PLACE_LINE | line
                                    : m->source;
}

static inline uint64_t
ljp_tarantool_place_hash(const struct ljp_tarantool_places *places,
                         uint64_t number, uint32_t what)
{
  return ljp_block_mix(number ^ places->seed,
                       UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)what << 9);
}

/* The slot of a place, or the free slot where it belongs. */
static inline struct ljp_tarantool_place *
ljp_tarantool_places_find(const struct ljp_tarantool_places *places,
                          uint64_t hash, uint64_t number, uint32_t what)
{
  struct ljp_tarantool_place *slot = &places->slots[hash >> places->shift];
  while (slot->memory && (slot->number != number || slot->what != what))
    if (LJP_UNLIKELY(++slot == places->slots + places->slot_count))
      slot = places->slots;
  return slot;
}

#endif
