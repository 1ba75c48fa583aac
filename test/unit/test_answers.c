/*
** The memory profiler's answers: a stack is learned after some meetings, told
** to the writer by number, and given while all of its words are unchanged. The
** parts that it is learned from are made up here.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "profilers/memory/answers.h"

_Atomic uint64_t ljp_protos_gone, ljp_traces_changed;

enum { DEEP = 191 }; /* as many frames, and words below */

static struct {
  uint64_t word[3]; /* of host frames, of the Lua stack, of what is below */
  uint64_t deep[DEEP];
  uint64_t place;
  unsigned told, last_number;
  uint64_t told_frame;
  bool full; /* the ring */
} world;

unsigned ljp_front_words(const struct ljp_stacks *s,
                         const struct ljp_caller *caller,
                         struct ljp_memo_read *out)
{
  (void)s;
  (void)caller;
  *out = (struct ljp_memo_read){(uint64_t)(uintptr_t)&world.word[0],
                                world.word[0]};
  return 1;
}

unsigned ljp_guest_start_words(const struct ljp_guest_heap *heap,
                               const struct ljp_guest_site *site,
                               const struct ljp_guest_regs *regs,
                               const struct ljp_guest_start *start,
                               const struct ljp_spine *spine,
                               struct ljp_memo_read *out, unsigned room)
{
  (void)heap;
  (void)site;
  (void)regs;
  (void)start;
  (void)spine;
  assert_true(room > 0);
  *out = (struct ljp_memo_read){(uint64_t)(uintptr_t)&world.word[1],
                                world.word[1]};
  return 1;
}

uint64_t ljp_guest_place(const struct ljp_guest_heap *heap)
{
  (void)heap;
  return world.place;
}

bool ljp_push_stack_wait(struct ljp_producer *producer, unsigned number,
                         const uint64_t *frames, unsigned n)
{
  (void)producer;
  assert_true(number > 0 && number < LJP_NUMBERED_STACKS);
  assert_true(n == 1 || n == DEEP);
  if (world.full)
    return false;
  world.told++;
  world.last_number = number;
  world.told_frame = *frames;
  return true;
}

void ljp_stacks_check(struct ljp_stacks *s, const struct ljp_caller *caller,
                      const struct ljp_found_stack *found)
{
  (void)s;
  (void)caller;
  (void)found;
}

static struct ljp_stacks stacks;
static _Atomic uint64_t serial;
static struct ljp_caller caller;

static int begin(void **state)
{
  (void)state;
  memset(&stacks, 0, sizeof stacks);
  memset(&world, 0, sizeof world);
  stacks.serial = &serial;
  stacks.epoch = 1;
  stacks.generation[1] = ljp_guest_code_generation();
  caller.rip = 4711;
  return ljp_answers_init(&stacks) ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  ljp_answers_fini(&stacks);
  return 0;
}

/* Asks for the stack at a place. If there is no answer, the parts are found,
** and give `frame`. Returns the frame of an answer, or 0. */
static uint64_t ask(uint64_t place, uint64_t frame)
{
  const struct ljp_return_site site = {.rip = 1};
  const struct ljp_guest_regs regs = {.rip = 2};
  const struct ljp_guest_start start = {.L = 3};
  struct ljp_memo_read below = {(uint64_t)(uintptr_t)&world.word[2],
                                world.word[2]};
  const struct ljp_segment segment = {
      .learned = true, .word = &below, .words = 1};
  struct ljp_found_stack found = {0};
  world.place = place;
  if (ljp_answers_find(&stacks, &caller, &found)) {
    assert_int_equal(found.count, 1);
    assert_true(found.number > 0 && found.root_first);
    return *found.frames;
  }
  found = (struct ljp_found_stack){
      .frames = &frame, .count = 1, .root_first = true};
  ljp_answers_meet(&stacks, &caller, &site, &regs, &start, &segment, &found);
  return 0;
}

static void learn(uint64_t place, uint64_t frame)
{
  for (int i = 0, given = 0; given < 3; i++) {
    uint64_t answer = ask(place, frame);
    assert_true(i < 1000 && (!answer || answer == frame));
    given = answer ? given + 1 : 0;
  }
}

static void a_stack_is_learned_when_it_is_met_the_third_time(void **state)
{
  (void)state;
  assert_int_equal(ask(7, 101), 0);
  assert_int_equal(ask(7, 101), 0);
  assert_int_equal(world.told, 0);
  assert_int_equal(ask(7, 101), 0);
  assert_int_equal(world.told, 1);
  assert_int_equal(world.told_frame, 101);
  assert_int_equal(ask(7, 101), 101);
}

static void any_word_that_changes_takes_the_answer_back(void **state)
{
  (void)state;
  learn(7, 101);
  for (int i = 0; i < 3; i++) {
    world.word[i] ^= 1;
    assert_int_equal(ask(7, 102), 0);
    world.word[i] ^= 1;
    assert_int_equal(ask(7, 101), 101);
  }
}

