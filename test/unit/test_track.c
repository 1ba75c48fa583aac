/* The table of sampled blocks, and the filters in front of it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "profilers/memory/track.h"

/* The test that profilers/memory/entry.c makes before it calls the recorder. */
static bool passes(const struct ljp_track *track, uint64_t address)
{
  return track->filter[ljp_track_filter_at(address)] &&
         track->wide[ljp_track_wide_at(address, track->wide_shift)];
}

static struct ljp_tracked block_of(uint32_t i)
{
  uint64_t x = (i + 1) * UINT64_C(0xd1342543de82ef95);
  return (struct ljp_tracked){0x7f0000000000 + (x >> 30 << 4), 17 + i, 1009};
}

static void take(struct ljp_track *track, uint32_t i)
{
  struct ljp_tracked block, want = block_of(i);
  assert_true(passes(track, want.address));
  assert_true(ljp_track_take(track, want.address, &block));
  assert_int_equal(block.address, want.address);
  assert_int_equal(block.size, want.size);
  assert_int_equal(block.weight, want.weight);
  assert_false(ljp_track_take(track, want.address, &block));
}

static void what_is_put_in_comes_out_and_passes_until_then(void **state)
{
  (void)state;
  enum { BLOCKS = 20011 };
  static struct ljp_track track = {.filters = true};
  for (uint32_t i = 0; i < BLOCKS; i++) {
    struct ljp_tracked block = block_of(i);
    assert_true(ljp_track_put(&track, &block));
    assert_true(passes(&track, block_of(0).address));
    assert_true(passes(&track, block_of(i / 2).address));
    assert_true(passes(&track, block.address));
  }
  assert_int_equal(track.count, BLOCKS);
  for (uint32_t i = 0; i < BLOCKS; i += 2)
    take(&track, i);
  assert_int_equal(track.count, BLOCKS / 2);
  for (uint32_t i = 1; i < BLOCKS; i += 2)
    take(&track, i);
  assert_int_equal(track.count, 0);
  for (uint32_t i = 0; i < sizeof track.filter; i++)
    assert_int_equal(track.filter[i], 0);
  uint32_t places = LJP_TRACK_WIDE * (track.mask + 1);
  assert_int_equal(UINT32_MAX >> track.wide_shift, places - 1);
  for (uint32_t i = 0; i < places; i++)
    assert_int_equal(track.wide[i], 0);
  ljp_track_fini(&track);
}

static void few_others_pass(void **state)
{
  (void)state;
  enum { BLOCKS = 3001, OTHERS = 100003 };
  static struct ljp_track track = {.filters = true};
  uint32_t passed = 0;
  for (uint32_t i = 0; i < BLOCKS; i++) {
    struct ljp_tracked block = block_of(i);
    assert_true(ljp_track_put(&track, &block));
  }
  for (uint32_t i = BLOCKS; i < BLOCKS + OTHERS; i++)
    passed += passes(&track, block_of(i).address);
  assert_in_range(passed, 1, OTHERS / 16);
  ljp_track_fini(&track);
}

/* A place that counts to 255 lets its blocks pass for good. */
static void a_crowded_place_lets_all_pass(void **state)
{
  (void)state;
  static struct ljp_track track = {.filters = true};
  for (uint64_t i = 1; i <= 300; i++) {
    const struct ljp_tracked block = {i << 16, 7, 7};
    assert_true(ljp_track_put(&track, &block));
  }
  for (uint64_t i = 1; i <= 300; i++) {
    struct ljp_tracked block;
    assert_true(passes(&track, i << 16));
    assert_true(ljp_track_take(&track, i << 16, &block));
  }
  assert_int_equal(track.filter[0], 255);
  ljp_track_fini(&track);
  assert_int_equal(track.filter[0], 0);
}

static void a_full_table_refuses_and_keeps_what_it_has(void **state)
{
  (void)state;
  static struct ljp_track track = {.filters = true};
  uint32_t n = 0;
  struct ljp_tracked block = block_of(0);
  while (n <= LJP_TRACK_MAX + 1 && ljp_track_put(&track, &block))
    block = block_of(++n);
  assert_int_equal(n, LJP_TRACK_MAX);
  assert_int_equal(track.count, n);
  for (uint32_t i = 0; i < n; i += 101)
    take(&track, i);
  assert_true(ljp_track_put(&track, &block));
  ljp_track_fini(&track);
}

static void without_filters_it_keeps_and_finds_the_same(void **state)
{
  (void)state;
  enum { BLOCKS = 3001 };
  static struct ljp_track track;
  struct ljp_tracked block;
  for (uint32_t i = 0; i < BLOCKS; i++) {
    block = block_of(i);
    assert_true(ljp_track_put(&track, &block));
  }
  for (uint32_t i = 0; i < BLOCKS; i++) {
    assert_true(ljp_track_take(&track, block_of(i).address, &block));
    assert_int_equal(block.size, block_of(i).size);
  }
  assert_int_equal(track.count, 0);
  assert_null(track.wide);
  for (uint32_t i = 0; i < sizeof track.filter; i++)
    assert_int_equal(track.filter[i], 0);
  ljp_track_fini(&track);
}

/* The first block was freed unseen, and another one is there now. */
static void a_block_takes_the_place_of_one_with_its_address(void **state)
{
  (void)state;
  static struct ljp_track track = {.filters = true};
  struct ljp_tracked block = block_of(7);
  assert_true(ljp_track_put(&track, &block));
  block.size = block.weight = 4099;
  assert_true(ljp_track_put(&track, &block));
  assert_int_equal(track.count, 1);
  assert_true(ljp_track_take(&track, block_of(7).address, &block));
  assert_int_equal(block.size, 4099);
  assert_int_equal(block.weight, 4099);
  assert_false(ljp_track_take(&track, block_of(7).address, &block));
  assert_false(passes(&track, block_of(7).address));
  ljp_track_fini(&track);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_put_in_comes_out_and_passes_until_then),
      cmocka_unit_test(few_others_pass),
      cmocka_unit_test(a_crowded_place_lets_all_pass),
      cmocka_unit_test(a_full_table_refuses_and_keeps_what_it_has),
      cmocka_unit_test(without_filters_it_keeps_and_finds_the_same),
      cmocka_unit_test(a_block_takes_the_place_of_one_with_its_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
