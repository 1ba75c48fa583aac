/*
** Prints the groups as a table, largest first.
*/
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "tools/report/groups.h"

/* What some rows have in addition, by group. NULL: none has. */
struct extras {
  struct ljp_site_sums *sites;
  struct ljp_caller *callers;
  struct ljp_holder *holders;
};

static const struct ljp_group_value *table_sort_values;

static int table_compare(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct ljp_group_value *x = &table_sort_values[i],
                               *y = &table_sort_values[k];
  if (ljp_report_grows(&x->self) != ljp_report_grows(&y->self))
    return ljp_report_grows(&x->self) ? -1 : 1;
  if (x->self.weight != y->self.weight)
    return x->self.weight > y->self.weight ? -1 : 1;
  if (x->self.count != y->self.count)
    return x->self.count > y->self.count ? -1 : 1;
  if (x->total.weight != y->total.weight)
    return x->total.weight > y->total.weight ? -1 : 1;
  if (x->total.count != y->total.count)
    return x->total.count > y->total.count ? -1 : 1;
  return i < k ? -1 : 1;
}

/* Adds the parts of a frame's name to a JSON row. */
static void table_json_frame(const struct ljp_report *r, uint32_t frame)
{
  const struct ljp_profile_frame *f = &r->p->frames[frame];
  struct ljp_print *out = r->out;
  char text[4096];
  size_t n = ljp_frame_function_text(r->p, frame, text, sizeof text);
  ljp_print_str(out, ",\"function\":");
  ljp_print_json(out, ljp_str(text, n < sizeof text ? n : sizeof text - 1));
  ljp_print_format(out, ",\"kind\":\"%s\"", ljp_profile_kind_text(f->kind));
  if (f->file) {
    ljp_print_str(out, ",\"file\":");
    ljp_print_json(out, ljp_profile_str(r->p, f->file));
  }
  if (f->first_line)
    ljp_print_format(out, ",\"first_line\":%" PRIu32, f->first_line);
  if (f->line && (r->by == LJP_BY_LINE || r->by == LJP_BY_STACK))
    ljp_print_format(out, ",\"line\":%" PRIu32, f->line);
  if (f->module) {
    ljp_print_str(out, ",\"module\":");
    ljp_print_json(out, ljp_profile_str(r->p, r->p->modules[f->module].path));
  }
}

/* Whether rows say in how many parts of the session the memory came. */
static bool table_has_times(const struct ljp_report *r)
{
  return r->select.measure == LJP_MEASURE_LEAKS && !r->p->recorded_by;
}

static size_t table_frame_text(const struct ljp_report *r, uint32_t node,
                               char *text, size_t room)
{
  unsigned how = r->lines ? LJP_NAME_LINES | LJP_NAME_C_LINES : 0;
  size_t n = ljp_frame_name(r->p, r->p->nodes[node].frame, how, text, room);
  return n < room ? n : room - 1;
}

static void table_json_row(const struct ljp_report *r,
                           const struct ljp_groups *groups,
                           const struct extras *more, uint32_t group)
{
  struct ljp_print *out = r->out;
  char text[4096];
  ljp_group_name(r, groups, group, text, sizeof text);
  ljp_print_str(out, "{\"name\":");
  ljp_print_json(out, ljp_str(text, strlen(text)));
  ljp_print_str(out, ",");
  ljp_json_value(r, "self", &groups->values[group].self);
  if (ljp_by_of_frame(r->by)) {
    ljp_print_str(out, ",");
    ljp_json_value(r, "total", &groups->values[group].total);
  }
  if (more->sites)
    ljp_report_json_site(r, &more->sites[group]);
  if (more->callers && more->callers[group].weight) {
    ljp_function_name(r->p, more->callers[group].function, text, sizeof text);
    ljp_print_str(out, ",\"caller\":");
    ljp_print_json(out, ljp_str(text, strlen(text)));
    ljp_print_format(out, ",\"caller_share\":%.4f",
                     (double)more->callers[group].weight /
                         (double)groups->values[group].self.weight);
  }
  if (table_has_times(r))
    ljp_print_format(out, ",\"times\":%d",
                     __builtin_popcountll(groups->values[group].self.slices));
  if (more->holders && more->holders[group].text) {
    const struct ljp_holder *holder = &more->holders[group];
    ljp_print_str(out, ",\"holder\":");
    ljp_print_json(out, ljp_str(holder->text, strlen(holder->text)));
    ljp_print_format(out, ",\"holder_share\":%.4f", holder->share);
  }
  if (r->by == LJP_BY_FUNCTION || r->by == LJP_BY_LINE)
    table_json_frame(r, groups->first[group]);
  if (r->by == LJP_BY_STACK) {
    ljp_print_str(out, ",\"stack\":["); /* Leaf first. */
    for (uint32_t n = groups->first[group]; n; n = r->p->nodes[n].parent) {
      size_t len = table_frame_text(r, n, text, sizeof text);
      ljp_print_str(out, n == groups->first[group] ? "" : ",");
      ljp_print_json(out, ljp_str(text, len));
    }
    ljp_print_str(out, "]");
  }
  ljp_print_str(out, "}");
}

