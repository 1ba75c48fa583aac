/*
** Views that are tables: the groups of ljprof report, largest first.
*/
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/whole.h"
#include "parsers/profile/frame_name.h"
#include "parsers/profile/labels.h"
#include "tools/shared/units.h"
#include "tools/top/views.h"

enum { TABLE_STACK_FRAMES = 64 };

struct table {
  struct ljp_top_text *text;
  const struct ljp_worker *w;
  struct ljp_report report;
  struct ljp_groups groups;
  regex_t filter;
  bool filtered;
  uint64_t hidden; /* Rows that do not match. */
  uint64_t more;   /* Rows that match, for which there is no room. */
};

enum ljp_measure ljp_top_measure(const struct ljp_profile *p)
{
  return p->recorded[LJP_PRODUCER_CPU] || !p->recorded[LJP_PRODUCER_WALL]
             ? LJP_MEASURE_CPU
             : LJP_MEASURE_WALL;
}

/* -- Order ------------------------------------------------------------------ */

static const struct table *table_sorted;

static int table_compare_amounts(uint64_t a, uint64_t b)
{
  return a > b ? -1 : a < b;
}

static int table_compare(const void *a, const void *b)
{
  const struct table *t = table_sorted;
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct ljp_group_value *x = &t->groups.values[i];
  const struct ljp_group_value *y = &t->groups.values[k];
  char left[LJP_TOP_NAME_BYTES], right[LJP_TOP_NAME_BYTES];
  int own = table_compare_amounts(x->self.weight, y->self.weight);
  int total = table_compare_amounts(x->total.weight, y->total.weight);
  int order = own ? own : total;
  if (t->w->query.sort == LJP_TOP_TOTAL)
    order = total ? total : own;
  if (t->w->query.sort == LJP_TOP_NAME) {
    ljp_group_name(&t->report, &t->groups, i, left, sizeof left);
    ljp_group_name(&t->report, &t->groups, k, right, sizeof right);
    order = strcmp(left, right);
  }
  return order ? order : i < k ? -1 : 1;
}

/* The groups in the order of the query. NULL: out of memory. */
static uint32_t *table_order(const struct table *t)
{
  uint32_t *order = malloc(((size_t)t->groups.count + 1) * sizeof *order);
  for (uint32_t i = 0; order && i < t->groups.count; i++)
    order[i] = i;
  table_sorted = t;
  if (order)
    qsort(order, t->groups.count, sizeof *order, table_compare);
  return order;
}

/* -- Rows ------------------------------------------------------------------- */

/* The leaf and its callers, on one line. */
static void table_stack_name(const struct table *t, uint32_t group, char *name,
                             size_t room)
{
  const struct ljp_profile *p = t->report.p;
  size_t used = 0;
  int frames = 0;
  *name = '\0';
  for (uint32_t n = t->groups.first[group];
       n && used + 8 < room && frames < TABLE_STACK_FRAMES;
       n = p->nodes[n].parent, frames++) {
    if (frames)
      used += (size_t)snprintf(name + used, room - used, " < ");
    size_t len = ljp_frame_name(p, p->nodes[n].frame, LJP_NAME_LINES,
                                name + used, room - used);
    used += len < room - used ? len : room - used - 1;
  }
}

static void table_name(const struct table *t, uint32_t group, char *name,
                       size_t room)
{
  if (t->report.by == LJP_BY_STACK)
    table_stack_name(t, group, name, room);
  else
    ljp_group_name(&t->report, &t->groups, group, name, room);
}

static void table_rate(struct ljp_top_text *text, uint64_t amount,
                       uint64_t span_ns, bool bytes)
{
  static struct ljp_print number; /* Too large for the stack. */
  double seconds = span_ns ? (double)span_ns / 1e9 : 1;
  uint64_t rate = ljp_whole((double)amount / seconds);
  ljp_print_begin(&number, -1);
  if (bytes)
    ljp_units_bytes(&number, rate);
  else
    ljp_print_dec(&number, rate);
  ljp_print_format(&text->out, "%10.*s/s", (int)number.len, number.buf);
}

static void table_figures(const struct table *t, uint32_t group)
{
  const struct ljp_report *r = &t->report;
  const struct ljp_group_value *v = &t->groups.values[group];
  struct ljp_print *out = &t->text->out;
  char amount[24];
  if (ljp_measure_is_memory(r->select.measure)) {
    table_rate(t->text, v->self.weight, t->w->span_ns, true);
    table_rate(t->text, ljp_count_of(r, v->self.count), t->w->span_ns, false);
    ljp_print_format(out, " %6.2f%%", ljp_percent(r, &v->self));
    return;
  }
  ljp_amount(r, v->self.weight, amount);
  ljp_print_format(out, "%9s %6.2f%%", amount, ljp_percent(r, &v->self));
  if (!ljp_by_of_frame(r->by))
    return;
  ljp_amount(r, v->total.weight, amount);
  ljp_print_format(out, " %9s %6.2f%%", amount, ljp_percent(r, &v->total));
}

static void table_row(struct table *t, uint32_t group)
{
  char name[LJP_TOP_NAME_BYTES];
  const struct ljp_group_value *v = &t->groups.values[group];
  if (!v->total.weight && !v->total.count)
    return;
  if (t->text->full && !t->filtered) {
    t->more++;
    return;
  }
  table_name(t, group, name, sizeof name);
  if (t->filtered && regexec(&t->filter, name, 0, NULL, 0)) {
    t->hidden++;
    return;
  }
  if (!ljp_top_begin(t->text, LJP_TOP_LINE_ROW)) {
    t->more++;
    return;
  }
  table_figures(t, group);
  ljp_print_str(&t->text->out, "  ");
  ljp_print_safe(&t->text->out, ljp_str(name, strlen(name)));
  ljp_top_end(t->text);
}

