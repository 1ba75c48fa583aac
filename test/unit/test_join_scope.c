/*
** What is said where kernel.yama.ptrace_scope forbids to join a program. Kernels
** without Yama cannot show it otherwise.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "tools/join/examine.h"

static void scope_that_permits_says_nothing(void **state)
{
  (void)state;
  assert_null(ljp_examine_scope_text(-1, false));
  assert_null(ljp_examine_scope_text(0, false));
  assert_null(ljp_examine_scope_text(1, true));
  assert_null(ljp_examine_scope_text(2, true));
}

static void scope_that_forbids_is_named_with_what_helps(void **state)
{
  (void)state;
  for (int scope = 1; scope <= 3; scope++) {
    char value[32] = "ptrace_scope is 0,";
    value[strlen(value) - 2] = (char)('0' + scope);
    const char *text = ljp_examine_scope_text(scope, false);
    assert_non_null(text);
    assert_non_null(strstr(text, value));
    assert_non_null(strstr(text, "LJPROF_LISTEN=/PATH"));
    assert_int_equal(strstr(text, "sudo") != NULL, scope < 3);
  }
  assert_non_null(ljp_examine_scope_text(3, true));
  assert_null(strstr(ljp_examine_scope_text(3, true), "sudo"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scope_that_permits_says_nothing),
      cmocka_unit_test(scope_that_forbids_is_named_with_what_helps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
