/*
** Places of memory events: what happens rarely. One thread a table.
*/
#include "parsers/profile/tarantool_places.h"

#include <string.h>

#include "parsers/base/pages.h"

#ifdef LJP_DEBUG
#define FIRST_BITS 3u
#else
#define FIRST_BITS 9u
#endif

enum ljp_status ljp_tarantool_places_init(struct ljp_tarantool_places *places,
                                          uint64_t seed)
{
  *places = (struct ljp_tarantool_places){.slot_count = (size_t)1 << FIRST_BITS,
                                          .shift = 64 - FIRST_BITS,
                                          .seed = seed};
  places->slots = ljp_pages_take(places->slot_count * sizeof *places->slots);
  return places->slots ? LJP_OK : LJP_ERR_MEM;
}

void ljp_tarantool_places_fini(struct ljp_tarantool_places *places)
{
  ljp_pages_give_back(places->slots,
                      places->slot_count * sizeof *places->slots);
  *places = (struct ljp_tarantool_places){0};
}

void ljp_tarantool_places_clear(struct ljp_tarantool_places *places)
{
  if (places->count)
    memset(places->slots, 0, places->slot_count * sizeof *places->slots);
  places->count = 0;
}

static uint64_t places_hash(const struct ljp_tarantool_places *places,
                            const struct ljp_tarantool_place *place)
{
  return ljp_tarantool_place_hash(places, place->number, place->what);
}

static void places_put(const struct ljp_tarantool_places *places,
                       const struct ljp_tarantool_place *place)
{
  struct ljp_tarantool_place *slot = ljp_tarantool_places_find(
      places, places_hash(places, place), place->number, place->what);
  ljp_assert(!slot->memory && place->memory);
  *slot = *place;
}

static bool places_grow(struct ljp_tarantool_places *places)
{
  const size_t count = places->slot_count;
  struct ljp_tarantool_place *old = places->slots;
  struct ljp_tarantool_place *slots = ljp_pages_take(count * 2 * sizeof *slots);
  if (!slots)
    return false;
  places->slots = slots;
  places->slot_count = count * 2;
  places->shift--;
  for (size_t i = 0; i < count; i++)
    if (old[i].memory)
      places_put(places, &old[i]);
  ljp_pages_give_back(old, count * sizeof *old);
  return true;
}

enum ljp_status
ljp_tarantool_places_add(struct ljp_tarantool_places *places,
                         const struct ljp_tarantool_place *place)
{
  if (places->count >= places->slot_count / 2 && !places_grow(places))
    return LJP_ERR_MEM;
  places_put(places, place);
  places->count++;
  return LJP_OK;
}

void ljp_tarantool_places_remove(struct ljp_tarantool_places *places,
                                 uint64_t number, uint32_t what)
{
  const size_t mask = places->slot_count - 1;
  struct ljp_tarantool_place *slots = places->slots;
  struct ljp_tarantool_place *found = ljp_tarantool_places_find(
      places, ljp_tarantool_place_hash(places, number, what), number, what);
  size_t hole = (size_t)(found - slots);
  if (!found->memory)
    return;
  for (size_t at = (hole + 1) & mask; slots[at].memory; at = (at + 1) & mask) {
    size_t home = places_hash(places, &slots[at]) >> places->shift;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      slots[hole] = slots[at];
      hole = at;
    }
  }
  slots[hole].memory = 0;
  places->count--;
}
