/*
** The memory profiler's table of remembered segments: lookup by Lua thread and
** C frame, replacement, and the arrays of small and of deep segments.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "profilers/memory/segments.h"

enum {
  CFRAME = 0x7ff000,
  MANY = 5003, /* more than the table holds */
  ABOVE = LJP_SITE_FRAMES + LJP_FRONT_FRAMES
};

static struct ljp_stacks stacks;

static int begin(void **state)
{
  (void)state;
  memset(&stacks, 0, sizeof stacks);
  stacks.epoch = 1;
  return ljp_segments_init(&stacks) ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  ljp_segments_fini(&stacks);
  assert_null(stacks.segments);
  return 0;
}

static uint64_t thread_of(unsigned i)
{
  return UINT64_C(0x40000000) + 120 * (uint64_t)i;
}

static struct ljp_segment *victim_of(uint64_t L)
{
  return ljp_segment_victim(&stacks, L, CFRAME, NULL);
}

/* What profilers/memory/below.c does to begin a segment. */
static struct ljp_segment *remember(uint64_t L, uint64_t cframe)
{
  struct ljp_segment *a = ljp_segment_victim(&stacks, L, cframe, NULL);
  a->epoch = stacks.epoch;
  a->L = L;
  a->cframe = cframe;
  a->hits = a->seen = 0;
  ljp_segment_clear(&stacks, a);
  return a;
}

static struct ljp_segment *segment_of(uint64_t L)
{
  return ljp_segment_find(&stacks, L, CFRAME);
}

/* Fills the set of thread_of(0). Returns the number of its segments, in the
** order of the table. */
static unsigned fill_set(struct ljp_segment **set, unsigned room)
{
  uint64_t threads[64];
  const struct ljp_segment *first = victim_of(thread_of(0));
  unsigned found = 0, n = 0;
  for (unsigned i = 0; found < room; i++)
    if (victim_of(thread_of(i)) == first)
      threads[found++] = thread_of(i);
  while (n < room && !victim_of(threads[n])->epoch) {
    set[n] = remember(threads[n], CFRAME);
    n++;
  }
  assert_in_range(n, 2, room - 1);
  return n;
}

static void a_segment_is_found_by_thread_and_c_frame(void **state)
{
  (void)state;
  assert_null(segment_of(thread_of(0)));
  struct ljp_segment *a = remember(thread_of(0), CFRAME);
  assert_ptr_equal(segment_of(thread_of(0)), a);
  assert_null(segment_of(thread_of(1)));
  assert_null(ljp_segment_find(&stacks, thread_of(0), CFRAME + 8));
  struct ljp_segment *b = remember(thread_of(0), CFRAME + 8);
  assert_ptr_not_equal(a, b);
  assert_ptr_equal(segment_of(thread_of(0)), a);
  assert_ptr_equal(ljp_segment_find(&stacks, thread_of(0), CFRAME + 8), b);
}

static void the_last_segment_is_found_only_by_its_own_key(void **state)
{
  (void)state;
  struct ljp_segment outside = {.L = thread_of(3), .cframe = CFRAME};
  stacks.last = &outside; /* not in the table */
  assert_ptr_equal(segment_of(thread_of(3)), &outside);
  assert_null(segment_of(thread_of(4)));
  assert_null(ljp_segment_find(&stacks, thread_of(3), CFRAME + 8));
  stacks.last = NULL;
  assert_null(segment_of(thread_of(3)));
}

static void a_full_set_loses_the_segment_with_the_fewest_new_hits(void **state)
{
  (void)state;
  struct ljp_segment *set[16];
  unsigned n = fill_set(set, 16);
  for (unsigned i = 0; i < n; i++)
    set[i]->hits = 100;
  set[1]->hits = 13;
  assert_ptr_equal(victim_of(set[0]->L), set[1]);
  /* Only hits since that search count. */
  set[1]->hits += 7;
  set[0]->hits += 3;
  for (unsigned i = 2; i < n; i++)
    set[i]->hits += 11;
  assert_ptr_equal(victim_of(set[0]->L), set[0]);
}

static void a_segment_in_use_stays(void **state)
{
  (void)state;
  struct ljp_segment *set[16];
  unsigned n = fill_set(set, 16);
  for (unsigned i = 0; i < n; i++)
    set[i]->hits = 2 + i;
  assert_ptr_equal(ljp_segment_victim(&stacks, set[0]->L, CFRAME, set[0]),
                   set[1]);
}

static void a_useless_segment_is_replaced_first(void **state)
{
  (void)state;
  struct ljp_segment *set[16];
  unsigned n = fill_set(set, 16);
  stacks.epoch++;
  for (unsigned i = 0; i < n; i++)
    if (i != 1)
      set[i]->epoch = stacks.epoch;
  set[1]->hits = 1009; /* in an epoch that is over */
  assert_ptr_equal(victim_of(set[0]->L), set[1]);
  set[n - 1]->epoch = 0; /* never begun, or forgotten */
  assert_ptr_equal(victim_of(set[0]->L), set[n - 1]);
}

static void forgetting_makes_every_segment_useless(void **state)
{
  (void)state;
  struct ljp_segment *set[16];
  unsigned n = fill_set(set, 16);
  ljp_segments_forget(&stacks);
  for (unsigned i = 0; i < n; i++)
    assert_int_equal(set[i]->epoch, 0);
  assert_ptr_equal(victim_of(set[0]->L), set[0]);
}

