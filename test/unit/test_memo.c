/* The memo of a walk: a remembered rest is used only while every word that the
** walk read is unchanged. Here the words are an array, and the frames are made
** up. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/memo.h"
#include "src/base/saferead.h"

enum { DEPTH = 29, LIMIT = 100, PAGE = 4096 };

static uint64_t words[DEPTH], frames[LIMIT];
static uint32_t count,
    cap = LIMIT; /* cap: a walk ends after that many frames. */
static struct ljp_memo *memo;

/* A walk from frame `top` to the root: reads words[i], finds the frame
** 1000 i + words[i]. */
static void walk(uint32_t top, uint32_t limit, uint64_t generation)
{
  count = 0;
  ljp_memo_begin(memo, generation, 1);
  struct ljp_memo *notes = memo->mode == LJP_MEMO_RECORD ? memo : NULL;
  bool known = false;
  for (uint32_t i = top; i < DEPTH && !known; i++) {
    if (memo->mode != LJP_MEMO_OFF && ljp_memo_near(memo, 16 * i, 7)) {
      struct ljp_memo_point now = {.sp = 16 * i, .order = 7};
      now.word[3] = i;
      now.read = notes ? notes->reads : 0;
      known = ljp_memo_meet(memo, &now, frames, &count, limit);
      if (known)
        break;
    }
    if (i == 5 && notes)
      ljp_memo_note_behind(notes, (uint64_t)(uintptr_t)&words[i], 1);
    else
      ljp_memo_note(notes, (uint64_t)(uintptr_t)&words[i], words[i]);
    if (count == cap)
      break;
    frames[count++] = 1000 * i + (i == 5 ? words[i] >> 8 : words[i]);
  }
  assert_true(known == memo->met);
  ljp_memo_end(memo, frames, count,
               count < cap ? LJP_MEMO_WHOLE : LJP_MEMO_CAPPED);
}

static void expect(uint32_t top)
{
  assert_int_equal(count, DEPTH - top);
  for (uint32_t i = top; i < DEPTH; i++)
    assert_int_equal(frames[i - top],
                     1000 * i + (i == 5 ? words[i] >> 8 : words[i]));
}

static int begin(void **state)
{
  (void)state;
  memo = calloc(1, sizeof *memo);
  for (uint32_t i = 0; i < DEPTH; i++)
    words[i] = 3 * i;
  return memo == NULL;
}

static int end(void **state)
{
  (void)state;
  free(memo);
  return 0;
}

static void an_unchanged_rest_is_found_at_once(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  expect(0);
  assert_false(memo->met);
  walk(4, LIMIT, 1);
  expect(4);
  assert_true(memo->met);
  assert_int_equal(memo->matches, 1);
}

static void each_changed_word_is_seen(void **state)
{
  (void)state;
  for (uint32_t changed = 0; changed < DEPTH; changed++) {
    memo->valid = false;
    memo->pause = memo->longer = 0;
    walk(0, LIMIT, 1);
    assert_true(memo->valid);
    words[changed] ^= UINT64_C(1) << (8 + changed);
    walk(0, LIMIT, 1);
    expect(0);
    /* The frames behind the changed word are still known. */
    assert_int_equal(memo->met, changed + 1 < DEPTH);
  }
}

static void bytes_that_do_not_matter_may_change(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  words[5] ^= 0xff;
  walk(0, LIMIT, 1);
  assert_true(memo->met);
  expect(0);
  words[5] ^= 0x100;
  walk(0, LIMIT, 1);
  expect(0);
  assert_int_equal(memo->changed, 1);
}

static void another_generation_is_recorded_anew(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  walk(0, LIMIT, 2);
  assert_false(memo->met);
  assert_int_equal(memo->records, 2);
  expect(0);
}

/* Walks again and again meet the recorded one after five frames of their own,
** as if it had been recorded in another function. */
static void a_recording_that_walks_meet_late_is_replaced(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  words[4] ^= 0x100;
  for (int i = 0; i < 97; i++)
    walk(0, LIMIT, 1);
  assert_int_equal(memo->records, 2);
  assert_true(memo->met);
  assert_int_equal(memo->own, 0);
  expect(0);
}

