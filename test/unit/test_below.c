/*
** The frames below the memory profiler's segments: learned from a walk or put
** together from other segments. The real table of segments, over a made-up
** stack: segment i, one frame of the thread THREAD + i, is above segment i + 1.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "profilers/memory/below.h"

enum { SEGMENTS = 8, THREAD = 1000, CFRAME = 2000, LOW = 17, BELOW = 19 };

static struct {
  uint64_t frame[SEGMENTS];
  uint64_t word[SEGMENTS]; /* which a walk reads in each segment */
  unsigned count;          /* of segments */
  unsigned walks;
  unsigned from; /* the segment below which a walk starts */
  bool simple;   /* plain steps lead from each segment to the next */
  bool resizing;
} world;

static struct ljp_stacks stacks;
static struct ljp_return_site site;

/* -- The world ------------------------------------------------------------- */

const struct ljp_unwind_map *ljp_unwind_acquire(struct ljp_unwind *unwind)
{
  (void)unwind;
  return (const struct ljp_unwind_map *)(void *)&world;
}

void ljp_unwind_release(struct ljp_unwind *unwind,
                        const struct ljp_unwind_map *map)
{
  (void)unwind;
  assert_non_null(map);
}

bool ljp_guest_set_resizing(const struct ljp_guest_heap *heap, bool resizing)
{
  bool was = world.resizing;
  (void)heap;
  world.resizing = resizing;
  return was;
}

bool ljp_spine_follow(struct ljp_spine *spine,
                      const struct ljp_guest_start *start, uint32_t *kept)
{
  uint64_t frame = world.frame[start->L - THREAD];
  bool same = spine->count == 1 && spine->stack[spine->rest] == frame;
  assert_true(spine->rest < spine->room);
  spine->L = start->L;
  spine->cframe = start->cframe;
  spine->low = LOW;
  spine->below = BELOW;
  spine->count = 1;
  spine->stack[spine->rest] = frame;
  spine->frames = spine->rest + 1;
  *kept = spine->rest + same;
  return true;
}

bool ljp_spine_leave(const struct ljp_spine *spine, struct ljp_guest *guest,
                     struct ljp_regs *regs)
{
  (void)guest;
  (void)regs;
  world.from = (unsigned)(spine->L - THREAD);
  return true;
}

bool ljp_spine_pins(const struct ljp_spine *spine, uint64_t address)
{
  (void)spine;
  (void)address;
  return false;
}

bool ljp_walk_rest(struct ljp_walk *walk, const struct ljp_unwind_map *map,
                   struct ljp_regs *regs, uint64_t *frames, uint32_t limit,
                   struct ljp_memo *notes)
{
  (void)map;
  (void)regs;
  world.walks++;
  for (unsigned i = world.from + 1; i < world.count; i++) {
    assert_true(walk->stack.count < limit);
    frames[walk->stack.count++] = world.frame[i];
    ljp_memo_note(notes, (uint64_t)(uintptr_t)&world.word[i], world.word[i]);
  }
  return true;
}

void ljp_spine_caller(uint64_t cframe, struct ljp_guest_regs *regs)
{
  regs->sp = cframe;
}

const struct ljp_return_site *ljp_front_below(struct ljp_stacks *s,
                                              struct ljp_guest_regs *regs,
                                              uint64_t host[LJP_BELOW_FRAMES],
                                              uint32_t *hosts)
{
  (void)s;
  host[0] = ljp_frame(LJP_FRAME_HOST, 0, regs->sp);
  *hosts = 1;
  return world.simple ? &site : NULL;
}

bool ljp_guest_below(const struct ljp_guest_heap *heap, uint64_t L,
                     uint64_t cframe, const struct ljp_guest_site *in_guest,
                     const struct ljp_guest_regs *regs, uint64_t *below_L,
                     uint64_t *below_cframe)
{
  (void)heap;
  (void)in_guest;
  assert_int_equal(regs->sp, cframe);
  *below_L = L + 1;
  *below_cframe = cframe + 1;
  return L + 1 < THREAD + world.count;
}

bool ljp_spine_below(const struct ljp_guest_heap *heap,
                     const struct ljp_spine *spine,
                     const struct ljp_guest_site *in_guest,
                     const struct ljp_guest_regs *regs,
                     struct ljp_guest_start *below, uint64_t *frame)
{
  (void)heap;
  (void)in_guest;
  (void)regs;
  *frame = 0;
  *below =
      (struct ljp_guest_start){.L = spine->L + 1, .cframe = spine->cframe + 1};
  return true;
}

static int begin(void **state)
{
  (void)state;
  memset(&world, 0, sizeof world);
  memset(&stacks, 0, sizeof stacks);
  world.count = SEGMENTS;
  for (unsigned i = 0; i < SEGMENTS; i++)
    world.frame[i] = ljp_frame(LJP_FRAME_CFUNC, 0, 101 + i);
  stacks.epoch = 1;
  return ljp_segments_init(&stacks) ? 0 : -1;
}

