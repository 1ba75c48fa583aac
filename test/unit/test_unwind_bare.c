/* Steps out of functions that have no CFI. One does not touch the stack, as the
** one that makes random numbers in Linux's vDSO. The other, as functions of
** musl do, executes string instructions before it leaves its frame. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profilers/unwind/step.h"
#include "src/base/saferead.h"

/* bare() without CFI, called by one of the two functions that have it. */
__asm__(".pushsection .text\n"
        ".type bare_caller, @function\n"
        "bare_caller: .cfi_startproc\n"
        "  call bare\n"
        "bare_called: ret\n"
        "  .cfi_endproc\n"
        ".type bare_stranger, @function\n"
        "bare_stranger: .cfi_startproc\n"
        "  call bare_caller\n"
        "bare_elsewhere: ret\n"
        "  .cfi_endproc\n"
        ".type bare, @function\n"
        "bare: nop\n"
        "bare_inside: nop\n"
        "  ret\n"
        ".type framed, @function\n"
        "framed:\n"
        "  rep stosq\n"
        "  rep movsb\n"
        "  repne scasb\n"
        "  repe cmpsb\n"
        "  lodsb\n"
        "  leave\n"
        "  ret\n"
        ".popsection\n");
extern const char framed[];
extern const char bare[], bare_inside[], bare_called[], bare_elsewhere[];

static struct ljp_unwind *unwinder;

static enum ljp_unwind_result step_from(struct ljp_regs *regs,
                                        const char *inside, const char *above,
                                        uint64_t stack[2])
{
  struct ljp_unwind_room room;
  static const sigset_t none;
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  assert_true(ljp_saferead_enter(&none));
  stack[0] = (uintptr_t)above;
  *regs = (struct ljp_regs){
      .known = (1u << LJP_RIP) | (1u << LJP_RSP), .exact = true, .room = &room};
  regs->r[LJP_RIP] = (uintptr_t)inside;
  regs->r[LJP_RSP] = (uintptr_t)stack;
  enum ljp_unwind_result result = ljp_unwind_step(map, regs);
  ljp_unwind_release(unwinder, map);
  return result;
}

static void the_caller_is_found_by_its_call(void **state)
{
  (void)state;
  struct ljp_regs regs;
  uint64_t stack[2] = {0, 0};
  const char *const places[] = {bare, bare_inside};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(step_from(&regs, places[i], bare_called, stack),
                     LJP_UNWIND_STEPPED);
    assert_int_equal(regs.r[LJP_RIP], (uintptr_t)bare_called);
    assert_int_equal(regs.r[LJP_RSP], (uintptr_t)(stack + 1));
    assert_false(regs.exact);
  }
}

static void a_call_of_another_function_is_no_proof(void **state)
{
  (void)state;
  struct ljp_regs regs;
  uint64_t stack[2] = {0, 0};
  assert_int_not_equal(step_from(&regs, bare_inside, bare_elsewhere, stack),
                       LJP_UNWIND_STEPPED);
  assert_int_not_equal(step_from(&regs, bare_inside, bare, stack),
                       LJP_UNWIND_STEPPED);
  assert_int_not_equal(step_from(&regs, bare_inside, NULL, stack),
                       LJP_UNWIND_STEPPED);
}

static void string_instructions_leave_the_frame_pointer_alone(void **state)
{
  (void)state;
  static const sigset_t none;
  struct ljp_unwind_room room;
  uint64_t stack[10] = {[8] = 123, [9] = (uintptr_t)bare_called};
  struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true, .room = &room};
  regs.r[LJP_RIP] = (uintptr_t)framed;
  regs.r[LJP_RSP] = (uintptr_t)stack;
  regs.r[LJP_RBP] = (uintptr_t)(stack + 8);
  assert_true(ljp_saferead_enter(&none));
  assert_int_equal(ljp_unwind_run_code(&regs, LJP_UNWIND_NO_RULE),
                   LJP_UNWIND_STEPPED);
  assert_int_equal(regs.r[LJP_RIP], (uintptr_t)bare_called);
  assert_int_equal(regs.r[LJP_RSP], (uintptr_t)(stack + 10));
  assert_int_equal(regs.r[LJP_RBP], 123);
}

static int set_up(void **state)
{
  (void)state;
  return ljp_saferead_install() || ljp_unwind_new(&unwinder);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_caller_is_found_by_its_call),
      cmocka_unit_test(a_call_of_another_function_is_no_proof),
      cmocka_unit_test(string_instructions_leave_the_frame_pointer_alone)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
