/*
** The page of `ljprof flame`: its data is exactly what was put in, to the sample
** and to the byte, with any names.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/profile.h"
#include "test/support/json.h"
#include "tools/page/column.h"
#include "tools/page/svg.h"
#include "tools/page/tree.h"
#include "tools/page/html.h"
#include "tools/page/viewer.h"

struct text {
  char *data;
  size_t len, room;
};

static void take(void *ctx, const char *data, size_t len)
{
  struct text *t = ctx;
  if (t->room - t->len < len + 1) {
    t->room = (t->len + len + 1) * 2;
    t->data = realloc(t->data, t->room);
    assert_non_null(t->data);
  }
  memcpy(t->data + t->len, data, len);
  t->len += len;
  t->data[t->len] = 0;
}

static struct ljp_print out;

static void begin(struct text *text)
{
  *text = (struct text){0};
  ljp_print_begin(&out, -1);
  out.sink = take;
  out.ctx = text;
}

static struct ljp_str str(const char *s)
{
  return ljp_str(s, strlen(s));
}

/* An independent decoder, written from doc/reference/page-data.md: the n-th
** number of the first column "name" after from. */
struct numbers {
  const char *at;
  uint64_t last;
  unsigned bits, have;
};

static struct numbers column_of(const char *json, const char *name)
{
  char wanted[64];
  snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
  const char *at = strstr(json, wanted);
  assert_non_null(at);
  return (struct numbers){.at = at + strlen(wanted)};
}

static unsigned next_byte(struct numbers *n)
{
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (n->have < 8) {
    const char *digit = strchr(digits, *n->at);
    assert_non_null(digit);
    n->at++;
    n->bits = n->bits << 6 | (unsigned)(digit - digits);
    n->have += 6;
  }
  n->have -= 8;
  return n->bits >> n->have & 255;
}

static uint64_t next(struct numbers *n)
{
  uint64_t x = 0;
  for (unsigned shift = 0;; shift += 7) {
    unsigned byte = next_byte(n);
    x |= (uint64_t)(byte & 127) << shift;
    if (byte < 128)
      return x;
  }
}

static uint64_t next_sum(struct numbers *n)
{
  return n->last += next(n);
}

static uint64_t next_signed(struct numbers *n)
{
  uint64_t x = next(n);
  return n->last += x >> 1 ^ -(x & 1);
}

static void numbers_come_back_from_a_column(void **state)
{
  (void)state;
  static const uint64_t values[] = {0,   1,     127,      128,
                                    300, 16383, 1u << 31, (1ull << 52) - 1};
  for (unsigned n = 0; n <= 200; n++) {
    struct text t;
    struct ljp_column c;
    begin(&t);
    ljp_column_begin(&c, &out, "x");
    for (unsigned i = 0; i < n; i++)
      ljp_column_put(&c, values[i % 8]);
    ljp_column_end(&c);
    ljp_print_end(&out);
    size_t digits = t.len - strlen(",\"x\":\"\"");
    assert_int_equal(digits % 4, 0);
    struct numbers back = column_of(t.data, "x");
    for (unsigned i = 0; i < n; i++)
      assert_int_equal(next(&back), values[i % 8]);
    while (*back.at == '=')
      back.at++;
    assert_string_equal(back.at, "\"");
    free(t.data);
  }
}

/* Fills two views with rows whose weights are primes. */
static void fill(struct ljp_page *page, unsigned rows)
{
  assert_int_equal(ljp_page_init(page), LJP_OK);
  uint32_t nodes[7], contexts[2];
  nodes[0] = 0;
  for (unsigned i = 1; i < 7; i++) {
    struct ljp_page_frame f = {.name = ljp_page_format(page, "f%u", i % 3),
                               .file = str("app.lua"),
                               .line = i % 3 + 10,
                               .kind = LJP_PAGE_LUA};
    nodes[i] = ljp_page_node(page, nodes[(i - 1) / 2], ljp_page_frame(page, &f),
                             20 + i);
  }
  for (unsigned i = 0; i < 2; i++) {
    struct ljp_page_context c = {.thread = str(i ? "b" : "a")};
    contexts[i] = ljp_page_context(page, &c);
  }
  for (unsigned i = 0; i < rows; i++) {
    /* Out of order, like the blocks of several producers. */
    uint64_t time_ns = (uint64_t)((i * 7919) % rows) * 1000003;
    ljp_page_row(page, LJP_PAGE_VIEW_CPU, time_ns, nodes[1 + i % 6],
                 contexts[i % 2], 1, 1000 + i % 13);
    ljp_page_row(page, LJP_PAGE_VIEW_ALLOC, time_ns, nodes[1 + i % 5],
                 contexts[0], 3, 8 * (i % 17));
  }
  page->title = str("a.ljp");
  assert_int_equal(page->failed, LJP_OK);
}