/* Tells of a stack of DEEP frames that was put together. */
static void meet_deep(void)
{
  const struct ljp_return_site site = {.rip = 1};
  const struct ljp_guest_regs regs = {.rip = 2};
  const struct ljp_guest_start start = {.L = 3};
  struct ljp_memo_read below[DEEP + 1];
  uint64_t frames[DEEP];
  for (unsigned i = 0; i < DEEP; i++) {
    below[i] = (struct ljp_memo_read){(uint64_t)(uintptr_t)&world.deep[i],
                                      world.deep[i]};
    frames[i] = 101 + i;
  }
  below[DEEP] = below[0]; /* a word that is there twice */
  const struct ljp_segment segment = {
      .learned = true, .word = below, .words = DEEP + 1};
  const struct ljp_found_stack found = {
      .frames = frames, .count = DEEP, .root_first = true};
  ljp_answers_meet(&stacks, &caller, &site, &regs, &start, &segment, &found);
}

static bool find_deep(void)
{
  struct ljp_found_stack found;
  stacks.answers->rest = 0; /* many misses in a row make it pause */
  if (!ljp_answers_find(&stacks, &caller, &found))
    return false;
  assert_int_equal(found.count, DEEP);
  assert_int_equal(found.frames[DEEP - 1], 100 + DEEP);
  return true;
}

static void deep_stacks_have_answers_that_every_word_can_take_back(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    assert_false(find_deep());
    meet_deep();
  }
  assert_true(find_deep());
  for (unsigned i = 0; i < DEEP; i++) {
    world.deep[i] ^= 1;
    assert_false(find_deep());
    world.deep[i] ^= 1;
    assert_true(find_deep());
  }
}

static void sites_in_turn_keep_an_answer_each(void **state)
{
  (void)state;
  /* They differ in a word, as sites do. */
  for (uint64_t site = 1; site <= 3; site++) {
    world.word[1] = site;
    learn(site, 100 + site);
  }
  assert_int_equal(world.told, 3);
  for (int i = 0; i < 50; i++) {
    world.word[1] = (uint64_t)i % 3 + 1;
    assert_int_equal(ask(world.word[1], 0), 100 + world.word[1]);
  }
  assert_int_equal(world.told, 3);
}

static void what_follows_is_expected_without_a_look_at_the_place(void **state)
{
  (void)state;
  for (uint64_t site = 1; site <= 2; site++) {
    world.word[1] = site;
    learn(site, 100 + site);
  }
  for (int i = 0; i < 10; i++) {
    world.word[1] = (uint64_t)i % 2 + 1;
    ask(world.word[1], 0);
  }
  for (int i = 0; i < 10; i++) { /* with a wrong place, no search can find it */
    world.word[1] = (uint64_t)i % 2 + 1;
    assert_int_equal(ask(999, 0), 100 + world.word[1]);
  }
}

static void another_caller_or_address_has_answers_of_its_own(void **state)
{
  (void)state;
  learn(7, 101);
  caller.rip++;
  assert_int_equal(ask(7, 102), 0);
  caller.rip--;
  assert_int_equal(ask(7, 101), 101);
}

static void a_new_epoch_or_generation_forgets(void **state)
{
  (void)state;
  learn(7, 101);
  atomic_fetch_add(&ljp_protos_gone, 1);
  assert_int_equal(ask(7, 102), 0);
  stacks.generation[1] = ljp_guest_code_generation();
  assert_int_equal(ask(7, 101), 101);
  stacks.epoch++;
  assert_int_equal(ask(7, 103), 0);
  learn(7, 103);
}

static void a_stack_that_the_writer_cannot_be_told_is_not_learned(void **state)
{
  (void)state;
  world.full = true;
  for (int i = 0; i < 30; i++)
    assert_int_equal(ask(7, 101), 0);
  world.full = false;
  learn(7, 101);
}

static void more_sites_than_answers_are_never_confused(void **state)
{
  (void)state;
  unsigned given = 0;
  for (uint64_t i = 0; i < 200000; i++) {
    uint64_t site = i * i % 509 % (i % 20000 < 10000 ? 5 : 509) + 1;
    world.word[1] = site;
    uint64_t frame = ask(site, 1000 + site);
    assert_true(!frame || frame == 1000 + site);
    given += frame != 0;
  }
  assert_true(given > 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(a_stack_is_learned_when_it_is_met_the_third_time),
      TEST(any_word_that_changes_takes_the_answer_back),
      TEST(deep_stacks_have_answers_that_every_word_can_take_back),
      TEST(sites_in_turn_keep_an_answer_each),
      TEST(what_follows_is_expected_without_a_look_at_the_place),
      TEST(another_caller_or_address_has_answers_of_its_own),
      TEST(a_new_epoch_or_generation_forgets),
      TEST(a_stack_that_the_writer_cannot_be_told_is_not_learned),
      TEST(more_sites_than_answers_are_never_confused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