static int end(void **state)
{
  (void)state;
  ljp_segments_fini(&stacks);
  return 0;
}

static struct ljp_guest_start start_of(unsigned i)
{
  return (struct ljp_guest_start){.L = THREAD + i, .cframe = CFRAME + i};
}

/* What stack.c does for a stack whose topmost segment is i. True: it was found
** without a full walk. */
static bool find(unsigned i, uint32_t *kept)
{
  struct ljp_guest_start start = start_of(i);
  struct ljp_segment *a = ljp_below_segment(&stacks, &start);
  if (!a)
    a = ljp_below_begin(&stacks, &start);
  if (!a || !ljp_below_find(&stacks, a, &start, kept)) {
    struct ljp_found_stack found = {.frames = &world.frame[i],
                                    .count = world.count - i};
    ljp_below_learn(&stacks, a, &site, &start, &found);
    return false;
  }
  a->hits += a->learned;
  assert_int_equal(a->spine.frames, world.count - i);
  for (unsigned n = 0; n < a->spine.frames; n++)
    assert_int_equal(a->spine.stack[n], world.frame[world.count - 1 - n]);
  return true;
}

/* -- Tests ----------------------------------------------------------------- */

static void frames_below_are_learned_once(void **state)
{
  uint32_t kept;
  (void)state;
  assert_false(find(5, &kept));
  assert_int_equal(world.walks, 1);
  for (int i = 0; i < 20; i++) {
    assert_true(find(5, &kept));
    assert_int_equal(kept, 3);
  }
  world.frame[5]++; /* in the segment itself */
  assert_true(find(5, &kept));
  assert_int_equal(kept, 2);
  assert_int_equal(world.walks, 1);
}

static void a_changed_word_below_is_noticed(void **state)
{
  uint32_t kept;
  (void)state;
  assert_false(find(5, &kept));
  for (unsigned i = 6; i < SEGMENTS; i++) {
    assert_true(find(5, &kept));
    world.word[i]++;
    world.frame[i]++;
    assert_false(find(5, &kept));
    while (!find(5, &kept))
      ;
  }
}

static void a_new_epoch_forgets(void **state)
{
  uint32_t kept;
  (void)state;
  assert_false(find(5, &kept));
  assert_true(find(5, &kept));
  stacks.epoch++;
  world.frame[7]++; /* and none of the words */
  assert_false(find(5, &kept));
}

static void nothing_is_learned_while_the_stack_moves(void **state)
{
  uint32_t kept;
  (void)state;
  world.resizing = true;
  assert_false(find(5, &kept));
  assert_int_equal(world.walks, 0);
  assert_true(world.resizing);
}

static void frames_are_put_together_from_a_known_segment(void **state)
{
  uint32_t kept;
  (void)state;
  world.simple = true;
  assert_false(find(6, &kept));
  assert_true(find(6, &kept));
  assert_true(find(5, &kept)); /* without a walk of its own */
  assert_int_equal(kept, 0);
  assert_true(find(5, &kept));
  assert_int_equal(kept, 3);
  assert_int_equal(world.walks, 1);
  world.frame[6]++; /* which segment 6 itself sees */
  assert_true(find(5, &kept));
  assert_int_equal(kept, 0);
  assert_int_equal(world.walks, 1);
}

static void host_frames_between_are_kept_with_native(void **state)
{
  uint32_t kept;
  (void)state;
  world.simple = stacks.native = true;
  assert_false(find(6, &kept));
  struct ljp_guest_start start = start_of(5);
  struct ljp_segment *a = ljp_below_begin(&stacks, &start);
  assert_non_null(a);
  assert_true(ljp_below_find(&stacks, a, &start, &kept));
  assert_int_equal(a->spine.frames, 4);
  assert_int_equal(a->spine.stack[0], world.frame[7]);
  assert_int_equal(a->spine.stack[1], world.frame[6]);
  assert_int_equal(a->spine.stack[2], ljp_frame(LJP_FRAME_HOST, 0, CFRAME + 5));
  assert_int_equal(a->spine.stack[3], world.frame[5]);
}

static void frames_that_stay_the_same_are_learned(void **state)
{
  uint32_t kept;
  (void)state;
  world.simple = true;
  assert_false(find(6, &kept));
  unsigned found = 0;
  while (find(5, &kept))
    assert_in_range(found++, 0, 64);
  assert_int_equal(found, 64);
  assert_int_equal(world.walks, 2);
  struct ljp_guest_start start = start_of(5);
  assert_true(find(5, &kept));
  assert_true(ljp_below_segment(&stacks, &start)->learned);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(frames_below_are_learned_once),
      TEST(a_changed_word_below_is_noticed),
      TEST(a_new_epoch_forgets),
      TEST(nothing_is_learned_while_the_stack_moves),
      TEST(frames_are_put_together_from_a_known_segment),
      TEST(host_frames_between_are_kept_with_native),
      TEST(frames_that_stay_the_same_are_learned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