static struct text html(struct ljp_page *page)
{
  struct text t;
  begin(&t);
  ljp_page_html(page, &out);
  ljp_print_end(&out);
  return t;
}

/* The data alone, terminated. */
static char *data_of(struct text *t)
{
  char *data = t->data + ljp_viewer_before_bytes;
  t->data[t->len - ljp_viewer_behind_bytes] = 0;
  return data;
}

static void every_row_is_in_the_page(void **state)
{
  (void)state;
  for (unsigned rows = 1; rows <= 3000; rows = rows * 3 + 1) {
    struct ljp_page page;
    fill(&page, rows);
    struct text t = html(&page);
    char *json = data_of(&t);
    assert_true(json_valid(json, strlen(json)));
    uint64_t sums[2][2] = {{0}};
    for (int v = 0; v < 2; v++) {
      char *view = strstr(json, v ? "\"id\":\"alloc\"" : "\"id\":\"cpu\"");
      assert_non_null(view);
      char *n = strstr(view, "\"rows\":");
      unsigned long count = strtoul(n + 7, NULL, 10);
      struct numbers tick = column_of(view, "tick");
      struct numbers node = column_of(view, "node");
      struct numbers weight = column_of(view, "weight");
      /* Without a column of counts each row counts once. */
      char *end = strchr(view, '}'), *counts = strstr(view, "\"count\":");
      bool counted = counts && counts < end;
      struct numbers many =
          counted ? column_of(view, "count") : (struct numbers){0};
      uint64_t last = 0;
      for (unsigned long i = 0; i < count; i++) {
        uint64_t t_now = next_sum(&tick);
        assert_true(t_now >= last);
        last = t_now;
        assert_true(next_signed(&node) < page.node_count);
        sums[v][0] += counted ? next(&many) : 1;
        sums[v][1] += next(&weight);
      }
    }
    uint64_t cpu = 0, bytes = 0;
    for (unsigned i = 0; i < rows; i++) {
      cpu += 1000 + i % 13;
      bytes += 8 * (i % 17);
    }
    assert_int_equal(sums[0][0], rows);
    assert_int_equal(sums[0][1], cpu);
    assert_int_equal(sums[1][0], 3 * rows);
    assert_int_equal(sums[1][1], bytes);
    free(t.data);
    ljp_page_fini(&page);
  }
}

static void leaks_have_the_slices_of_their_nodes(void **state)
{
  /* Of the nodes 1 to 3, in each context. */
  static const uint64_t slices[][2] = {
      {1, UINT64_C(1) << 63}, {UINT64_MAX, 0}, {0, UINT64_C(0x1fffffff8)}};
  (void)state;
  struct ljp_page page;
  fill(&page, 1);
  for (uint32_t i = 0; i < 6; i++)
    ljp_page_leak(&page, 1 + i % 3, i / 3, LJP_OBJECT, 7, slices[i % 3][i / 3]);
  struct text t = html(&page);
  char *json = data_of(&t);
  assert_true(json_valid(json, strlen(json)));
  char *view = strstr(json, "\"id\":\"leaks\"");
  assert_non_null(view);
  assert_non_null(strstr(view, "\"rows\":6,"));
  assert_non_null(strstr(view, ",\"grows\":8,"));
  struct numbers node = column_of(view, "node");
  struct numbers two = column_of(view, "slices");
  for (unsigned i = 0; i < 6; i++) {
    const uint64_t *of = slices[next_signed(&node) - 1];
    uint64_t low = next(&two);
    assert_int_equal(low | next(&two) << 32, of[0] | of[1]);
  }
  /* No other view has any. */
  assert_null(strstr(strstr(view, "\"slices\":") + 1, "\"slices\":"));
  *view = '\0';
  assert_null(strstr(json, "\"slices\":"));
  free(t.data);
  ljp_page_fini(&page);
}

static void equal_frames_nodes_and_contexts_are_stored_once(void **state)
{
  (void)state;
  struct ljp_page page;
  fill(&page, 1);
  assert_int_equal(page.frame_count, 1 + 3);
  assert_int_equal(page.node_count, 1 + 6);
  struct ljp_page_frame f = page.frames[1];
  assert_int_equal(ljp_page_frame(&page, &f), 1);
  f.kind = LJP_PAGE_JIT;
  assert_int_equal(ljp_page_frame(&page, &f), 4);
  f.line++;
  assert_int_equal(ljp_page_frame(&page, &f), 5);
  assert_int_equal(ljp_page_node(&page, 0, 1, page.nodes[1].line), 1);
  assert_int_equal(ljp_page_node(&page, 0, 1, 999), 7);
  /* Enough to make the indexes grow. */
  for (uint32_t i = 0; i < 5000; i++)
    assert_int_equal(ljp_page_node(&page, 0, 2, 5000 + i), 8 + i);
  for (uint32_t i = 0; i < 5000; i++)
    assert_int_equal(ljp_page_node(&page, 0, 2, 5000 + i), 8 + i);
  ljp_page_fini(&page);
}

