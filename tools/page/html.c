/*
** Writes the HTML page: the data, which is JSON with columns of numbers
** (doc/reference/page-data.md), inside the viewer. The data contains no "<", so
** that no name in it can end its script element.
*/
#include "tools/page/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/profile.h"
#include "parsers/stream/labels.h"
#include "src/base/assert.h"
#include "tools/page/column.h"
#include "tools/page/viewer.h"

static void html_member(struct ljp_print *out, const char *name,
                        struct ljp_str s)
{
  ljp_print_format(out, ",\"%s\":", name);
  ljp_print_json_page(out, s);
}

/* Table that stores each string of the frames once. */
struct strings {
  struct ljp_str *list;
  uint32_t count;
  uint32_t *slots;
  size_t mask;
};

static uint32_t html_string_number(struct strings *strings, struct ljp_str s)
{
  uint64_t hash = s.len;
  for (uint32_t i = 0; i < s.len; i++)
    hash = (hash ^ (uint8_t)s.data[i]) * UINT64_C(0x100000001b3);
  size_t at = (hash ^ hash >> 31) & strings->mask;
  for (; strings->slots[at]; at = (at + 1) & strings->mask) {
    struct ljp_str *old = &strings->list[strings->slots[at] - 1];
    if (old->len == s.len && (!s.len || !memcmp(old->data, s.data, s.len)))
      return strings->slots[at] - 1;
  }
  ljp_assert(strings->count < strings->mask);
  strings->list[strings->count] = s;
  strings->slots[at] = ++strings->count;
  return strings->count - 1;
}

static void html_frames(struct ljp_page *page, struct ljp_print *out)
{
  struct strings strings = {0};
  struct ljp_column column;
  size_t n = page->frame_count, size = 1024;
  while (size < n * 6 + 16)
    size *= 2;
  strings.list = malloc((n * 3 + 1) * sizeof *strings.list);
  strings.slots = calloc(size, sizeof *strings.slots);
  strings.mask = size - 1;
  if (!strings.list || !strings.slots) {
    page->failed = LJP_ERR_MEM;
    free(strings.list);
    free(strings.slots);
    return;
  }
  html_string_number(&strings, (struct ljp_str){0});
  ljp_print_format(out, ",\"frames\":{\"n\":%zu", n);
#define LJP_STRINGS(field)                                                     \
  ljp_column_begin(&column, out, #field);                                      \
  for (size_t i = 0; i < n; i++)                                               \
    ljp_column_put(&column,                                                    \
                   html_string_number(&strings, page->frames[i].field));       \
  ljp_column_end(&column);
  LJP_STRINGS(name)
  LJP_STRINGS(file)
  LJP_STRINGS(module)
#undef LJP_STRINGS
  ljp_column_begin(&column, out, "line");
  for (size_t i = 0; i < n; i++)
    ljp_column_put(&column, page->frames[i].line);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "kind");
  for (size_t i = 0; i < n; i++)
    ljp_column_put(&column, page->frames[i].kind);
  ljp_column_end(&column);
  ljp_print_str(out, "},\"strings\":[");
  for (uint32_t i = 0; i < strings.count; i++) {
    ljp_print_str(out, i ? "," : "");
    ljp_print_json_page(out, strings.list[i]);
  }
  ljp_print_str(out, "]");
  free(strings.list);
  free(strings.slots);
}

static void html_nodes(const struct ljp_page *page, struct ljp_print *out)
{
  struct ljp_column column;
  size_t n = page->node_count;
  ljp_print_format(out, ",\"nodes\":{\"n\":%zu", n);
  ljp_column_begin(&column, out, "up");
  for (size_t i = 0; i < n; i++)
    ljp_column_put(&column, i - page->nodes[i].parent);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "frame");
  for (size_t i = 0; i < n; i++)
    ljp_column_put_signed(&column, page->nodes[i].frame);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "line");
  for (size_t i = 0; i < n; i++)
    ljp_column_put(&column, page->nodes[i].line);
  ljp_column_end(&column);
  if (page->lua_nodes) {
    ljp_column_begin(&column, out, "lua");
    for (size_t i = 0; i < n; i++)
      ljp_column_put_signed(&column,
                            i < page->lua_count ? page->lua_nodes[i] : i);
    ljp_column_end(&column);
  }
  ljp_print_str(out, "}");
}