/* Prints the bounds of an estimate. A group without a self has no estimate. */
static void table_text_bounds(const struct ljp_report *r,
                              const struct ljp_value *value)
{
  struct ljp_bounds bounds = ljp_value_bytes(r, value);
  char low[24] = "-", high[24] = "-";
  if (value->weight) {
    ljp_bound_amount(r, bounds.low, low);
    ljp_bound_amount(r, ceil(bounds.high), high);
  }
  ljp_print_format(r->out, " %10s %10s", low, high);
}

/* Below a row: what holds it. */
static void table_text_holder(const struct ljp_report *r,
                              const struct ljp_holder *holder, int indent)
{
  if (!holder->text)
    return;
  ljp_print_format(r->out, "%*sheld by ", indent, "");
  ljp_print_safe(r->out, ljp_str(holder->text, strlen(holder->text)));
  ljp_print_format(r->out, " (%.0f %%)\n", 100 * holder->share);
}

static void table_text_row(const struct ljp_report *r,
                           const struct ljp_groups *groups,
                           const struct extras *more, uint32_t group)
{
  const struct ljp_group_value *v = &groups->values[group];
  struct ljp_print *out = r->out;
  char amount[24], name[4096];
  ljp_amount(r, v->self.weight, amount);
  ljp_print_format(out, "%10s %6.2f%%", amount, ljp_percent(r, &v->self));
  if (ljp_has_counts(r)) {
    ljp_count_amount(r, v->self.count, amount);
    ljp_print_format(out, " %10s", amount);
  }
  if (ljp_by_of_frame(r->by)) {
    ljp_amount(r, v->total.weight, amount);
    ljp_print_format(out, " %10s %6.2f%%", amount, ljp_percent(r, &v->total));
  }
  if (ljp_is_estimated(r))
    table_text_bounds(r, &v->self);
  if (more->sites)
    ljp_report_text_site(r, &more->sites[group]);
  if (table_has_times(r))
    ljp_print_format(out, " %5d/64", __builtin_popcountll(v->self.slices));
  ljp_group_name(r, groups, group, name, sizeof name);
  ljp_print_str(out, "  ");
  ljp_print_safe(out, ljp_str(name, strlen(name)));
  if (more->callers && more->callers[group].weight) {
    const struct ljp_caller *caller = &more->callers[group];
    ljp_function_name(r->p, caller->function, name, sizeof name);
    ljp_print_format(out, "  (%.0f %% for ",
                     100 * (double)caller->weight / (double)v->self.weight);
    ljp_print_safe(out, ljp_str(name, strlen(name)));
    ljp_print_str(out, ")");
  }
  ljp_print_str(out, "\n");
  if (r->by != LJP_BY_STACK) {
    if (more->holders)
      table_text_holder(r, &more->holders[group], 10);
    return;
  }
  int indent = table_has_times(r) ? 42 : ljp_has_counts(r) ? 33 : 22;
  if (ljp_is_estimated(r))
    indent += 22;
  for (uint32_t n = r->p->nodes[groups->first[group]].parent; n;
       n = r->p->nodes[n].parent) {
    size_t len = table_frame_text(r, n, name, sizeof name);
    ljp_print_format(out, "%*s", indent, "");
    ljp_print_safe(out, ljp_str(name, len));
    ljp_print_str(out, "\n");
  }
  if (more->holders)
    table_text_holder(r, &more->holders[group], indent);
}

