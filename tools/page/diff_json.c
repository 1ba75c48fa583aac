/*
** Prints the JSON of `ljprof diff` (see doc/reference/json.md).
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "parsers/base/whole.h"
#include "tools/page/diff.h"
#include "tools/shared/show.h"

/* Values are whole nanoseconds or bytes (per second). */
static void diff_json_value(struct ljp_shower *show, const char *name,
                            const struct ljp_diff_value *v,
                            const struct ljp_diff_value *whole)
{
  char key[40];
#define LJP_MEMBER(suffix, x)                                                  \
  snprintf(key, sizeof key, "%s_" suffix, name);                               \
  ljp_show_signed(show, key, ljp_whole_signed(round(x)));
  LJP_MEMBER("before", v->value[0])
  LJP_MEMBER("after", v->value[1])
  LJP_MEMBER("change", v->value[1] - v->value[0])
  LJP_MEMBER("error", ljp_diff_error(v))
#undef LJP_MEMBER
  snprintf(key, sizeof key, "%s_verdict", name);
  ljp_show_listed(show, key, ljp_diff_verdict(v, whole), 0);
}

static void diff_json_frame(struct ljp_shower *show,
                            const struct ljp_page *page, uint32_t frame)
{
  static const char *const kinds[] = {
#define LJP_X(key, colour, name) name,
      LJP_PAGE_KIND_LIST(LJP_X)
#undef LJP_X
  };
  const struct ljp_page_frame *f = &page->frames[frame];
  ljp_show_string(show, "name", f->name);
  ljp_show_string(show, "file", f->file);
  ljp_show_number(show, "line", f->line);
  ljp_show_string(show, "module", f->module);
  ljp_show_listed(show, "kind", kinds[f->kind], 0);
}

static void diff_json_side(struct ljp_shower *show, const struct ljp_diff *d,
                           int side, int view)
{
  const struct ljp_diff_side *s = &d->sides[side];
  char key[40];
  const char *when = side ? "after" : "before";
#define LJP_KEY(suffix) (snprintf(key, sizeof key, "%s_" suffix, when), key)
  ljp_show_string(show, LJP_KEY("file"), s->file);
  if (!s->untimed)
    ljp_show_number(show, LJP_KEY("duration_ns"),
                    ljp_diff_whole(s->seconds * 1e9));
  ljp_show_number(show, LJP_KEY("samples"), s->samples);
  ljp_show_number(show, LJP_KEY("alloc_events"), s->events);
  ljp_show_number(show, LJP_KEY("value"), ljp_diff_whole(d->sums[view][side]));
#undef LJP_KEY
}

/* What both sides measured, whatever is compared. */
static void diff_json_totals(struct ljp_shower *show, const struct ljp_diff *d)
{
  ljp_show_list(show, "views");
  for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
    const struct ljp_diff_value *total = &d->totals[v];
    if (!(total->value[0] > 0 || total->value[1] > 0))
      continue;
    ljp_show_item(show);
    ljp_show_listed(show, "view", ljp_diff_views[v].id, 0);
    ljp_show_listed(show, "unit", ljp_diff_unit(d, v), 0);
    if (!ljp_diff_total_lacks(d, v)) {
      diff_json_value(show, "total", total, total);
    } else { /* What is there in this unit. */
      const char *unit = ljp_diff_unit(d, v);
      for (int side = 0; side < 2; side++)
        if (d->sides[side].holds[v] &&
            strcmp(ljp_diff_unit_of(d, v, side), unit) == 0)
          ljp_show_number(show, side ? "total_after" : "total_before",
                          ljp_diff_whole(total->value[side]));
    }
    ljp_show_item_end(show);
  }
  ljp_show_list_end(show);
}

void ljp_diff_json(const struct ljp_diff *d, enum ljp_page_view view,
                   const struct ljp_diff_lists *lists, struct ljp_print *out)
{
  struct ljp_shower show = {.out = out, .json = true, .first = true};
  ljp_print_str(out, "{\"totals\":{");
  ljp_show_listed(&show, "view", ljp_diff_views[view].id, 0);
  ljp_show_listed(&show, "unit", ljp_diff_unit(d, view), 0);
  ljp_show_bool(&show, "per_second", ljp_diff_per_second(d, view));
  ljp_show_bool(&show, "share", d->by == LJP_DIFF_SHARE);
  ljp_show_listed(&show, "compared", ljp_diff_by_key(d->by), 0);
  if (d->why)
    ljp_show_listed(&show, "compared_because", d->why, 0);
  for (int side = 0; side < 2; side++)
    diff_json_side(&show, d, side, view);
  diff_json_totals(&show, d);
  ljp_print_str(out, "},\"notices\":[");
  for (size_t i = 0; i < d->page.notice_count; i++) {
    ljp_print_str(out, i ? "," : "");
    ljp_print_json(out, d->page.notices[i].text);
  }
  ljp_print_str(out, "],\"rows\":[");
  for (size_t i = 0; i < lists->function_count; i++) {
    show.first = i == 0;
    ljp_show_item(&show);
    diff_json_frame(&show, &d->page, lists->functions[i].frame);
    const struct ljp_diff_function *f = &lists->functions[i];
    diff_json_value(&show, "self", &f->self, &f->total);
    diff_json_value(&show, "total", &f->total, &f->total);
    ljp_show_item_end(&show);
  }
  ljp_print_str(out, "],\"stacks\":[");
  for (size_t i = 0; i < lists->stack_count; i++) {
    show.first = i == 0;
    ljp_show_item(&show);
    diff_json_value(&show, "self", &lists->stacks[i].self,
                    &lists->stacks[i].self);
    ljp_show_list(&show, "frames");
    for (uint32_t at = lists->stacks[i].node; at;
         at = d->page.nodes[at].parent) {
      ljp_show_item(&show);
      diff_json_frame(&show, &d->page, d->page.nodes[at].frame);
      ljp_show_item_end(&show);
    }
    ljp_show_list_end(&show);
    ljp_show_item_end(&show);
  }
  ljp_print_str(out, "]}\n");
}