/* objects: counts are in units of 1/LJP_OBJECT. uncounted: there are none. */
static void html_rows(const struct ljp_rows *r, bool objects, bool uncounted,
                      struct ljp_print *out)
{
  struct ljp_column column;
  uint64_t one = objects ? LJP_OBJECT : 1;
  for (size_t i = 0; i < r->count; i++)
    if (r->rows[i].count % one)
      one = 1;        /* Estimates are not whole. */
  bool single = true; /* If all rows have one sample, the column is omitted. */
  for (size_t i = 0; i < r->count; i++)
    single = single && (uncounted || r->rows[i].count == one);
  ljp_print_format(out, ",\"rows\":%zu", r->count);
  if (objects && one == 1)
    ljp_print_format(out, ",\"count_unit\":%u", (unsigned)LJP_OBJECT);
  ljp_column_begin(&column, out, "tick");
  for (size_t i = 0; i < r->count; i++)
    ljp_column_put_sum(&column, r->rows[i].tick);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "node");
  for (size_t i = 0; i < r->count; i++)
    ljp_column_put_signed(&column, r->rows[i].node);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "ctx");
  for (size_t i = 0; i < r->count; i++)
    ljp_column_put(&column, r->rows[i].context);
  ljp_column_end(&column);
  if (!single) {
    ljp_column_begin(&column, out, "count");
    for (size_t i = 0; i < r->count; i++)
      ljp_column_put(&column, r->rows[i].count / one);
    ljp_column_end(&column);
  }
  ljp_column_begin(&column, out, "weight");
  for (size_t i = 0; i < r->count; i++)
    ljp_column_put(&column, r->rows[i].weight);
  ljp_column_end(&column);
}

/* The slices of each row of leaks, as two numbers. */
static void html_slices(const struct ljp_page *page, struct ljp_print *out)
{
  const struct ljp_rows *r = &page->rows[LJP_PAGE_VIEW_LEAK];
  struct ljp_column column;
  ljp_print_format(out, ",\"grows\":%d", LJP_PROFILE_GROWS);
  ljp_column_begin(&column, out, "slices");
  for (size_t i = 0; i < r->count; i++) {
    uint32_t node = r->rows[i].node;
    uint64_t slices = node < page->slice_count ? page->slices[node] : 0;
    ljp_column_put(&column, slices & UINT32_MAX);
    ljp_column_put(&column, slices >> 32);
  }
  ljp_column_end(&column);
}

static void html_views(const struct ljp_page *page, struct ljp_print *out)
{
  static const struct {
    const char *id, *name, *counts;
  } all[] = {
#define LJP_X(key, id, name, unit, counts) {id, name, counts},
      LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
  };
  bool any = false;
  ljp_print_str(out, ",\"views\":[");
  for (int i = 0; i < LJP_PAGE_VIEWS; i++) {
    /* A page needs at least one view, even if the file has no samples. */
    bool needed = !any && i == LJP_PAGE_VIEWS - 1;
    int v = needed && !page->rows[i].count ? LJP_PAGE_VIEW_CPU : i;
    if (!page->rows[v].count && !needed)
      continue;
    ljp_print_format(out, "%s{\"id\":\"%s\",\"name\":\"%s\",\"unit\":\"%s\"",
                     any ? "," : "", all[v].id, all[v].name,
                     ljp_page_unit(page, (enum ljp_page_view)v));
    if (*all[v].counts)
      ljp_print_format(out, ",\"counts\":\"%s\"", all[v].counts);
    bool memory = v != LJP_PAGE_VIEW_CPU && v != LJP_PAGE_VIEW_WALL;
    bool gc = v == LJP_PAGE_VIEW_GC_COST, heap = v > LJP_PAGE_VIEW_GC_COST;
    if (v == LJP_PAGE_VIEW_LEAK || gc || heap || page->untimed)
      ljp_print_str(out, ",\"untimed\":true");
    if (memory && !heap && page->estimated)
      ljp_print_str(out, ",\"estimated\":true");
    html_rows(&page->rows[v], memory && !gc, !*all[v].counts, out);
    if (v == LJP_PAGE_VIEW_LEAK)
      html_slices(page, out);
    ljp_print_str(out, "}");
    any = true;
  }
  ljp_print_str(out, "]");
}

static void html_curves(const struct ljp_page *page, struct ljp_print *out,
                        uint64_t tick_ns)
{
  struct ljp_column column;
  ljp_print_str(out, ",\"series\":[");
  for (size_t c = 0; c < page->curve_count; c++) {
    const struct ljp_page_curve *curve = &page->curves[c];
    uint64_t last = 0; /* Time must not go back, whatever the file says. */
    ljp_print_format(out, "%s{\"n\":%zu", c ? "," : "", curve->count);
    html_member(out, "name", curve->name);
    ljp_column_begin(&column, out, "time");
    for (size_t i = 0; i < curve->count; i++) {
      uint64_t tick = curve->points[i].time_ns / tick_ns;
      last = tick > last ? tick : last;
      ljp_column_put_sum(&column, last);
    }
    ljp_column_end(&column);
    ljp_column_begin(&column, out, "value");
    for (size_t i = 0; i < curve->count; i++)
      ljp_column_put(&column, curve->points[i].value);
    ljp_column_end(&column);
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "]");
}