static void the_newest_of_many_is_always_found(void **state)
{
  (void)state;
  struct ljp_segment *first = remember(thread_of(0), CFRAME);
  unsigned known = 0;
  for (unsigned i = 1; i < MANY; i++) {
    struct ljp_segment *a = remember(thread_of(i), CFRAME);
    assert_ptr_equal(segment_of(thread_of(i)), a);
    assert_int_equal(a->L, thread_of(i));
  }
  for (unsigned i = 0; i < MANY; i++)
    known += segment_of(thread_of(i)) != NULL;
  assert_in_range(known, 2, MANY / 2);
  assert_int_not_equal(first->L, thread_of(0));
}

/* -- Arrays ---------------------------------------------------------------- */

/* Each array gets a value of its own, so that any overlap shows. */
static void fill_arrays(struct ljp_segment *a, int byte)
{
  memset(a->word, byte, a->word_room * sizeof *a->word);
  memset(a->spine.stack, byte + 1, (a->spine.room + ABOVE) * sizeof(uint64_t));
  memset(a->spine.level, byte + 2, a->spine.levels * sizeof *a->spine.level);
  memset(a->spine.link, byte + 3,
         (a->spine.levels + LJP_SPINE_SPARE) * sizeof *a->spine.link);
}

static void assert_bytes(const void *data, size_t size, int byte)
{
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size; i++)
    assert_int_equal(bytes[i], byte);
}

static void assert_arrays(const struct ljp_segment *a, int byte)
{
  assert_bytes(a->word, a->word_room * sizeof *a->word, byte);
  assert_bytes(a->spine.stack, (a->spine.room + ABOVE) * sizeof(uint64_t),
               byte + 1);
  assert_bytes(a->spine.level, a->spine.levels * sizeof *a->spine.level,
               byte + 2);
  assert_bytes(a->spine.link,
               (a->spine.levels + LJP_SPINE_SPARE) * sizeof *a->spine.link,
               byte + 3);
}

static void small_and_deep_arrays_do_not_overlap(void **state)
{
  (void)state;
  struct ljp_segment *set[16];
  unsigned n = fill_set(set, 16);
  assert_true(ljp_segment_deepen(&stacks, set[0]));
  for (unsigned i = 0; i < n; i++)
    fill_arrays(set[i], (int)(16 + 8 * i));
  for (unsigned i = 0; i < n; i++)
    assert_arrays(set[i], (int)(16 + 8 * i));
}

static void clearing_empties_a_segment_and_keeps_its_arrays(void **state)
{
  (void)state;
  struct ljp_segment *a = remember(thread_of(0), CFRAME);
  const struct ljp_memo_read *word = a->word;
  fill_arrays(a, 19);
  a->learned = a->spine.tight = true;
  a->spine.count = a->spine.rest = a->spine.frames = 3;
  ljp_segment_clear(&stacks, a);
  assert_false(a->learned || a->spine.tight);
  assert_int_equal(a->spine.count + a->spine.rest + a->spine.frames, 0);
  assert_ptr_equal(a->word, word);
  assert_arrays(a, 19);
}

static void a_deep_segment_has_more_room(void **state)
{
  (void)state;
  struct ljp_segment *a = remember(thread_of(0), CFRAME);
  const struct ljp_spine small = a->spine;
  uint32_t words = a->word_room;
  a->spine.count = 3;
  a->spine.tight = true;
  assert_true(ljp_segment_deepen(&stacks, a));
  assert_in_range(a->spine.levels, small.levels + 1, LJP_STACK_MAX_FRAMES);
  assert_int_equal(a->spine.room, LJP_STACK_MAX_FRAMES);
  assert_true(a->word_room > words);
  assert_int_equal(a->spine.count, 0);
  assert_false(a->spine.tight);
  assert_ptr_equal(a->spine.calls, small.calls);
  assert_false(ljp_segment_deepen(&stacks, a));
}

static void the_longest_deep_segment_gives_its_arrays_away(void **state)
{
  (void)state;
  struct ljp_segment *first = remember(thread_of(0), CFRAME), *last = NULL;
  const struct ljp_spine small = first->spine;
  const struct ljp_memo_read *word = first->word;
  uint32_t words = first->word_room;
  assert_true(ljp_segment_deepen(&stacks, first));
  const uint64_t *deep = first->spine.stack;
  for (unsigned i = 1; i < MANY && first->spine.levels != small.levels; i++) {
    first->learned = true;
    first->spine.count = 7;
    if (victim_of(thread_of(i))->epoch)
      continue; /* no segment may be replaced here */
    last = remember(thread_of(i), CFRAME);
    assert_true(ljp_segment_deepen(&stacks, last));
  }
  assert_non_null(last);
  assert_ptr_equal(last->spine.stack, deep);
  assert_ptr_equal(first->spine.link, small.link);
  assert_ptr_equal(first->spine.level, small.level);
  assert_ptr_equal(first->spine.stack, small.stack);
  assert_int_equal(first->spine.levels, small.levels);
  assert_int_equal(first->spine.room, small.room);
  assert_ptr_equal(first->word, word);
  assert_int_equal(first->word_room, words);
  assert_false(first->learned);
  assert_int_equal(first->spine.count, 0);
  assert_true(ljp_segment_deepen(&stacks, first));
  assert_ptr_equal(segment_of(thread_of(0)), first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(a_segment_is_found_by_thread_and_c_frame),
      TEST(the_last_segment_is_found_only_by_its_own_key),
      TEST(a_full_set_loses_the_segment_with_the_fewest_new_hits),
      TEST(a_segment_in_use_stays),
      TEST(a_useless_segment_is_replaced_first),
      TEST(forgetting_makes_every_segment_useless),
      TEST(the_newest_of_many_is_always_found),
      TEST(small_and_deep_arrays_do_not_overlap),
      TEST(clearing_empties_a_segment_and_keeps_its_arrays),
      TEST(a_deep_segment_has_more_room),
      TEST(the_longest_deep_segment_gives_its_arrays_away),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
