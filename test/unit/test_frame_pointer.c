/* The frame pointer of a function of which only rsp and the position are known:
** which words may be its return address. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "profilers/unwind/step.h"

/* Words of the stack: what the function has pushed, and where its return address
** is if the call that it makes has no arguments on the stack. */
enum { PUSHED = 2, RETURN = PUSHED + 1, WORDS = 20 };

static uint8_t code[160];
static uint64_t stack[WORDS];
static uint64_t function, position, this_call, another_call, any_call;

/* call rel32. Returns the address behind it. */
static uint64_t put_call(unsigned at, uint64_t target)
{
  uint64_t ret = (uint64_t)(uintptr_t)(code + at + 5);
  int32_t distance = (int32_t)(target - ret);
  code[at] = 0xe8;
  memcpy(code + at + 1, &distance, sizeof distance);
  return ret;
}

static int set_up(void **state)
{
  /* push rbp; mov rbp, rsp; push rbx; sub rsp, 8 */
  static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5, 0x53,
                                     0x48, 0x83, 0xec, 0x08};
  (void)state;
  memset(code, 0x90, sizeof code);
  memset(stack, 0, sizeof stack);
  function = (uint64_t)(uintptr_t)(code + 96);
  memcpy(code + 96, prologue, sizeof prologue);
  position = put_call(96 + sizeof prologue, (uint64_t)(uintptr_t)(code + 144));
  this_call = put_call(16, function);
  another_call = put_call(32, (uint64_t)(uintptr_t)(code + 144));
  code[48] = 0xff; /* call rax */
  code[49] = 0xd0;
  any_call = (uint64_t)(uintptr_t)(code + 50);
  return 0;
}

/* The word at which rbp was found, counted from where it is without arguments;
** -1: it is not known. */
static int found(void)
{
  struct ljp_regs regs = {.known = 1u << LJP_RSP | 1u << LJP_RIP};
  regs.r[LJP_RSP] = (uint64_t)(uintptr_t)stack;
  regs.r[LJP_RIP] = position;
  if (!ljp_unwind_find_frame_pointer(function, position, &regs))
    return -1;
  assert_true(regs.known & 1u << LJP_RBP);
  return (int)((regs.r[LJP_RBP] - regs.r[LJP_RSP]) / 8) - PUSHED;
}

static void test_one_call(void **state)
{
  (void)state;
  assert_int_equal(found(), -1);
  stack[RETURN] = this_call;
  assert_int_equal(found(), 0);
  stack[RETURN] = any_call;
  assert_int_equal(found(), 0);
  stack[RETURN] = 1;
  stack[RETURN + 3] = this_call;
  assert_int_equal(found(), 3);
}

static void test_two_calls(void **state)
{
  (void)state;
  stack[RETURN] = this_call;
  stack[RETURN + 2] = any_call;
  assert_int_equal(found(), -1);
}

/* The function that was called may have jumped to this one. */
static void test_jump(void **state)
{
  (void)state;
  stack[RETURN] = another_call;
  assert_int_equal(found(), -1);
  stack[RETURN + 2] = any_call;
  assert_int_equal(found(), -1);
  stack[RETURN + 2] = this_call;
  assert_int_equal(found(), 2);
  stack[RETURN] = any_call;
  stack[RETURN + 2] = another_call;
  assert_int_equal(found(), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_one_call, set_up),
      cmocka_unit_test_setup(test_two_calls, set_up),
      cmocka_unit_test_setup(test_jump, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
