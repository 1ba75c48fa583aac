/*
** Prints the report of `ljprof diff`: changed functions, changed stacks.
*/
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/page/diff.h"
#include "tools/shared/units.h"

/* Formats an amount; with a sign if it is a change, and "~" if it is an
** estimate. */
static size_t diff_amount(char *to, size_t room, double x, const char *unit,
                          bool sign, bool about)
{
  static struct ljp_print out;
  ljp_print_begin(&out, -1);
  ljp_units_amount(&out, ljp_diff_whole(fabs(x)), unit);
  size_t n = out.len < room - 4 ? out.len : room - 4;
  size_t at = 0;
  if (about)
    to[at++] = '~';
  if (sign)
    to[at++] = ljp_diff_whole(fabs(x)) == 0 ? ' ' : x < 0 ? '-' : '+';
  memcpy(to + at, out.buf, n);
  to[at + n] = 0;
  return at + n;
}

static void diff_cell(struct ljp_print *out, double x, const char *unit,
                      bool sign, bool about)
{
  char text[64];
  diff_amount(text, sizeof text, x, unit, sign, about);
  ljp_print_format(out, "%12s", text);
}

static void diff_frame_name(struct ljp_print *out, const struct ljp_page *page,
                            uint32_t frame)
{
  const struct ljp_page_frame *f = &page->frames[frame];
  ljp_print_safe(out, f->name);
  if (f->file.len && f->kind >= LJP_PAGE_LUA && f->kind <= LJP_PAGE_INLINED) {
    ljp_print_str(out, " ");
    ljp_print_safe(out, f->file);
    if (f->line)
      ljp_print_format(out, ":%" PRIu32, f->line);
  }
}

static bool diff_is_estimated(const struct ljp_diff *d, int view, int side)
{
  return view >= LJP_PAGE_VIEW_ALLOC && d->sides[side].estimated;
}

static void diff_cells(struct ljp_print *out, const struct ljp_diff_value *v,
                       const struct ljp_diff *d, int view)
{
  const char *unit = ljp_diff_unit(d, view);
  bool before = diff_is_estimated(d, view, 0);
  bool after = diff_is_estimated(d, view, 1);
  diff_cell(out, v->value[1] - v->value[0], unit, true, before || after);
  diff_cell(out, ljp_diff_error(v), unit, false, false);
  diff_cell(out, v->value[0], unit, false, before);
  diff_cell(out, v->value[1], unit, false, after);
}

static void diff_value_line(struct ljp_print *out,
                            const struct ljp_diff_value *v,
                            const struct ljp_diff_value *whole,
                            const struct ljp_diff *d, int view)
{
  diff_cells(out, v, d, view);
  ljp_print_format(out, "  %-5s ", ljp_diff_verdict(v, whole));
}

static void diff_text_head(struct ljp_print *out, const struct ljp_diff *d,
                           int view)
{
  static const char *const when[] = {"before", "after"};
  for (size_t i = 0; i < d->page.notice_count; i++) {
    ljp_print_str(out, "! ");
    ljp_print_safe(out, d->page.notices[i].text);
    ljp_print_str(out, "\n");
  }
  for (int side = 0; side < 2; side++) {
    const struct ljp_diff_side *s = &d->sides[side];
    ljp_print_format(out, "%-7s", when[side]);
    ljp_print_safe(out, s->file);
    ljp_print_str(out, ": ");
    if (!s->untimed)
      ljp_print_format(out, "%.3f s, ", s->seconds);
    if (view == LJP_PAGE_VIEW_CPU || view == LJP_PAGE_VIEW_WALL)
      ljp_print_format(out, "%" PRIu64 " samples\n", s->samples);
    else
      ljp_print_format(out, "%s%" PRIu64 " allocations\n",
                       s->estimated ? "~" : "", s->events);
  }
}

/* The totals of a view that cannot be compared. */
static void diff_text_apart(const struct ljp_diff *d, int view, const char *why,
                            struct ljp_print *out)
{
  ljp_print_format(out, "%12s%12s", "-", "-");
  for (int i = 0; i < 2; i++)
    if (d->sides[i].holds[view])
      diff_cell(out, d->totals[view].value[i], ljp_diff_unit_of(d, view, i),
                false, diff_is_estimated(d, view, i));
    else
      ljp_print_format(out, "%12s", "-");
  ljp_print_format(out, "%9s  %s, %s\n", "", ljp_diff_views[view].name, why);
}

/* What both sides measured, before what is compared. */
static void diff_text_totals(const struct ljp_diff *d, int view,
                             struct ljp_print *out)
{
  ljp_print_format(out, "compared %s", ljp_diff_by_text(d->by));
  if (d->why)
    ljp_print_format(out, ": %s", d->why);
  if (!d->sides[0].untimed && !d->sides[1].untimed)
    ljp_print_str(out, " (--total, --per-second or --share choose)");
  if (d->folded)
    ljp_print_str(out,
                  "\nmachine code counts for the function that made it run "
                  "(--native shows it)");
  ljp_print_format(out, "\n\ntotals\n%12s%12s%12s%12s%9s\n", "change", "+-",
                   "before", "after", "%");
  for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
    const struct ljp_diff_value *t = &d->totals[v];
    if (!(t->value[0] > 0 || t->value[1] > 0))
      continue;
    const char *lacks = ljp_diff_total_lacks(d, v);
    if (lacks) {
      diff_text_apart(d, v, lacks, out);
      continue;
    }
    diff_cells(out, t, d, v);
    if (t->value[0] > 0)
      ljp_print_format(out, "%+8.1f%%",
                       100 * (t->value[1] - t->value[0]) / t->value[0]);
    else
      ljp_print_format(out, "%9s", "new");
    ljp_print_format(out, "  %s", ljp_diff_views[v].name);
    if (v != view)
      ljp_print_format(out, " (--view %s)", ljp_diff_views[v].id);
    ljp_print_str(out, "\n");
  }
  ljp_print_str(out, "\n");
}

