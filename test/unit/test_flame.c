/*
** ljprof flame and diff: a page and a comparison agree with the profile of the
** same stream, to the sample and to the byte, and a comparison tells change from
** chance.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <math.h>

#include "parsers/profile/frame_name.h"
#include "test/support/encode.h"
#include "test/support/random.h"
#include "tools/page/diff.h"
#include "tools/page/load.h"
#include "tools/page/stacks.h"
#include "tools/page/tree.h"

static struct ljp_page page;
static struct ljp_diff diff;

static struct ljp_profile *load(const char *name)
{
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .points = true};
  char path[600], error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_profile *p;
  snprintf(path, sizeof path, "%s/test/data/%s", LJP_SOURCE_DIR, name);
  if (ljp_profile_load(path, &options, &p, error))
    fail_msg("%s: %s", name, error);
  return p;
}

static uint64_t sum(enum ljp_page_view view, bool weights)
{
  uint64_t s = 0;
  for (size_t i = 0; i < page.rows[view].count; i++)
    s += weights ? page.rows[view].rows[i].weight
                 : page.rows[view].rows[i].count;
  return s;
}

static void a_page_holds_what_the_profile_counts(void **state)
{
  static const char *const names[] = {
      "every-record.ljp", "every-record-zstd.ljp", "killed.ljp",
      "rotated.ljp",      "small-table.ljp",       "vm-closed.ljp"};
  (void)state;
  uint64_t some_slices = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct ljp_profile *p = load(names[i]);
    assert_int_equal(ljp_page_init(&page), LJP_OK);
    assert_int_equal(ljp_page_load(&page, p, names[i]), LJP_OK);
    ljp_page_finish(&page);
    assert_true(p->totals.samples > 0);
    assert_int_equal(sum(LJP_PAGE_VIEW_CPU, false), p->totals.samples);
    assert_int_equal(sum(LJP_PAGE_VIEW_CPU, true), p->totals.cpu_ns);
    assert_int_equal(sum(LJP_PAGE_VIEW_WALL, false), p->totals.wall_samples);
    assert_int_equal(sum(LJP_PAGE_VIEW_WALL, true), p->totals.wall_ns);
    uint64_t bytes = 0, live = 0, old = 0, slices = 0, shown = 0;
    for (uint32_t r = 0; r < p->row_count; r++) {
      const struct ljp_profile_row *row = &p->rows[r];
      if (p->contexts[row->context].kind == LJP_PRODUCER_MEMORY)
        bytes += row->weight;
      live += p->memory[row->memory].live_bytes;
      old += p->memory[row->memory].old_bytes;
      slices |= p->memory[row->memory].slices;
    }
    some_slices |= slices;
    for (size_t n = 0; n < page.slice_count; n++)
      shown |= page.slices[n];
    assert_int_equal(shown, slices);
    assert_int_equal(sum(LJP_PAGE_VIEW_ALLOC, true), bytes);
    assert_int_equal(sum(LJP_PAGE_VIEW_LIVE, true), live);
    assert_int_equal(sum(LJP_PAGE_VIEW_LEAK, true), old);
    /* Every notice, every mark. */
    assert_null(ljp_profile_notice(p, (uint32_t)page.notice_count));
    assert_int_equal(page.mark_count, p->mark_count);
    ljp_page_fini(&page);
    ljp_profile_free(p);
  }
  assert_int_not_equal(some_slices, 0);
}

static void both_views_of_a_page_have_the_rows_of_the_profile(void **state)
{
  static const char *const names[] = {"every-record.ljp", "killed.ljp",
                                      "small-table.ljp", "vm-closed.ljp"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct ljp_profile *p = load(names[i]);
    uint64_t ns = 0, machine = 0;
    assert_int_equal(ljp_page_init(&page), LJP_OK);
    assert_int_equal(ljp_page_load(&page, p, names[i]), LJP_OK);
    assert_int_equal(ljp_page_load_lua(&page, p), LJP_OK);
    assert_true(p->options.lua_view);
    for (int v = 0; v < LJP_PAGE_VIEWS; v++)
      for (size_t r = 0; r < page.rows[v].count; r++) {
        const struct ljp_row *row = &page.rows[v].rows[r];
        assert_in_range(row->node, 1, page.lua_count - 1);
        uint32_t at = page.lua_nodes[row->node];
        assert_in_range(at, 1, page.node_count - 1);
        ns += v == LJP_PAGE_VIEW_CPU ? row->weight : 0;
        for (; at; at = page.nodes[at].parent)
          machine += page.frames[page.nodes[at].frame].kind == LJP_PAGE_VM ||
                     page.frames[page.nodes[at].frame].kind == LJP_PAGE_KERNEL;
      }
    assert_int_equal(ns, p->totals.cpu_ns);
    assert_int_equal(machine, 0);
    ljp_page_fini(&page);
    ljp_profile_free(p);
  }
}