static void table_head(const struct table *t)
{
  const char *const name =
      t->report.by_text ? t->report.by_text : ljp_by_text(t->report.by);
  static const char *const sorted[] = {"own", "total", "name"};
  const char *by = sorted[t->w->query.sort % LJP_TOP_SORTS];
  if (ljp_measure_is_memory(t->report.select.measure))
    ljp_top_line(t->text, LJP_TOP_LINE_HEAD, "%12s%12s %7s  %s", "allocated",
                 "objects", "share", name);
  else if (!ljp_by_of_frame(t->report.by))
    ljp_top_line(t->text, LJP_TOP_LINE_HEAD, "%9s %7s  %s", "time", "share",
                 name);
  else
    ljp_top_line(t->text, LJP_TOP_LINE_HEAD,
                 "%9s %7s %9s %7s  %s (sorted by %s)", "own", "own%", "total",
                 "total%", name, by);
}

static bool table_open_filter(struct table *t)
{
  const char *filter = t->w->query.filter;
  if (!*filter)
    return true;
  int error = regcomp(&t->filter, filter, REG_EXTENDED | REG_NOSUB);
  char why[128];
  if (error) {
    regerror(error, &t->filter, why, sizeof why);
    ljp_top_line(t->text, LJP_TOP_LINE_PLAIN,
                 "the filter is not a regular expression: %s", why);
    return false;
  }
  return t->filtered = true;
}

static void table_print(struct table *t)
{
  uint32_t *order = NULL;
  if (!ljp_groups_make(&t->report, &t->groups) || !(order = table_order(t))) {
    ljp_top_line(t->text, LJP_TOP_LINE_PLAIN, "out of memory");
    return;
  }
  table_head(t);
  for (uint32_t i = 0; i < t->groups.count; i++)
    table_row(t, order[i]);
  if (t->more)
    ljp_top_last(t->text,
                 "%" PRIu64 " more rows have no room here: '/' filters, 'S' "
                 "saves all of them",
                 t->more);
  if (!t->report.select.total.weight && !t->report.select.total.count) {
    const char *lacks = ljp_report_lacks(&t->report);
    ljp_top_line(t->text, LJP_TOP_LINE_PLAIN, "%s",
                 lacks ? lacks : "nothing in these seconds");
  } else if (t->hidden) {
    ljp_top_line(t->text, LJP_TOP_LINE_ROW,
                 "%" PRIu64 " more rows do not match the filter", t->hidden);
  }
  free(order);
}

/* label: the string of the key, for LJP_BY_LABEL. */
static void table_show(struct ljp_top_text *text, const struct ljp_worker *w,
                       struct ljp_profile *part, enum ljp_by by, uint32_t label,
                       enum ljp_measure measure)
{
  struct table t = {.text = text, .w = w, .report = {.p = part, .by = by}};
  char by_text[LJP_TOP_NAME_BYTES];
  if (by == LJP_BY_LABEL) {
    const struct ljp_str key = ljp_profile_str(part, label);
    snprintf(by_text, sizeof by_text, "label:%.*s", (int)key.len, key.data);
    t.report.by_text = by_text;
    t.report.label_key = label;
  }
  const struct ljp_select_options options = {.measure = measure};
  if (!table_open_filter(&t))
    return;
  if (ljp_select(&t.report.select, part, &options, "top"))
    ljp_top_line(text, LJP_TOP_LINE_PLAIN, "out of memory");
  else
    table_print(&t);
  ljp_groups_fini(&t.groups);
  ljp_select_fini(&t.report.select);
  if (t.filtered)
    regfree(&t.filter);
}

static void table_labels(struct ljp_top_text *text, const struct ljp_worker *w,
                         struct ljp_profile *part)
{
  struct ljp_labels_keys keys;
  if (!ljp_labels_keys(part, &keys))
    ljp_top_line(text, LJP_TOP_LINE_PLAIN, "out of memory");
  else if (!keys.count)
    ljp_top_line(text, LJP_TOP_LINE_PLAIN,
                 "no labels yet: a program sets them with misc.profile.label");
  else
    table_show(text, w, part, LJP_BY_LABEL,
               keys.list[w->query.label % keys.count].key,
               ljp_top_measure(part));
  free(keys.list);
}

void ljp_top_table(struct ljp_top_text *text, const struct ljp_worker *w,
                   struct ljp_profile *part)
{
  static const enum ljp_by by[] = {
      [LJP_TOP_FUNCTIONS] = LJP_BY_FUNCTION, [LJP_TOP_LINES] = LJP_BY_LINE,
      [LJP_TOP_STACKS] = LJP_BY_STACK,       [LJP_TOP_SITES] = LJP_BY_LINE,
      [LJP_TOP_THREADS] = LJP_BY_THREAD,     [LJP_TOP_VMS] = LJP_BY_VM,
  };
  unsigned view = w->query.view;
  if (view == LJP_TOP_LABELS) {
    table_labels(text, w, part);
    return;
  }
  table_show(text, w, part, by[view], 0,
             view == LJP_TOP_SITES ? LJP_MEASURE_ALLOC : ljp_top_measure(part));
}

void ljp_top_states(struct ljp_top_text *text, const struct ljp_worker *w,
                    struct ljp_profile *part)
{
  table_show(text, w, part, LJP_BY_STATE, 0, ljp_top_measure(part));
}