static void no_name_can_end_the_data(void **state)
{
  (void)state;
  static const char evil[] = "</script><!--\xff\"\\\x01\xe2\x80\xa8";
  struct ljp_page page;
  assert_int_equal(ljp_page_init(&page), LJP_OK);
  struct ljp_page_frame f = {.name = ljp_str(evil, sizeof evil - 1),
                             .file = ljp_str(evil, sizeof evil - 1),
                             .module = ljp_str(evil, sizeof evil - 1)};
  struct ljp_page_context c = {.thread = f.name, .vm = f.name, .state = f.name};
  uint32_t node = ljp_page_node(&page, 0, ljp_page_frame(&page, &f), 1);
  ljp_page_row(&page, LJP_PAGE_VIEW_CPU, 0, node, ljp_page_context(&page, &c),
               1, 1);
  ljp_page_mark(&page, 1, f.name);
  ljp_page_notice(&page, true, f.name);
  ljp_page_fact(&page, "x", f.name);
  ljp_page_point(&page, f.name, 1, 2);
  page.title = page.subtitle = f.name;
  struct text t = html(&page);
  char *json = data_of(&t);
  assert_true(json_valid(json, strlen(json)));
  assert_null(strchr(json, '<'));
  unsigned seen = 0;
  for (char *p = json; (p = strstr(p, "\\u003c/script>\\u003c!--\\ufffd")); p++)
    seen++;
  assert_int_equal(seen, 10);
  free(t.data);
  ljp_page_fini(&page);
}

static void ticks_grow_when_there_are_too_many_rows(void **state)
{
  (void)state;
  struct ljp_rows rows;
  ljp_rows_init(&rows);
  const unsigned many = LJP_ROWS_MOST > 100000 ? 3000017 : 30011;
  uint64_t weight = 0;
  for (unsigned i = 0; i < many; i++) {
    weight += i % 101;
    assert_int_equal(
        ljp_rows_add(&rows, (uint64_t)i * LJP_ROWS_TICK_NS, 1, 2, 1, i % 101),
        LJP_OK);
  }
  ljp_rows_finish(&rows, 1);
  assert_true(rows.count <= LJP_ROWS_MOST);
  assert_true(rows.tick_ns > LJP_ROWS_TICK_NS);
  uint64_t count = 0, sum = 0;
  for (size_t i = 0; i < rows.count; i++) {
    count += rows.rows[i].count;
    sum += rows.rows[i].weight;
    assert_true(!i || rows.rows[i].tick > rows.rows[i - 1].tick);
  }
  assert_int_equal(count, many);
  assert_int_equal(sum, weight);
  /* Counts and times beyond 32 bits. */
  assert_int_equal(ljp_rows_add(&rows, UINT64_MAX, 1, 2, UINT64_C(1) << 33, 7),
                   LJP_OK);
  count = 0;
  for (size_t i = 0; i < rows.count; i++)
    count += rows.rows[i].count;
  assert_int_equal(count, many + (UINT64_C(1) << 33));
  size_t before = rows.count;
  assert_int_equal(ljp_rows_add(&rows, 0, 7, 7, UINT64_C(1) << 60, 0), LJP_OK);
  assert_int_equal(rows.count, before + 1);
  ljp_rows_fini(&rows);
}

static void ticks_are_round(void **state)
{
  (void)state;
  uint64_t tick = LJP_ROWS_TICK_NS;
  static const uint64_t wanted[] = {20, 50, 100, 200, 500, 1000, 2000};
  for (unsigned i = 0; i < 7; i++) {
    tick = ljp_rows_next_tick(tick);
    assert_int_equal(tick, wanted[i] * 1000);
  }
}

static void a_long_curve_keeps_its_extremes(void **state)
{
  (void)state;
  struct ljp_page page;
  assert_int_equal(ljp_page_init(&page), LJP_OK);
  for (unsigned i = 0; i < 100003; i++)
    ljp_page_point(&page, str("VM 1"), i,
                   i == 70001   ? 999983
                   : i == 31337 ? 3
                                : 1000 + i % 7);
  assert_int_equal(page.curve_count, 1);
  assert_in_range(page.curves[0].count, 1000, 20000);
  uint64_t low = UINT64_MAX, high = 0, last = 0;
  for (size_t i = 0; i < page.curves[0].count; i++) {
    const struct ljp_page_point *p = &page.curves[0].points[i];
    assert_true(p->time_ns >= last);
    last = p->time_ns;
    low = p->value < low ? p->value : low;
    high = p->value > high ? p->value : high;
  }
  assert_int_equal(low, 3);
  assert_int_equal(high, 999983);
  ljp_page_fini(&page);
}