/* Compares the text of each frame from the leaf on: page and profile. */
static void frames_keep_name_place_and_order(void **state)
{
  (void)state;
  struct ljp_profile *p = load("every-record.ljp");
  struct ljp_page_stacks stacks;
  char name[LJP_FRAME_NAME_BYTES];
  unsigned compared = 0;
  assert_int_equal(ljp_page_init(&page), LJP_OK);
  assert_int_equal(ljp_page_stacks_init(&stacks, &page, p, true), LJP_OK);
  for (uint32_t r = 0; r < p->row_count; r++) {
    uint32_t at = p->rows[r].node;
    uint32_t to = ljp_page_stacks_node(&stacks, &p->rows[r]);
    bool gc = p->contexts[p->rows[r].context].state == LJP_VMSTATE_GC;
    for (; at; at = p->nodes[at].parent, to = page.nodes[to].parent) {
      const struct ljp_profile_frame *f = &p->frames[p->nodes[at].frame];
      assert_true(to > 0);
      const struct ljp_page_frame *g = &page.frames[page.nodes[to].frame];
      ljp_frame_function_text(p, p->nodes[at].frame, name, sizeof name);
      assert_int_equal(g->name.len, strlen(name));
      assert_memory_equal(g->name.data, name, g->name.len);
      assert_int_equal(page.nodes[to].line, f->line);
      if (g->kind >= LJP_PAGE_LUA && g->kind <= LJP_PAGE_INLINED) {
        /* The page shows the place of the definition. */
        char label[LJP_FRAME_NAME_BYTES], line[16] = "";
        if (g->line)
          snprintf(line, sizeof line, ":%u", g->line);
        snprintf(label, sizeof label, "%.*s%s%.*s%s", (int)g->name.len,
                 g->name.data, g->file.len ? " " : "", (int)g->file.len,
                 g->file.len ? g->file.data : "", line);
        ljp_frame_name(p, p->nodes[at].frame, 0, name, sizeof name);
        assert_string_equal(label, name);
      }
      if (f->kind == LJP_FRAME_LUA)
        assert_int_equal(g->kind, LJP_PAGE_LUA);
      if (f->kind == LJP_FRAME_HOST && !gc)
        assert_int_equal(g->kind, LJP_PAGE_NATIVE);
      compared++;
    }
    assert_int_equal(to, 0);
  }
  assert_true(compared > 100);
  ljp_page_stacks_fini(&stacks);
  ljp_page_fini(&page);
  ljp_profile_free(p);
}

/* Of streams: by how many lines all functions are moved, and the chunk. */
static unsigned moved;
static const char *chunk = "@app.lua";