static const struct ljp_diff_value *
diff_text_value(const struct ljp_diff_function *f, bool total)
{
  return total ? &f->total : &f->self;
}

/* Says what a list leaves out. count: of what could be listed; sure: changes
** beyond the error. */
static void diff_text_rest(struct ljp_print *out, const char *what,
                           size_t count, size_t sure, size_t shown, bool all)
{
  size_t listed = all ? count : sure, rest = count - sure;
  if (!listed)
    ljp_print_str(out, "  nothing beyond the sampling error\n");
  if (listed > shown)
    ljp_print_format(out, "  and %zu more (--top 0 lists all)\n",
                     listed - shown);
  if (rest && !all)
    ljp_print_format(out,
                     "  %zu %s%s did not change beyond the sampling error "
                     "(--all lists %s)\n",
                     rest, what, rest == 1 ? "" : "s",
                     rest == 1 ? "it" : "them");
}

static void diff_text_functions(const struct ljp_diff *d, int view,
                                const struct ljp_diff_lists *lists, bool total,
                                unsigned long top, bool all,
                                struct ljp_print *out)
{
  const struct ljp_diff_function *f =
      total ? lists->by_total : lists->functions;
  size_t shown = 0, sure = 0;
  ljp_print_format(out, "\nfunctions, by %s\n%12s%12s%12s%12s\n",
                   total ? "their change with what they call"
                         : "their own change",
                   "change", "+-", "before", "after");
  for (size_t i = 0; i < lists->function_count; i++) {
    const struct ljp_diff_value *v = diff_text_value(&f[i], total);
    sure += ljp_diff_sure(v);
    if ((!ljp_diff_sure(v) && !all) || (top && shown >= top))
      continue;
    shown++;
    diff_value_line(out, v, &f[i].total, d, view);
    diff_frame_name(out, &d->page, f[i].frame);
    ljp_print_str(out, "\n");
  }
  diff_text_rest(out, "function", lists->function_count, sure, shown, all);
}

static void diff_text_stacks(const struct ljp_diff *d, int view,
                             const struct ljp_diff_lists *lists,
                             unsigned long top, bool all, struct ljp_print *out)
{
  const struct ljp_diff_stack *s = lists->stacks;
  size_t shown = 0, sure = 0;
  for (size_t i = 0; i < lists->stack_count; i++) {
    sure += ljp_diff_sure(&s[i].self);
    if ((!ljp_diff_sure(&s[i].self) && !all) || (top && shown >= top))
      continue;
    shown++;
    diff_value_line(out, &s[i].self, &s[i].self, d, view);
    uint32_t at = s[i].node, path[2048], n = 0;
    for (; at && n < 2048; at = d->page.nodes[at].parent)
      path[n++] = d->page.nodes[at].frame;
    /* The four innermost frames are enough to tell stacks apart. */
    for (uint32_t k = n < 4 ? n : 4; k-- > 0;) {
      ljp_print_str(out, k + 1 == 4 && n > 4 ? "...;" : "");
      diff_frame_name(out, &d->page, path[k]);
      ljp_print_str(out, k ? ";" : "");
    }
    ljp_print_str(out, "\n");
  }
  diff_text_rest(out, "stack", lists->stack_count, sure, shown, all);
}

void ljp_diff_text(const struct ljp_diff *d, enum ljp_page_view view,
                   const struct ljp_diff_lists *lists, unsigned long top,
                   bool all, struct ljp_print *out)
{
  diff_text_head(out, d, view);
  diff_text_totals(d, view, out);
  bool rated = view <= LJP_PAGE_VIEW_ALLOC;
  bool samples = strcmp(ljp_diff_unit(d, view), "samples") == 0;
  const char *rate = ljp_diff_per_second(d, view) ? " per second of recording"
                     : !rated || d->by != LJP_DIFF_SHARE ? ""
                     : view == LJP_PAGE_VIEW_ALLOC       ? " per GiB"
                     : samples                           ? " per 1000 samples"
                               : " per second measured";
  char a[64], b[64];
  const char *unit = ljp_diff_unit(d, view);
  diff_amount(a, sizeof a, d->sums[view][0], unit, false,
              diff_is_estimated(d, view, 0));
  diff_amount(b, sizeof b, d->sums[view][1], unit, false,
              diff_is_estimated(d, view, 1));
  ljp_print_format(out, "%s%s: %s before, %s after\n",
                   ljp_diff_views[view].name, rate, a, b);
  diff_text_functions(d, view, lists, false, top, all, out);
  diff_text_functions(d, view, lists, true, top, all, out);
  ljp_print_format(out, "\nstacks\n%12s%12s%12s%12s\n", "change", "+-",
                   "before", "after");
  diff_text_stacks(d, view, lists, top, all, out);
}