static void many_gc_phases_stay_few_and_in_order(void **state)
{
  (void)state;
  struct ljp_page page;
  assert_int_equal(ljp_page_init(&page), LJP_OK);
  for (uint64_t i = 0; i < 200003; i++)
    ljp_page_gc(&page, i * 1000, i % 1009 ? 400 : 5000000, i % 5 + 1);
  assert_in_range(page.gc_count, 1000, 20000);
  for (size_t i = 1; i < page.gc_count; i++)
    assert_true(page.gcs[i].start_ns >= page.gcs[i - 1].start_ns);
  for (uint64_t i = 0; i < 50000; i++) /* Long and overlapping. */
    ljp_page_gc(&page, i, UINT64_MAX / 2, 1);
  assert_in_range(page.gc_count, 1, 20000);
  ljp_page_fini(&page);
}

static void the_tree_adds_up_and_puts_the_heaviest_first(void **state)
{
  (void)state;
  struct ljp_page page;
  struct ljp_page_tree tree;
  fill(&page, 1009);
  assert_int_equal(ljp_page_tree_init(&tree, &page, LJP_PAGE_VIEW_CPU), LJP_OK);
  uint64_t self = 0, all = 0;
  for (unsigned i = 0; i < 1009; i++)
    all += 1000 + i % 13;
  assert_int_equal(tree.nodes[0].total, all);
  for (uint32_t i = 0; i < tree.count; i++) {
    const struct ljp_page_branch *b = &tree.nodes[i];
    uint64_t below = b->self, last = UINT64_MAX;
    self += b->self;
    for (uint32_t c = b->first; c; c = tree.nodes[c].next) {
      assert_int_equal(tree.nodes[c].parent, i);
      assert_int_equal(tree.nodes[c].start, b->start + below - b->self);
      assert_true(tree.nodes[c].total <= last);
      last = tree.nodes[c].total;
      below += tree.nodes[c].total;
    }
    assert_int_equal(below, b->total);
  }
  assert_int_equal(self, all);
  ljp_page_tree_fini(&tree);
  ljp_page_fini(&page);
}

static void a_drawing_escapes_names_and_says_what_it_leaves_out(void **state)
{
  (void)state;
  struct ljp_page page;
  struct text t;
  assert_int_equal(ljp_page_init(&page), LJP_OK);
  struct ljp_page_frame f = {.name = str("<b>&\"\x01\xff"), .kind = LJP_PAGE_C};
  uint32_t node = ljp_page_node(&page, 0, ljp_page_frame(&page, &f), 0);
  ljp_page_row(&page, LJP_PAGE_VIEW_CPU, 0, node, 0, 1, 1000000);
  /* The function below itself: one narrow box for all lines. */
  for (uint32_t i = 1; i <= 19; i++)
    ljp_page_row(&page, LJP_PAGE_VIEW_CPU, 0,
                 ljp_page_node(&page, node, ljp_page_frame(&page, &f), i), 0, 1,
                 1);
  page.title = str("x < y");
  ljp_page_notice(&page, false, str("3 & more were lost"));
  begin(&t);
  assert_int_equal(ljp_page_svg(&page, LJP_PAGE_VIEW_CPU, "ns", &out), LJP_OK);
  ljp_print_end(&out);
  assert_non_null(strstr(t.data, "<title>&#60;b&#62;&#38;&#34;\xef\xbf\xbd\xef"
                                 "\xbf\xbd&#10;1.00 ms, 100.0 %"));
  assert_non_null(strstr(t.data, ">x &#60; y</text>"));
  assert_non_null(strstr(t.data, "1 boxes too narrow to draw"));
  assert_non_null(strstr(t.data, "3 &#38; more were lost"));
  assert_null(strstr(t.data, "<b>"));
  free(t.data);
  ljp_page_fini(&page);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_come_back_from_a_column),
      cmocka_unit_test(every_row_is_in_the_page),
      cmocka_unit_test(leaks_have_the_slices_of_their_nodes),
      cmocka_unit_test(equal_frames_nodes_and_contexts_are_stored_once),
      cmocka_unit_test(no_name_can_end_the_data),
      cmocka_unit_test(ticks_grow_when_there_are_too_many_rows),
      cmocka_unit_test(ticks_are_round),
      cmocka_unit_test(a_long_curve_keeps_its_extremes),
      cmocka_unit_test(many_gc_phases_stay_few_and_in_order),
      cmocka_unit_test(the_tree_adds_up_and_puts_the_heaviest_first),
      cmocka_unit_test(a_drawing_escapes_names_and_says_what_it_leaves_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