/* A stream of some seconds. Function i of n has counts[i] samples of 1 ms;
** function 0 calls all others. */
static struct ljp_profile *stream(const unsigned *counts, unsigned n,
                                  uint64_t seconds, const char *program)
{
  struct buf file = {0}, payload = {0}, body = {0};
  static struct ljp_reader reader;
  static unsigned pid = 76;
  put_u(&body, ++pid);
  put_u(&body, 1);
  put_u(&body, TEST_TIME);
  put_u(&body, 0);
  put_str(&body, program);
  put_str(&body, program);
  put_record(&payload, LJP_REC_PROCESS, &body);
  put_u(&body, 1);
  put_u(&body, LJP_PRODUCER_CPU);
  put_u(&body, 0);
  put_u(&body, 1000000);
  put_record(&payload, LJP_REC_PRODUCER, &body);
  for (unsigned i = 0; i <= n; i++) {
    char name[32];
    snprintf(name, sizeof name, "f%u", i);
    put_u(&body, i + 1);
    put_u(&body, 10 * i + moved);
    put_u(&body, 10 * i + 9 + moved);
    put_u(&body, 0);
    put_str(&body, chunk);
    put_str(&body, name);
    put_record(&payload, LJP_REC_PROTO, &body);
  }
  put_block(&file, 0, &payload);
  for (unsigned i = 0; i <= n; i++) {
    put_s(&body, i ? 1 : 1);
    put_u(&body, i ? i : 1); /* The first is the root of the others. */
    put_u8(&body, LJP_FRAME_LUA << 4);
    put_u(&body, i + 1);
    put_u(&body, 10 * i + 3);
  }
  put_record(&payload, LJP_REC_NODES, &body);
  struct ljp_block_head head = test_head(1);
  head.producer = 1;
  put_block_head(&file, head, &payload);
  uint64_t seq = 2;
  for (unsigned i = 0; i < n; i++) {
    put_u8(&body, 0x01 | 0x02 | 0x08);
    put_s(&body, (int64_t)(seconds * 1000000000 / (n + 1)) * i);
    put_s(&body, i + 2);
    put_u8(&body, LJP_VMSTATE_INTERP);
    put_u(&body, 1000000);
    if (!counts[i]) {
      body.len = 0;
      continue;
    }
    for (unsigned k = 1; k < counts[i]; k++) {
      put_u8(&body, 0);
      put_s(&body, 0);
    }
    put_record(&payload, LJP_REC_SAMPLES, &body);
    head = test_head(seq++);
    head.producer = 1;
    put_block_head(&file, head, &payload);
  }
  put_s(&body, (int64_t)(seconds * 1000000000));
  put_u(&body, 0);
  put_u(&body, 0);
  put_str(&body, "stopped");
  put_record(&payload, LJP_REC_END, &body);
  put_block(&file, seq, &payload);
  const struct ljp_profile_options options = {.no_symbols = true};
  struct ljp_profile *p = ljp_profile_new(&options);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, file.data, file.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
  return p;
}

static const char *const files[] = {"before.ljp", "after.ljp"};

static const struct ljp_diff_function *
function(const struct ljp_diff_function *f, size_t count, const char *name)
{
  for (size_t i = 0; i < count; i++) {
    const struct ljp_str *s = &diff.page.frames[f[i].frame].name;
    if (s->len == strlen(name) && memcmp(s->data, name, s->len) == 0)
      return &f[i];
  }
  fail_msg("no function %s", name);
  return NULL;
}

static void values_are_by_the_second(void **state)
{
  static const unsigned a[] = {1009, 503, 7, 0}, b[] = {2018, 5003, 17, 101};
  (void)state;
  struct ljp_profile *x = stream(a, 4, 10, "/bin/app");
  struct ljp_profile *y = stream(b, 4, 20, "/bin/app");
  size_t count;
  assert_int_equal(ljp_diff_init(&diff, x, y, files, LJP_DIFF_AUTO), LJP_OK);
  assert_int_equal(diff.page.notice_count, 0);
  struct ljp_diff_function *f =
      ljp_diff_functions(&diff, LJP_PAGE_VIEW_CPU, &count);
  assert_int_equal(count, 5);
  /* f2 grew most, f4 is new, f1 did not change per second, f3 has too few
  ** samples. */
  const struct ljp_diff_function *g = function(f, count, "f2");
  assert_ptr_equal(g, f);
  assert_int_equal(llround(g->self.value[0]), 50300000);
  assert_int_equal(llround(g->self.value[1]), 250150000);
  assert_int_equal(
      llround(ljp_diff_error(&g->self) * 1000),
      llround(3.5 * 1e6 * 1000 * sqrt(503 / 100.0 + 5003 / 400.0)));
  assert_true(ljp_diff_sure(&g->self));
  g = function(f, count, "f1");
  assert_int_equal(llround(g->self.value[0]), llround(g->self.value[1]));
  assert_false(ljp_diff_sure(&g->self));
  assert_false(ljp_diff_sure(&function(f, count, "f3")->self));
  g = function(f, count, "f4");
  assert_true(g->self.value[0] == 0 && ljp_diff_sure(&g->self));
  g = function(f, count,
               "f0"); /* It calls all others and has no samples of its own. */
  assert_true(g->self.value[1] == 0);
  assert_int_equal(llround(g->total.value[0]), 151900000);
  assert_int_equal(llround(g->total.value[1]), 356950000);
  free(f);
  ljp_diff_fini(&diff);
  /* Shares of both sides have equal sums. */
  assert_int_equal(ljp_diff_init(&diff, x, y, files, LJP_DIFF_SHARE), LJP_OK);
  f = ljp_diff_functions(&diff, LJP_PAGE_VIEW_CPU, &count);
  g = function(f, count, "f0");
  assert_int_equal(llround(g->total.value[0]), 1000000000);
  assert_int_equal(llround(g->total.value[1]), 1000000000);
  g = function(f, count, "f1");
  assert_int_equal(llround(g->self.value[0]), llround(1e9 * 1009 / 1519));
  free(f);
  ljp_diff_fini(&diff);
  ljp_profile_free(x);
  ljp_profile_free(y);
}

