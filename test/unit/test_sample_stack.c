/* What a sample keeps of its walk. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "profilers/cpu/sample_stack.h"

enum { FRAMES = 8 };

/* One letter a frame, innermost first. */
static uint64_t frame_of(char letter)
{
  switch (letter) {
  case 'L':
    return ljp_frame(LJP_FRAME_LUA, 17, 101);
  case 'I':
    return ljp_frame(LJP_FRAME_LUA_INLINED, 19, 103);
  case 'B':
    return ljp_frame(LJP_FRAME_BUILTIN, 0, 23);
  case 'C':
    return ljp_frame(LJP_FRAME_CFUNC, 0, 0x7001);
  case 'H':
    return ljp_frame(LJP_FRAME_HOST, 0, 0x7003);
  case 'V':
    return ljp_frame(LJP_FRAME_VM, 0, 0x7013);
  case 'K':
    return ljp_frame(LJP_FRAME_KERNEL, 0, 0);
  default:
    assert_int_equal(letter, 'P');
    return ljp_frame(LJP_FRAME_PROFILER, 0, 0);
  }
}

static struct ljp_stack stack_of(const char *letters, uint64_t *frames)
{
  struct ljp_stack stack = {.frames = frames, .limit = FRAMES};
  for (; *letters; letters++)
    assert_true(ljp_stack_add(&stack, frame_of(*letters)));
  return stack;
}

static void assert_stack(const struct ljp_stack *stack, const char *letters)
{
  assert_int_equal(stack->count, strlen(letters));
  for (uint32_t i = 0; i < stack->count; i++)
    assert_int_equal(stack->frames[i], frame_of(letters[i]));
}

static void assert_kept(const char *letters, const char *wanted)
{
  uint64_t frames[FRAMES];
  struct ljp_stack stack = stack_of(letters, frames);
  stack.cut = LJP_CUT_DEPTH;
  ljp_sample_keep_leaf(&stack);
  assert_stack(&stack, wanted);
  assert_int_equal(stack.cut, LJP_CUT_NONE);
}

static void the_leaf_and_the_innermost_guest_frame_are_kept(void **state)
{
  (void)state;
  assert_kept("", "");
  assert_kept("L", "L");
  assert_kept("LLH", "L");
  assert_kept("ILH", "I");
  assert_kept("VLLH", "VL");
  assert_kept("HHBLH", "HB");
  assert_kept("HHCLH", "HC");
  assert_kept("HHH", "H");
}

static void kernel_and_profiler_stand_above_the_leaf(void **state)
{
  (void)state;
  assert_kept("K", "K");
  assert_kept("KHH", "KH");
  assert_kept("KHHCL", "KHC");
  assert_kept("PHHCL", "PHC");
  assert_kept("PLLH", "PL");
  assert_kept("PVLH", "PVL");
}

static void an_added_leaf_keeps_the_limit(void **state)
{
  (void)state;
  uint64_t frames[FRAMES];
  struct ljp_stack stack = stack_of("HCL", frames);
  ljp_sample_add_leaf(&stack, LJP_FRAME_PROFILER, FRAMES);
  assert_stack(&stack, "PHCL");
  assert_int_equal(stack.cut, LJP_CUT_NONE);
  ljp_sample_add_leaf(&stack, LJP_FRAME_KERNEL, 4);
  assert_stack(&stack, "KPHC");
  assert_int_equal(stack.cut, LJP_CUT_DEPTH);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_leaf_and_the_innermost_guest_frame_are_kept),
      cmocka_unit_test(kernel_and_profiler_stand_above_the_leaf),
      cmocka_unit_test(an_added_leaf_keeps_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
