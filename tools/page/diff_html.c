/*
** Writes the page of a comparison: each stack has two values. Values are whole
** nanoseconds or bytes per second.
*/
#include <inttypes.h>
#include <math.h>

#include "tools/page/column.h"
#include "tools/page/diff.h"
#include "tools/page/html.h"
#include "tools/shared/units.h"

static bool diff_html_exists(const struct ljp_diff_value *v)
{
  return v->value[0] > 0 || v->value[1] > 0;
}

/* The viewer's numbers are exact up to 2^52 only. */
static uint64_t diff_html_whole(double x)
{
  return x > 0x1p52 ? UINT64_C(1) << 52 : x > 0 ? (uint64_t)llround(x) : 0;
}

/* v: values of n nodes. */
static void diff_html_values(const struct ljp_diff_value *v, size_t n,
                             struct ljp_print *out)
{
  struct ljp_column column;
  size_t rows = 0;
  for (size_t i = 0; i < n; i++)
    rows += diff_html_exists(&v[i]);
  ljp_print_format(out, "\"rows\":%zu", rows);
  ljp_column_begin(&column, out, "node");
  for (size_t i = 0; i < n; i++)
    if (diff_html_exists(&v[i]))
      ljp_column_put_signed(&column, i);
  ljp_column_end(&column);
#define LJP_VALUES(name, member, side)                                         \
  ljp_column_begin(&column, out, name);                                        \
  for (size_t i = 0; i < n; i++)                                               \
    if (diff_html_exists(&v[i]))                                               \
      ljp_column_put(&column, diff_html_whole(v[i].member[side]));             \
  ljp_column_end(&column);
  LJP_VALUES("other", value, 0)
  LJP_VALUES("weight", value, 1)
  LJP_VALUES("other_variance", variance, 0)
  LJP_VALUES("weight_variance", variance, 1)
#undef LJP_VALUES
}

static void diff_html_total(struct ljp_diff *d, int view)
{
  static struct ljp_print text; /* Too large for the stack. */
  const struct ljp_diff_side *s = d->sides;
  const double *total = d->totals[view].value;
  ljp_print_begin(&text, -1);
  for (int side = 0; side < 2; side++) {
    ljp_print_str(&text, side ? " \xe2\x86\x92 " : "");
    if (!s[side].holds[view]) {
      ljp_print_str(&text, "not recorded");
      continue;
    }
    bool estimated = view >= LJP_PAGE_VIEW_ALLOC && s[side].estimated;
    ljp_print_str(&text, estimated ? "~" : "");
    ljp_units_amount(&text, ljp_diff_whole(total[side]),
                     ljp_diff_unit_of(d, view, side));
  }
  if (total[0] > 0 && !ljp_diff_total_lacks(d, view))
    ljp_print_format(&text, " (%+.1f %%)",
                     100 * (total[1] - total[0]) / total[0]);
  ljp_page_fact(&d->page, ljp_diff_views[view].name,
                ljp_page_text(&d->page, ljp_str(text.buf, text.len)));
}

/* What the sides measured, whatever is compared; first what both did. */
static void diff_html_totals(struct ljp_diff *d)
{
  for (int both = 1; both >= 0; both--)
    for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
      const double *total = d->totals[v].value;
      if ((total[0] > 0 || total[1] > 0) && both == !ljp_diff_total_lacks(d, v))
        diff_html_total(d, v);
    }
}

void ljp_diff_html(struct ljp_diff *diff, struct ljp_print *out)
{
  static const struct {
    const char *id, *name, *counts;
  } views[] = {
#define LJP_X(key, id, name, unit, counts) {id, name, counts},
      LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
  };
  struct ljp_page *page = &diff->page;
  bool first = true;
  page->title =
      ljp_page_format(page, "%.*s \xe2\x86\x92 %.*s",
                      (int)diff->sides[0].file.len, diff->sides[0].file.data,
                      (int)diff->sides[1].file.len, diff->sides[1].file.data);
  const char *how = ljp_diff_by_text(diff->by);
  page->subtitle =
      diff->sides[0].untimed || diff->sides[1].untimed
          ? ljp_page_format(
                page, "compared %s",
                diff->by == LJP_DIFF_SHARE ? how : "by numbers of samples")
          : ljp_page_format(page, "%.2f s and %.2f s of recording, compared %s",
                            diff->sides[0].seconds, diff->sides[1].seconds,
                            how);
  diff_html_totals(diff);
  if (page->fact_count)
    page->subtitle =
        ljp_page_format(page, "%.*s %.*s; %.*s", (int)page->facts[0].name.len,
                        page->facts[0].name.data, (int)page->facts[0].value.len,
                        page->facts[0].value.data, (int)page->subtitle.len,
                        page->subtitle.data);
  ljp_page_html_begin(page, out, LJP_ROWS_TICK_NS);
  ljp_print_str(out, ",\"diff\":true,\"views\":[");
  for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
    if (!ljp_diff_has(diff, (enum ljp_page_view)v) ||
        !ljp_diff_comparable(diff, (enum ljp_page_view)v))
      continue;
    bool rate = ljp_diff_per_second(diff, v);
    bool share = diff->by == LJP_DIFF_SHARE && !page->untimed;
    bool time = v == LJP_PAGE_VIEW_CPU || v == LJP_PAGE_VIEW_WALL;
    ljp_print_format(out,
                     "%s{\"id\":\"%s\",\"name\":\"%s\",\"unit\":\"%s\","
                     "\"counts\":\"%s\"",
                     first ? "" : ",", views[v].id, views[v].name,
                     time && (rate || share) ? "share"
                     : rate                  ? "bytes/s"
                                             : ljp_diff_unit(diff, v),
                     views[v].counts);
    if (!time && (diff->sides[0].estimated || diff->sides[1].estimated))
      ljp_print_str(out, ",\"estimated\":true");
    ljp_print_str(out, ",");
    if (diff->native_count) {
      diff_html_values(diff->native[v], diff->native_count, out);
      ljp_print_str(out, ",\"lua\":{");
      diff_html_values(diff->nodes[v], diff->node_count, out);
      ljp_print_str(out, "}");
    } else {
      diff_html_values(diff->nodes[v], diff->node_count, out);
    }
    ljp_print_str(out, "}");
    first = false;
  }
  ljp_print_str(out, "]");
  ljp_page_html_end(out);
}