static int html_by_start(const void *a, const void *b)
{
  const struct ljp_page_gc *x = a, *y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* In thousandths of a tick, because phases are shorter than ticks. */
static void html_gc(struct ljp_page *page, struct ljp_print *out,
                    uint64_t tick_ns)
{
  struct ljp_column column;
  uint64_t unit = tick_ns / 1000;
  if (page->gc_count)
    qsort(page->gcs, page->gc_count, sizeof *page->gcs, html_by_start);
  ljp_print_format(out, ",\"gc\":{\"n\":%zu", page->gc_count);
  ljp_column_begin(&column, out, "start");
  for (size_t i = 0; i < page->gc_count; i++)
    ljp_column_put_sum(&column, page->gcs[i].start_ns / unit);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "length");
  for (size_t i = 0; i < page->gc_count; i++)
    ljp_column_put(&column, page->gcs[i].length_ns / unit);
  ljp_column_end(&column);
  ljp_column_begin(&column, out, "phase");
  for (size_t i = 0; i < page->gc_count; i++)
    ljp_column_put(&column, page->gcs[i].phase);
  ljp_column_end(&column);
  ljp_print_str(out, "}");
}

static void html_sources(const struct ljp_page *page, struct ljp_print *out)
{
  const struct ljp_page_source *last = NULL; /* The previous line written. */
  ljp_print_str(out, ",\"sources\":{");
  for (size_t i = 0; i < page->source_count; i++) {
    const struct ljp_page_source *s = &page->sources[i];
    if (!s->text.len)
      continue;
    if (last && last->file.len == s->file.len &&
        memcmp(last->file.data, s->file.data, s->file.len) == 0) {
      ljp_print_str(out, ",");
    } else {
      ljp_print_str(out, last ? "}," : "");
      ljp_print_json_page(out, s->file);
      ljp_print_str(out, ":{");
    }
    ljp_print_format(out, "\"%" PRIu32 "\":", s->line);
    ljp_print_json_page(out, s->text);
    last = s;
  }
  ljp_print_str(out, last ? "}}" : "}");
}

static void html_labels(struct ljp_print *out, struct ljp_str set)
{
  struct ljp_str key, value;
  const char *before = ",\"labels\":{";
  if (!set.len)
    return;
  for (; ljp_labels_next(&set, &key, &value); before = ",") {
    ljp_print_str(out, before);
    ljp_print_json_page(out, key);
    ljp_print_str(out, ":");
    ljp_print_json_page(out, value);
  }
  ljp_print_str(out, "}");
}

static void html_rest(struct ljp_page *page, struct ljp_print *out,
                      uint64_t tick_ns)
{
  ljp_print_str(out, ",\"contexts\":[");
  for (size_t i = 0; i < page->context_count; i++) {
    ljp_print_str(out, i ? ",{\"thread\":" : "{\"thread\":");
    ljp_print_json_page(out, page->contexts[i].thread);
    html_member(out, "vm", page->contexts[i].vm);
    html_member(out, "state", page->contexts[i].state);
    html_labels(out, page->contexts[i].labels);
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "],\"marks\":[");
  for (size_t i = 0; i < page->mark_count; i++) {
    ljp_print_format(out, "%s[%" PRIu64 ",", i ? "," : "",
                     page->marks[i].time_ns / tick_ns);
    ljp_print_json_page(out, page->marks[i].text);
    ljp_print_str(out, "]");
  }
  ljp_print_str(out, "],\"notices\":[");
  for (size_t i = 0; i < page->notice_count; i++) {
    ljp_print_format(out, "%s{\"level\":\"%s\"", i ? "," : "",
                     page->notices[i].error ? "error" : "warning");
    html_member(out, "text", page->notices[i].text);
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "],\"about\":[");
  for (size_t i = 0; i < page->fact_count; i++) {
    ljp_print_str(out, i ? ",[" : "[");
    ljp_print_json_page(out, page->facts[i].name);
    ljp_print_str(out, ",");
    ljp_print_json_page(out, page->facts[i].value);
    ljp_print_str(out, "]");
  }
  ljp_print_str(out, "]");
}

void ljp_page_html_begin(struct ljp_page *page, struct ljp_print *out,
                         uint64_t tick_ns)
{
  ljp_print_raw(out, (const char *)ljp_viewer_before, ljp_viewer_before_bytes);
  ljp_print_format(out, "{\"tick_ns\":%" PRIu64 ",\"ticks\":%" PRIu64, tick_ns,
                   page->end_ns / tick_ns + 1);
  if (page->untimed)
    ljp_print_str(out, ",\"untimed\":true");
  html_member(out, "title", page->title);
  html_member(out, "subtitle", page->subtitle);
  html_frames(page, out);
  html_nodes(page, out);
  html_curves(page, out, tick_ns);
  html_gc(page, out, tick_ns);
  html_sources(page, out);
  html_rest(page, out, tick_ns);
}

void ljp_page_html_end(struct ljp_print *out)
{
  ljp_print_str(out, "}");
  ljp_print_raw(out, (const char *)ljp_viewer_behind, ljp_viewer_behind_bytes);
}

void ljp_page_html(struct ljp_page *page, struct ljp_print *out)
{
  ljp_page_html_begin(page, out, ljp_page_finish(page));
  html_views(page, out);
  ljp_page_html_end(out);
}