static void table_text_head(const struct ljp_report *r)
{
  bool memory = ljp_measure_is_memory(r->select.measure);
  ljp_print_format(r->out, "%10s %7s", "self", "%");
  if (ljp_has_counts(r))
    ljp_print_format(r->out, " %10s", memory ? "objects" : "samples");
  if (ljp_by_of_frame(r->by))
    ljp_print_format(r->out, " %10s %7s", "total", "%");
  if (ljp_is_estimated(r))
    ljp_print_format(r->out, " %10s %10s", "at least", "at most");
  if (ljp_report_has_sites(r))
    ljp_print_format(r->out, " %10s %10s %10s", "reallocs", "frees", "freed");
  if (table_has_times(r))
    ljp_print_format(r->out, " %8s", "times");
  const char *by = r->by_text ? r->by_text : ljp_by_text(r->by);
  ljp_print_str(r->out, "  ");
  ljp_print_safe(r->out, ljp_str(by, strlen(by)));
  ljp_print_str(r->out, "\n");
}

static bool table_is_empty(const struct ljp_groups *groups,
                           const struct extras *more, uint32_t group)
{
  const struct ljp_value *total = &groups->values[group].total;
  return !total->count && !total->weight &&
         !(more->sites &&
           (more->sites[group].frees || more->sites[group].reallocs));
}

/* Whether the row of a function that only calls others can be spared: of
** memory, the others' rows say what there is to know. */
static bool table_is_caller(const struct ljp_report *r,
                            const struct ljp_groups *groups,
                            const struct extras *more, uint32_t group)
{
  const struct ljp_value *self = &groups->values[group].self;
  return !r->json && r->top && ljp_measure_is_memory(r->select.measure) &&
         !self->count && !self->weight &&
         !(more->sites &&
           (more->sites[group].frees || more->sites[group].reallocs));
}

/* Prints how much the rows have that --top leaves out. */
static void table_text_rest(const struct ljp_report *r,
                            const struct ljp_value *rest, uint32_t count)
{
  char amount[24];
  ljp_amount(r, rest->weight, amount);
  ljp_print_format(r->out, "%10s %6.2f%%", amount, ljp_percent(r, rest));
  if (ljp_has_counts(r)) {
    ljp_count_amount(r, rest->count, amount);
    ljp_print_format(r->out, " %10s", amount);
  }
  ljp_print_format(r->out, "  in %u more (--top 0 shows all)\n", count);
}

static bool table_print(const struct ljp_report *r,
                        const struct ljp_groups *groups,
                        const struct extras *more)
{
  uint32_t *order = malloc(((size_t)groups->count + 1) * sizeof *order);
  uint32_t shown = 0, count = 0, callers = 0;
  struct ljp_value rest = {0};
  if (!order)
    return false;
  for (uint32_t i = 0; i < groups->count; i++)
    if (!table_is_empty(groups, more, i)) {
      if (table_is_caller(r, groups, more, i))
        callers++;
      else
        order[count++] = i;
    }
  table_sort_values = groups->values;
  qsort(order, count, sizeof *order, table_compare);
  if (!r->json)
    table_text_head(r);
  for (uint32_t i = 0; i < count; i++) {
    const struct ljp_value *self = &groups->values[order[i]].self;
    if (r->top && shown == r->top) {
      ljp_value_add(&rest, self);
      continue;
    }
    if (r->json) {
      ljp_print_str(r->out, shown ? ",\n" : "\n");
      table_json_row(r, groups, more, order[i]);
    } else {
      table_text_row(r, groups, more, order[i]);
    }
    shown++;
  }
  free(order);
  if (!r->json && shown < count)
    table_text_rest(r, &rest, count - shown);
  if (callers)
    ljp_print_format(r->out,
                     "%10s  %u more only call%s these (--top 0 shows all)\n",
                     "", callers, callers == 1 ? "s" : "");
  return true;
}

bool ljp_report_table(const struct ljp_report *r)
{
  struct extras more = {0};
  struct ljp_groups groups;
  if (!ljp_groups_make(r, &groups))
    return false;
  bool callers = r->by == LJP_BY_FUNCTION && r->p->options.lua_view;
  bool ok = (!ljp_report_has_sites(r) ||
             (more.sites = ljp_report_sites(r, &groups))) &&
            (!callers || (more.callers = ljp_report_callers(r, &groups))) &&
            (!ljp_report_has_holders(r) ||
             (more.holders = ljp_report_holders(r, &groups))) &&
            table_print(r, &groups, &more);
  ljp_report_holders_free(more.holders, groups.count);
  ljp_groups_fini(&groups);
  free(more.sites);
  free(more.callers);
  return ok;
}