static void recordings_in_vain_become_rare(void **state)
{
  enum { WALKS = 20011 };
  (void)state;
  walk(0, LIMIT, 1);
  for (int i = 0; i < WALKS; i++) {
    words[4] ^= 0x100 + (uint64_t)i;
    walk(0, LIMIT, 1);
    expect(0);
  }
  assert_int_equal(memo->matches + memo->records, WALKS + 1);
  assert_in_range(memo->records, 5, 12);
}

/* The running frame and the one on top of it differ at nearly every sample. */
static void two_frames_of_their_own_are_expected(void **state)
{
  enum { WALKS = 1009 };
  (void)state;
  walk(0, LIMIT, 1);
  for (uint64_t i = 0; i < WALKS; i++) {
    words[1] = 256 * i;
    walk(0, LIMIT, 1);
  }
  assert_int_equal(memo->own, 2);
  assert_int_equal(memo->records, 1);
}

/* Meets the first point with room for that many frames. */
static bool meet(uint32_t limit, uint32_t wants)
{
  count = 0;
  memset(frames, 0, sizeof frames);
  ljp_memo_begin(memo, 1, 1);
  assert_int_equal(memo->mode, LJP_MEMO_MATCH);
  struct ljp_memo_point now = {.sp = 0, .order = 7, .wants = wants};
  assert_true(ljp_memo_near(memo, 0, 7));
  return ljp_memo_meet(memo, &now, frames, &count, limit);
}

static void a_rest_longer_than_the_room_is_cut(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  assert_true(meet(DEPTH - 1, 0));
  assert_true(memo->capped);
  assert_int_equal(count, DEPTH - 1);
  assert_int_equal(frames[DEPTH - 2], 1000 * (DEPTH - 2) + words[DEPTH - 2]);
  assert_int_equal(frames[DEPTH - 1], 0);
  assert_true(meet(DEPTH, 0));
  assert_false(memo->capped);
  assert_int_equal(count, DEPTH);
}

static void a_rest_that_is_to_tell_more_is_not_cut(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  assert_false(meet(DEPTH - 1, 1));
  assert_int_equal(count, 0);
  assert_true(meet(DEPTH, 1));
}

static void what_ended_at_a_limit_serves_no_longer_walk(void **state)
{
  (void)state;
  cap = 11;
  walk(0, LIMIT, 1);
  cap = LIMIT;
  assert_true(memo->valid);
  assert_false(meet(12, 0));
  assert_int_equal(count, 0);
  assert_true(meet(11, 0));
  assert_true(memo->capped);
  assert_int_equal(count, 11);
  assert_true(meet(10, 0));
  assert_true(memo->capped);
  assert_int_equal(count, 10);
  assert_int_equal(frames[9], 1000 * 9 + words[9]);
}

static void another_state_at_the_same_place_is_not_met(void **state)
{
  (void)state;
  walk(0, LIMIT, 1);
  for (int i = 0; i < LJP_MEMO_WORDS + 1; i++) {
    ljp_memo_begin(memo, 1, 1);
    struct ljp_memo_point now = {.sp = 16, .order = 7};
    now.word[3] = 1;
    if (i < LJP_MEMO_WORDS)
      now.word[i] ^= 4;
    else
      now.flags ^= 4;
    count = 0;
    assert_true(ljp_memo_near(memo, 16, 7));
    assert_false(ljp_memo_meet(memo, &now, frames, &count, LIMIT));
  }
}

