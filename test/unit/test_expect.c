/*
** Budgets: what the parser reads, how figures are judged at the edges of their
** errors, and how often the bounds of a share hold.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/expect/expect.h"

static void a_budget_is_read_part_by_part(void **state)
{
  struct ljp_budget b;
  struct ljp_budget_error error;
  (void)state;
  assert_true(ljp_budget_parse(
      " cpu.own( f (x) a.lua:3 ? )>= 3 ms + 0.5 * base-1.ljp * 3 - \"a b\" ",
      &b, &error));
  assert_int_equal(b.figure, LJP_FIGURE_CPU);
  assert_true(b.own && b.optional);
  assert_int_equal(b.subject.len, 13);
  assert_memory_equal(b.subject.data, "f (x) a.lua:3", 13);
  assert_int_equal(b.op, LJP_BUDGET_GE);
  assert_string_equal(b.unit->name, "ms");
  assert_int_equal(b.term_count, 3);
  assert_true(b.terms[0].factor == 3e6 && !b.terms[0].base.len);
  assert_true(b.terms[1].factor == 1.5);
  assert_memory_equal(b.terms[1].base.data, "base-1.ljp", 10);
  assert_true(b.terms[2].factor == -1);
  assert_int_equal(b.terms[2].base.len, 3);
}

/* Judges `value op 100`. */
static enum ljp_verdict judge(const char *text, double value, double error,
                              bool strict, bool *certain)
{
  struct ljp_expectation e = {0};
  struct ljp_budget_error wrong;
  assert_true(ljp_budget_parse(text, &e.budget, &wrong));
  e.value = (struct ljp_figure_value){.known = true,
                                      .value = value,
                                      .low = value - error,
                                      .high = value + error};
  e.limit = (struct ljp_figure_value){
      .known = true, .value = 100, .low = 100, .high = 100};
  ljp_expect_judge(&e, strict);
  *certain = e.certain;
  return e.verdict;
}

static void verdicts_change_at_the_edges_of_the_error(void **state)
{
  static const struct {
    const char *text;
    double value, error;
    enum ljp_verdict verdict, strict;
    bool certain;
  } cases[] = {
      {"samples <= 100", 100, 0, LJP_VERDICT_HOLDS, LJP_VERDICT_HOLDS, true},
      {"samples <= 100", 101, 0, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples <= 100", 93, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_HOLDS, true},
      {"samples <= 100", 94, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_EXCEEDED, false},
      {"samples <= 100", 107, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_EXCEEDED,
       false},
      {"samples <= 100", 108, 7, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples < 100", 100, 0, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples < 100", 107, 7, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples >= 100", 92, 7, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples >= 100", 93, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_EXCEEDED, false},
      {"samples > 100", 108, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_HOLDS, true},
      {"samples == 100", 100, 0, LJP_VERDICT_HOLDS, LJP_VERDICT_HOLDS, true},
      {"samples == 100", 100, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_EXCEEDED,
       false},
      {"samples == 100", 108, 7, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples != 100", 100, 0, LJP_VERDICT_EXCEEDED, LJP_VERDICT_EXCEEDED,
       true},
      {"samples != 100", 101, 7, LJP_VERDICT_HOLDS, LJP_VERDICT_EXCEEDED,
       false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool certain;
    assert_int_equal(
        judge(cases[i].text, cases[i].value, cases[i].error, false, &certain),
        cases[i].verdict);
    assert_int_equal(certain, cases[i].certain);
    assert_int_equal(
        judge(cases[i].text, cases[i].value, cases[i].error, true, &certain),
        cases[i].strict);
  }
}

enum { SAMPLES_MAX = 300 };

/* Sums the probabilities of all numbers of samples whose bounds hold the true
** share. */
static double coverage(const struct ljp_bounds *bounds, unsigned n,
                       double share)
{
  double held = 0;
  for (unsigned k = 0; k <= n; k++)
    if (bounds[k].low <= share && share <= bounds[k].high)
      held += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) +
                  k * log(share) + (n - k) * log1p(-share));
  return held;
}

static void bounds_of_a_share_hold_in_95_of_100_cases(void **state)
{
  static struct ljp_bounds bounds[SAMPLES_MAX + 1];
  double sum = 0;
  unsigned cases = 0;
  (void)state;
  for (unsigned n = 11; n < SAMPLES_MAX; n += 71) {
    for (unsigned k = 0; k <= n; k++)
      bounds[k] = ljp_share_bounds(k, n);
    for (double share = 0.003; share < 0.998; share += 0.019, cases++) {
      double held = coverage(bounds, n, share);
      assert_true(held >= 0.95);
      sum += held;
    }
  }
  assert_true(sum / cases < 0.985); /* They are not wider than necessary. */
}

static void shares_of_nothing_and_of_everything_have_bounds(void **state)
{
  (void)state;
  struct ljp_bounds none = ljp_share_bounds(0, 100);
  struct ljp_bounds all = ljp_share_bounds(100, 100);
  struct ljp_bounds unknown = ljp_share_bounds(0, 0);
  assert_true(none.low == 0 && none.high > 0.036 && none.high < 0.037);
  assert_true(all.high == 1 && all.low > 0.963 && all.low < 0.964);
  assert_true(unknown.low == 0 && unknown.high == 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_budget_is_read_part_by_part),
      cmocka_unit_test(verdicts_change_at_the_edges_of_the_error),
      cmocka_unit_test(bounds_of_a_share_hold_in_95_of_100_cases),
      cmocka_unit_test(shares_of_nothing_and_of_everything_have_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
