/*
** Whole numbers from floating point ones, at the ends of their ranges, and in
** the views that use them.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "parsers/base/whole.h"
#include "tools/page/diff.h"
#include "tools/report/report.h"

static void numbers_in_range_are_cut(void **state)
{
  (void)state;
  assert_true(ljp_whole(0) == 0);
  assert_true(ljp_whole(1) == 1);
  assert_true(ljp_whole(2.9) == 2);
  assert_true(ljp_whole(0x1p63) == UINT64_C(1) << 63);
  assert_true(ljp_whole(nextafter(0x1p64, 0)) == UINT64_MAX - 2047);
  assert_true(ljp_whole_signed(-2.9) == -2);
  assert_true(ljp_whole_signed(nextafter(0x1p63, 0)) == INT64_MAX - 1023);
}

static void numbers_out_of_range_are_the_nearest_in_range(void **state)
{
  (void)state;
  assert_true(ljp_whole(-1) == 0);
  assert_true(ljp_whole(NAN) == 0);
  assert_true(ljp_whole(0x1p64) == UINT64_MAX);
  assert_true(ljp_whole(INFINITY) == UINT64_MAX);
  assert_true(ljp_whole_signed(NAN) == 0);
  assert_true(ljp_whole_signed(0x1p63) == INT64_MAX);
  assert_true(ljp_whole_signed(INFINITY) == INT64_MAX);
  assert_true(ljp_whole_signed(-INFINITY) == INT64_MIN);
}

static void a_bound_may_be_larger_than_any_amount(void **state)
{
  (void)state;
  struct ljp_profile p = {.sampled_memory = true};
  struct ljp_report r = {.p = &p, .select.measure = LJP_MEASURE_ALLOC};
  char text[24];
  ljp_bound_amount(&r, 3.4e19, text);
  assert_string_equal(text, "16777216.0 TiB");
}

static void a_difference_may_be_larger_than_any_amount(void **state)
{
  (void)state;
  assert_true(ljp_diff_whole(3.4e19) == UINT64_MAX);
  assert_true(ljp_diff_whole(-3.4e19) == 0);
  assert_true(ljp_diff_whole(2.5) == 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_in_range_are_cut),
      cmocka_unit_test(numbers_out_of_range_are_the_nearest_in_range),
      cmocka_unit_test(a_bound_may_be_larger_than_any_amount),
      cmocka_unit_test(a_difference_may_be_larger_than_any_amount),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