/* Lines were inserted, or the file was renamed: nothing is new or gone. */
static void moved_functions_are_the_same(void **state)
{
  static const unsigned a[] = {1009, 503, 7, 11}, b[] = {1009, 5003, 7, 11};
  static const char *const chunks[] = {"@app.lua", "@new/app2.lua"};
  (void)state;
  for (unsigned renamed = 0; renamed < 2; renamed++) {
    size_t count;
    struct ljp_profile *x = stream(a, 4, 10, "/bin/app");
    moved = 7;
    chunk = chunks[renamed];
    struct ljp_profile *y = stream(b, 4, 10, "/bin/app");
    moved = 0;
    chunk = chunks[0];
    assert_int_equal(ljp_diff_init(&diff, x, y, files, LJP_DIFF_TOTAL), LJP_OK);
    assert_int_equal(diff.page.notice_count, 0);
    struct ljp_diff_function *f =
        ljp_diff_functions(&diff, LJP_PAGE_VIEW_CPU, &count);
    assert_int_equal(count, 5);
    const struct ljp_diff_function *g = function(f, count, "f2");
    assert_ptr_equal(g, f);
    assert_int_equal(llround(g->self.value[0]), 503000000);
    assert_int_equal(llround(g->self.value[1]), 5003000000);
    assert_int_equal(diff.page.frames[g->frame].line, 27); /* Now. */
    for (size_t i = 0; i < count; i++)
      assert_int_equal(ljp_diff_sure(&f[i].self), f + i == g);
    /* By total, its caller changed as much. */
    struct ljp_diff_function *t = ljp_diff_functions_by_total(f, count);
    assert_true(ljp_diff_sure(&t[0].total) && ljp_diff_sure(&t[1].total));
    assert_false(ljp_diff_sure(&t[2].total));
    /* All of it was measured, so the totals have no error. */
    assert_int_equal(llround(diff.totals[LJP_PAGE_VIEW_CPU].value[0]),
                     1530000000);
    assert_true(ljp_diff_error(&diff.totals[LJP_PAGE_VIEW_CPU]) == 0);
    free(t);
    free(f);
    ljp_diff_fini(&diff);
    ljp_profile_free(x);
    ljp_profile_free(y);
  }
}

static void recursion_counts_once_in_totals(void **state)
{
  (void)state;
  memset(&diff, 0, sizeof diff);
  assert_int_equal(ljp_page_init(&diff.page), LJP_OK);
  struct ljp_page_frame frames[2] = {{.name = ljp_str("f", 1)},
                                     {.name = ljp_str("g", 1)}};
  uint32_t f = ljp_page_frame(&diff.page, &frames[0]);
  uint32_t g = ljp_page_frame(&diff.page, &frames[1]);
  static const char path[] = "fgfgg"; /* A different prime for each node. */
  static const double self[] = {0, 2, 3, 5, 7, 11};
  struct ljp_diff_value values[6] = {{{0}, {0}}};
  uint32_t node = 0;
  for (unsigned i = 0; path[i]; i++) {
    node = ljp_page_node(&diff.page, node, path[i] == 'f' ? f : g, 0);
    assert_int_equal(node, i + 1);
    values[node].value[1] = self[node];
  }
  size_t count;
  diff.nodes[LJP_PAGE_VIEW_CPU] = values;
  diff.node_count = 6;
  struct ljp_diff_function *list =
      ljp_diff_functions(&diff, LJP_PAGE_VIEW_CPU, &count);
  assert_int_equal(count, 2);
  assert_true(function(list, count, "f")->self.value[1] == 2 + 5);
  assert_true(function(list, count, "f")->total.value[1] == 28);
  assert_true(function(list, count, "g")->self.value[1] == 3 + 7 + 11);
  assert_true(function(list, count, "g")->total.value[1] == 26);
  free(list);
  diff.nodes[LJP_PAGE_VIEW_CPU] = NULL;
  ljp_diff_fini(&diff);
}

