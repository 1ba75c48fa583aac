/*
** Judges budgets. Errors of both sides are combined like those of independent
** values.
**
** A budget is exceeded if the figure is beyond the limit by more than its error:
** chance alone must not make a build red. If the limit lies within the error,
** the budget holds, and the line says that it is not certain; under --strict it
** does not hold then.
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/expect/expect.h"
#include "tools/shared/units.h"

const char *ljp_verdict_text(enum ljp_verdict verdict)
{
  static const char *const texts[] = {
#define LJP_X(name, text) text,
      LJP_VERDICT_LIST(LJP_X)
#undef LJP_X
  };
  return texts[verdict];
}

enum ljp_verdict ljp_expect_worst(const struct ljp_expectations *all)
{
  enum ljp_verdict worst = LJP_VERDICT_HOLDS;
  for (unsigned i = 0; i < all->count; i++)
    if (all->list[i].verdict == LJP_VERDICT_EXCEEDED ||
        worst == LJP_VERDICT_HOLDS)
      worst = all->list[i].verdict;
  return worst;
}

/* Of a difference between low and high: whether the budget may hold, and
** whether it does in any case. */
static void judge_range(enum ljp_budget_op op, double low, double high,
                        bool *possible, bool *sure)
{
  bool zero = low <= 0 && high >= 0, only_zero = low == 0 && high == 0;
  switch (op) {
  case LJP_BUDGET_LE:
    *possible = low <= 0;
    *sure = high <= 0;
    return;
  case LJP_BUDGET_GE:
    *possible = high >= 0;
    *sure = low >= 0;
    return;
  case LJP_BUDGET_LT:
    *possible = low < 0;
    *sure = high < 0;
    return;
  case LJP_BUDGET_GT:
    *possible = high > 0;
    *sure = low > 0;
    return;
  case LJP_BUDGET_EQ:
    *possible = zero;
    *sure = only_zero;
    return;
  case LJP_BUDGET_NE:
    *possible = !only_zero;
    *sure = !zero;
    return;
  }
}

/* Formats an amount in the budget's unit; if that has none, in a suitable one.
** places: after the point; -1: as many digits as people want to read. */
static void judge_format(const struct ljp_budget *b, double x, int places,
                         char out[48])
{
  static struct ljp_print print; /* Too large for the stack. */
  double n = x / b->unit->scale;
  bool counts = b->unit->kind == LJP_UNIT_COUNT;
  if (places >= 0) {
    snprintf(out, 48, "%.*f%s%s", places, n, *b->unit->name ? " " : "",
             b->unit->name);
    return;
  }
  if (!b->unit_given && !counts && x >= 0 && x < 0x1p63) {
    ljp_print_begin(&print, -1);
    ljp_units_amount(&print, (uint64_t)llround(x),
                     b->unit->kind == LJP_UNIT_TIME ? "ns" : "bytes");
    snprintf(out, 48, "%.*s", (int)print.len, print.buf);
    return;
  }
  int len = snprintf(out, 40, counts || fabs(n) >= 1e4 ? "%.0f" : "%.4g", n);
  if (len > 0 && len < 30 && *b->unit->name)
    snprintf(out + len, 48 - (size_t)len, " %s", b->unit->name);
}

/* Formats an amount so that it does not look like `other` unless it is equal. */
static void judge_amount(const struct ljp_budget *b, double x, double other,
                         char out[48])
{
  char text[48];
  judge_format(b, x, -1, out);
  if (fabs(x - other) <= 1e-12 * fmax(fabs(x), fabs(other)))
    return; /* See ljp_expect_judge(). */
  judge_format(b, other, -1, text);
  for (int places = 0; places < 12 && strcmp(text, out) == 0; places++) {
    judge_format(b, x, places, out);
    judge_format(b, other, places, text);
  }
}

/* The value, or the limit if it is not a plain number, with its error. other:
** what it is compared with. */
static size_t judge_side(const struct ljp_budget *b,
                         const struct ljp_figure_value *v, double other,
                         char *out, size_t room)
{
  char value[48], low[48], high[48];
  judge_amount(b, v->value, other, value);
  if (!(v->low < v->value || v->high > v->value))
    return (size_t)snprintf(out, room, "%s%s", v->estimated ? "~" : "", value);
  judge_format(b, v->low, -1, low);
  judge_format(b, v->high, -1, high);
  return (size_t)snprintf(out, room, "%s%s (%s to %s)", v->estimated ? "~" : "",
                          value, low, high);
}

static bool judge_has_base(const struct ljp_budget *b)
{
  for (unsigned i = 0; i < b->term_count; i++)
    if (b->terms[i].base.len)
      return true;
  return false;
}

static void judge_say(struct ljp_expectation *e)
{
  size_t room = sizeof e->text, n = 0;
  n = judge_side(&e->budget, &e->value, e->limit.value, e->text, room);
  if (judge_has_base(&e->budget) || e->budget.term_count > 1) {
    n += (size_t)snprintf(e->text + n, room - n, ", limit ");
    n += judge_side(&e->budget, &e->limit, e->value.value, e->text + n,
                    room - n);
  }
  if (!e->certain)
    snprintf(
        e->text + n, room - n, "; %s the sampling error%s",
        e->over ? "beyond the limit by less than" : "the limit lies within",
        e->verdict == LJP_VERDICT_EXCEEDED ? ", which --strict refuses" : "");
}

void ljp_expect_judge(struct ljp_expectation *e, bool strict)
{
  const struct ljp_figure_value *v = &e->value, *l = &e->limit;
  if (!v->known || !l->known) {
    e->verdict = LJP_VERDICT_UNKNOWN;
    snprintf(e->text, sizeof e->text, "%s", v->known ? l->why : v->why);
    return;
  }
  enum ljp_budget_op op = e->budget.op;
  double difference = v->value - l->value;
  /* Where rounding is all the difference, there is none. */
  if (fabs(difference) <= 1e-12 * fmax(fabs(v->value), fabs(l->value)))
    difference = 0;
  double low = difference - hypot(v->value - v->low, l->high - l->value);
  double high = difference + hypot(v->high - v->value, l->value - l->low);
  bool here, possible, sure;
  judge_range(op, difference, difference, &possible, &here);
  judge_range(op, low, high, &possible, &sure);
  e->over = !here;
  e->certain = sure || !possible;
  e->verdict =
      sure || (possible && !strict) ? LJP_VERDICT_HOLDS : LJP_VERDICT_EXCEEDED;
  judge_say(e);
}
