/* parsers/profile: live blocks and places of Tarantool's memory events. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/profile/block_map.h"
#include "parsers/profile/tarantool_places.h"
#include "test/support/random.h"

/* What the map should hold, by address / 16. */
struct model {
  uint64_t size;
  uint32_t memory;
};

static void check_block(const struct ljp_block_map *map, uint64_t address,
                        const struct model *model)
{
  const struct ljp_block_slot *slot =
      ljp_block_find(map, ljp_block_hash(map, address), address);
  assert_int_equal(ljp_block_memory(slot), model->memory);
  if (model->memory)
    assert_int_equal(ljp_block_size(map, slot), model->size);
}

static void blocks_come_and_go(void **state)
{
  enum { ADDRESSES = 1009, STEPS = 40009 };
  static struct model model[ADDRESSES];
  struct ljp_block_map map;
  size_t count = 0;
  (void)state;
  assert_int_equal(ljp_block_map_init(&map), LJP_OK);
  for (int i = 0; i < STEPS; i++) {
    uint64_t r = random_number(), address = r % ADDRESSES;
    struct model *m = &model[address];
    assert_int_equal(ljp_block_map_reserve(&map), LJP_OK);
    struct ljp_block_slot *slot =
        ljp_block_find(&map, ljp_block_hash(&map, address * 16), address * 16);
    assert_int_equal(ljp_block_memory(slot), m->memory);
    if (m->memory && r >> 60 < 12) {
      ljp_block_remove(&map, slot);
      *m = (struct model){0};
      count--;
      continue;
    }
    if (m->memory)
      ljp_block_take(&map, slot); /* Another block at its address. */
    else
      count++;
    /* Some sizes have more than 32 bits. */
    m->size = (r >> 20) % 5 ? (r >> 30) % 1000 : r;
    m->memory = 1 + (uint32_t)(r >> 40) % 1000;
    assert_int_equal(
        ljp_block_put(&map, slot, address * 16, m->size, m->memory), LJP_OK);
    assert_int_equal(map.count, count);
  }
  for (uint64_t i = 0; i < ADDRESSES; i++)
    check_block(&map, i * 16, &model[i]);
  ljp_block_map_fini(&map);
}

static void the_map_grows(void **state)
{
  enum { BLOCKS = 300007 };
  struct ljp_block_map map;
  (void)state;
  assert_int_equal(ljp_block_map_init(&map), LJP_OK);
  for (uint64_t i = 0; i < BLOCKS; i++) {
    uint64_t address = UINT64_MAX - i * 16;
    assert_int_equal(ljp_block_map_reserve(&map), LJP_OK);
    assert_int_equal(
        ljp_block_put(
            &map, ljp_block_find(&map, ljp_block_hash(&map, address), address),
            address, i, 1),
        LJP_OK);
  }
  for (uint64_t i = 0; i < BLOCKS; i++)
    check_block(&map, UINT64_MAX - i * 16, &(struct model){i, 1});
  check_block(&map, 8, &(struct model){0});
  assert_true(map.slot_count * sizeof *map.slots <= BLOCKS * 43);
  ljp_block_map_fini(&map);
}

static void places_are_removed_one_by_one(void **state)
{
  enum { PLACES = 1009 };
  struct ljp_tarantool_places places;
  (void)state;
  assert_int_equal(ljp_tarantool_places_init(&places, random_number()), LJP_OK);
  for (uint32_t i = 0; i < PLACES; i++) {
    struct ljp_tarantool_place place = {i / 7, i % 7, i + 1};
    assert_int_equal(ljp_tarantool_places_add(&places, &place), LJP_OK);
  }
  for (uint32_t i = 0; i < PLACES; i += 3)
    ljp_tarantool_places_remove(&places, i / 7, i % 7);
  ljp_tarantool_places_remove(&places, PLACES, 0); /* It is not there. */
  for (uint32_t i = 0; i < PLACES; i++) {
    uint64_t hash = ljp_tarantool_place_hash(&places, i / 7, i % 7);
    assert_int_equal(
        ljp_tarantool_places_find(&places, hash, i / 7, i % 7)->memory,
        i % 3 ? i + 1 : 0);
  }
  ljp_tarantool_places_clear(&places);
  assert_int_equal(places.count, 0);
  ljp_tarantool_places_fini(&places);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_come_and_go),
      cmocka_unit_test(the_map_grows),
      cmocka_unit_test(places_are_removed_one_by_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