static double uniform(void)
{
  return (double)(random_number() >> 11) * 0x1p-53;
}

/* A Poisson distributed number, by Knuth's method. */
static unsigned poisson(double mean)
{
  double p = 1, limit = exp(-mean);
  unsigned n = 0;
  while ((p *= uniform()) > limit)
    n++;
  return n;
}

/* The number in a name such as "f17", which is not terminated. */
static unsigned number_in(struct ljp_str name)
{
  char text[16];
  snprintf(text, sizeof text, "%.*s", (int)name.len, name.data);
  return (unsigned)atoi(text + 1);
}

static void chance_is_not_taken_for_change(void **state)
{
  enum { N = 1000 };
  static unsigned a[N], b[N];
  unsigned wrong = 0, missed = 0;
  (void)state;
  for (unsigned round = 0; round < 10; round++) {
    for (unsigned i = 0; i < N; i++) {
      double mean = 1 + i % 97;
      bool changed = i % 100 == 50; /* 51 at first. */
      a[i] = poisson(mean);
      b[i] = poisson(changed ? 4 * mean : mean);
    }
    struct ljp_profile *x = stream(a, N, 10, "/bin/app");
    struct ljp_profile *y = stream(b, N, 10, "/bin/app");
    size_t count;
    assert_int_equal(ljp_diff_init(&diff, x, y, files, LJP_DIFF_AUTO), LJP_OK);
    struct ljp_diff_function *f =
        ljp_diff_functions(&diff, LJP_PAGE_VIEW_CPU, &count);
    for (size_t i = 0; i < count; i++) {
      unsigned n = number_in(diff.page.frames[f[i].frame].name) - 1;
      bool sure = ljp_diff_sure(&f[i].self);
      if (n < N && n % 100 == 50)
        missed += !sure && 1 + n % 97 > 20;
      else if (n < N)
        wrong += sure;
      /* Changes beyond the error come first. */
      assert_true(!i || !sure || ljp_diff_sure(&f[i - 1].self));
    }
    free(f);
    ljp_diff_fini(&diff);
    ljp_profile_free(x);
    ljp_profile_free(y);
  }
  assert_in_range(wrong, 0, 15); /* Of 9,900. */
  assert_int_equal(missed, 0);
}

static bool says(const char *text)
{
  for (size_t i = 0; i < diff.page.notice_count; i++) {
    struct ljp_str s = diff.page.notices[i].text;
    if (memmem(s.data, s.len, text, strlen(text)))
      return true;
  }
  return false;
}

static void files_that_do_not_belong_together_are_told(void **state)
{
  static const unsigned a[] = {1009, 503, 0, 0}, b[] = {0, 0, 700, 900};
  (void)state;
  struct ljp_profile *x = stream(a, 4, 10, "/bin/app");
  struct ljp_profile *y = stream(b, 4, 10, "/usr/bin/other");
  assert_int_equal(ljp_diff_init(&diff, x, y, files, LJP_DIFF_AUTO), LJP_OK);
  assert_true(says("different programs: before app, after other"));
  assert_true(says("do they belong together"));
  assert_false(says("the same session"));
  ljp_diff_fini(&diff);
  assert_int_equal(ljp_diff_init(&diff, x, x, files, LJP_DIFF_AUTO), LJP_OK);
  assert_true(says("the same session"));
  assert_false(says("different programs"));
  for (size_t i = 0; i < diff.node_count; i++)
    assert_false(ljp_diff_sure(&diff.nodes[LJP_PAGE_VIEW_CPU][i]));
  ljp_diff_fini(&diff);
  ljp_profile_free(x);
  ljp_profile_free(y);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_page_holds_what_the_profile_counts),
      cmocka_unit_test(both_views_of_a_page_have_the_rows_of_the_profile),
      cmocka_unit_test(frames_keep_name_place_and_order),
      cmocka_unit_test(values_are_by_the_second),
      cmocka_unit_test(moved_functions_are_the_same),
      cmocka_unit_test(recursion_counts_once_in_totals),
      cmocka_unit_test(chance_is_not_taken_for_change),
      cmocka_unit_test(files_that_do_not_belong_together_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