static void before_what_was_not_noted_nothing_is_met(void **state)
{
  (void)state;
  memo->pause = 0;
  ljp_memo_begin(memo, 1, 1);
  for (uint64_t i = 0; i < 4; i++) {
    struct ljp_memo_point now = {.sp = 16 * i, .order = 7};
    if (i == 2)
      ljp_memo_blur(memo);
    assert_true(ljp_memo_near(memo, 16 * i, 7));
    ljp_memo_meet(memo, &now, frames, &count, LIMIT);
  }
  ljp_memo_end(memo, frames, 4, LJP_MEMO_WHOLE);
  ljp_memo_begin(memo, 1, 1);
  assert_int_equal(memo->mode, LJP_MEMO_MATCH);
  assert_false(ljp_memo_near(memo, 0, 7));
  assert_false(ljp_memo_near(memo, 16, 7));
  assert_true(ljp_memo_near(memo, 32, 7));
}

static void memory_that_is_gone_is_not_equal(void **state)
{
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip();
#endif
  assert_int_equal(ljp_saferead_install(), LJP_OK);
  uint64_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(page, MAP_FAILED);
  page[11] = 13;
  const struct ljp_memo_read reads[] = {
      {(uint64_t)(uintptr_t)&words[2], 6},
      {(uint64_t)(uintptr_t)&words[3], 9},
      {(uint64_t)(uintptr_t)&page[11], 13},
      {(uint64_t)(uintptr_t)&words[4], 12},
  };
  assert_int_equal(ljp_saferead_equal(reads, 4), 4);
  assert_int_equal(ljp_saferead_equal(reads, 0), 0);
  munmap(page, PAGE);
  assert_int_equal(ljp_saferead_equal(reads, 4), 2);
  assert_int_equal(ljp_saferead_same(reads, 4), 0);
  ljp_saferead_remove();
}

/* In the groups of four and behind them. */
static void the_first_word_that_differs_is_told(void **state)
{
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip();
#endif
  enum { MOST = 13 };
  struct ljp_memo_read reads[MOST];
  assert_int_equal(ljp_saferead_install(), LJP_OK);
  void *gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(gone, MAP_FAILED);
  for (uint32_t n = 0; n <= MOST; n++)
    for (uint32_t bad = 0; bad <= n; bad++) {
      for (uint32_t i = 0; i < MOST; i++)
        reads[i] = (struct ljp_memo_read){(uint64_t)(uintptr_t)&words[i & 3],
                                          words[i & 3]};
      if (bad < n)
        reads[bad].value++;
      assert_int_equal(ljp_saferead_equal(reads, n), bad);
      if (bad < n)
        reads[bad] = (struct ljp_memo_read){(uint64_t)(uintptr_t)gone, 0};
      assert_int_equal(ljp_saferead_equal(reads, n), bad);
    }
  munmap(gone, PAGE);
  ljp_saferead_remove();
}

static void too_many_reads_are_not_remembered(void **state)
{
  (void)state;
  ljp_memo_begin(memo, 1, 1);
  struct ljp_memo_point now = {.sp = 16, .order = 7};
  assert_true(ljp_memo_near(memo, 16, 7));
  ljp_memo_meet(memo, &now, frames, &count, LIMIT);
  for (int i = 0; i <= LJP_MEMO_READS; i++)
    ljp_memo_note(memo, (uint64_t)(uintptr_t)words, words[0]);
  assert_int_equal(memo->reads, LJP_MEMO_READS);
  ljp_memo_end(memo, frames, 1, LJP_MEMO_WHOLE);
  assert_false(memo->valid);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(an_unchanged_rest_is_found_at_once),
      TEST(each_changed_word_is_seen),
      TEST(bytes_that_do_not_matter_may_change),
      TEST(another_generation_is_recorded_anew),
      TEST(a_recording_that_walks_meet_late_is_replaced),
      TEST(recordings_in_vain_become_rare),
      TEST(two_frames_of_their_own_are_expected),
      TEST(a_rest_longer_than_the_room_is_cut),
      TEST(a_rest_that_is_to_tell_more_is_not_cut),
      TEST(what_ended_at_a_limit_serves_no_longer_walk),
      TEST(another_state_at_the_same_place_is_not_met),
      TEST(before_what_was_not_noted_nothing_is_met),
      TEST(memory_that_is_gone_is_not_equal),
      TEST(the_first_word_that_differs_is_told),
      TEST(too_many_reads_are_not_remembered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
