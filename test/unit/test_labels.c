/*
** The profile of labels, on streams made by hand: rows are told apart by labels,
** stacks are not; frames of labels.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/profile/recent.h"
#include "test/support/labelled.h"

static void rows_differ_by_labels_but_not_their_stacks(void **state)
{
  (void)state;
  for (int symbols = 0; symbols < 2; symbols++) {
    begin_labelled(LJP_PRODUCER_CPU);
    sample(stack_below(root_a), 5);
    sample(stack_below(root_b), 7);
    sample(stack_below(0), 11);
    if (symbols) {
      symbol(LIBMINE, 0x100, 0, "mine");
      sample(frame(root_b, LJP_FRAME_HOST, LIBMINE, 0x100), 13);
    }
    end_stream();
    struct ljp_profile *p = load_with(&plain);
    assert_int_equal(p->totals.samples, samples);
    assert_int_equal(sum_of(p, STACK, NULL, "").count, 23);
    assert_int_equal(sum_of(p, STACK, NULL, "").rows, 3);
    assert_int_equal(sum_of(p, STACK, "route", "/a").count, 5);
    assert_int_equal(sum_of(p, STACK, "tenant", "x").count, 5);
    assert_int_equal(sum_of(p, STACK, "route", "/b").count, 7);
    assert_int_equal(sum_of(p, STACK, "route", "").count, 11);
    assert_int_equal(sum_of(p, STACK, "tenant", "").count, 18);
    assert_int_equal(sum_of(p, "mine", "route", "/b").count, symbols * 13);
    uint32_t node = 0;
    for (uint32_t i = 0; i < p->row_count; i++) {
      char text[512];
      path_of(p, p->rows[i].node, text, sizeof text);
      if (strcmp(text, STACK) != 0)
        continue;
      assert_true(!node || p->rows[i].node == node);
      node = p->rows[i].node;
    }
    for (uint32_t i = 0; i < p->frame_count; i++)
      assert_int_not_equal(p->frames[i].kind, LJP_FRAME_LABELS);
    uint64_t points = 0;
    for (uint32_t i = 0; i < p->point_count; i++)
      points += p->points[i].count;
    assert_int_equal(points, samples);
    assert_int_equal(ljp_profile_fold(p, NULL), LJP_OK);
    assert_int_equal(sum_of(p, STACK, "route", "/b").count, 7);
    ljp_profile_free(p);
  }
}

static void labels_alone_are_no_stack(void **state)
{
  (void)state;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(root_a, 5);
  sample(0, 7);
  end_stream();
  struct ljp_profile *p = load_with(&plain);
  assert_int_equal(p->totals.no_stack, 12);
  assert_int_equal(sum_of(p, "(no stack)", "route", "/a").count, 5);
  assert_int_equal(sum_of(p, "(no stack)", "route", "").count, 7);
  ljp_profile_free(p);
}

static void lost_labels_are_unknown(void **state)
{
  (void)state;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(stack_below(frame(0, LJP_FRAME_LABELS, 0, 99)), 5);
  sample(stack_below(4711), 3); /* Whose root is missing. */
  sample(stack_below(root_a), 7);
  end_stream();
  struct ljp_profile *p = load_with(&plain);
  assert_int_equal(sum_of(p, NULL, "route", "(unknown)").count, 8);
  assert_int_equal(sum_of(p, STACK, "route", "(unknown)").count, 5);
  assert_int_equal(sum_of(p, STACK, "route", "/a").count, 7);
  assert_int_equal(p->totals.lost_labels, 8);
  ljp_profile_free(p);
  const struct ljp_profile_options a = only("route=/a"), no = only("route=");
  p = load_with(&a);
  assert_int_equal(p->totals.samples, 7);
  assert_int_equal(p->totals.lost_labels, 8);
  ljp_profile_free(p);
  p = load_with(&no);
  assert_int_equal(p->totals.samples, 0);
  ljp_profile_free(p);
}

/* As if none had been set; and sets without labels. */
static void lost_labels_are_no_frames(void **state)
{
  (void)state;
  struct ljp_profile *p;
  begin();
  producer(LJP_PRODUCER_CPU);
  put_set(NOTHING, "", 0);
  sample(stack_below(frame(0, LJP_FRAME_LABELS, 0, 99)), 5);
  sample(stack_below(frame(0, LJP_FRAME_LABELS, 0, NOTHING)), 3);
  sample(frame(0, LJP_FRAME_LABELS, 0, 99), 7);
  end_stream();
  p = load_with(&plain);
  assert_int_equal(p->label_count, LJP_LABELS_OWN);
  assert_int_equal(sum_of(p, STACK, NULL, "").count, 8);
  assert_int_equal(sum_of(p, "(no stack)", NULL, "").count, 7);
  assert_int_equal(p->totals.lost_labels, 12);
  for (uint32_t i = 0; i < p->frame_count; i++)
    assert_int_not_equal(p->frames[i].kind, LJP_FRAME_LABELS);
  ljp_profile_free(p);
  const struct ljp_profile_options asked[] = {
      only("route=/a"), {.no_symbols = true, .label_key = "route"}};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(load(&asked[i], &p), LJP_ERR_USE);
    assert_string_equal(error, "there is no label 'route': those of the file "
                               "were lost in a gap");
  }
}

static void the_same_set_of_two_inputs_is_one(void **state)
{
  (void)state;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(stack_below(root_a), 5);
  end_stream();
  struct ljp_profile *p = ljp_profile_new(&plain);
  for (uint64_t i = 0; i < 2; i++) {
    assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len),
                     LJP_OK);
    assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
    ljp_reader_fini(&reader);
    begin();
    put_set(B, SET_A, sizeof SET_A - 1); /* The same with another id. */
    sample(stack_below(frame(0, LJP_FRAME_LABELS, 0, B)), 7);
    struct ljp_block_head head = test_head(0);
    head.stream++;
    put_block_head(&stream, head, &payload);
  }
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  assert_int_equal(p->label_count, LJP_LABELS_OWN + 2);
  assert_int_equal(sum_of(p, STACK, "route", "/a").count, 12);
  ljp_profile_free(p);
}

static void sets_beyond_the_limit_are_one_and_counted(void **state)
{
  (void)state;
  enum { MORE = 5, SETS = LJP_PROFILE_MAX_LABELS - LJP_LABELS_OWN };
  begin();
  for (uint64_t i = 1; i <= SETS + MORE; i++) {
    char set[64];
    int n = snprintf(set, sizeof set, "k%c%llu", 0, (unsigned long long)i);
    put_set(i, set, (size_t)n + 1);
    if (i <= 3 || i > SETS)
      sample(
          frame(frame(0, LJP_FRAME_LABELS, 0, i), LJP_FRAME_BUILTIN, 0, SORT),
          1);
    if (payload.len > 500000) {
      put_block(&stream, stream.len ? 1 : 0, &payload);
    }
  }
  struct ljp_block_head head = test_head(stream.len ? 2 : 0);
  put_block_head(&stream, head, &payload);
  struct ljp_profile *p = load_with(&plain);
  assert_int_equal(p->label_count, LJP_PROFILE_MAX_LABELS);
  assert_int_equal(sum_of(p, "table.sort", "k", "(too many)").count, MORE);
  assert_int_equal(sum_of(p, "table.sort", "k", "3").count, 1);
  assert_int_equal(p->totals.samples, 3 + MORE);
  assert_int_equal(p->totals.too_many_labels, MORE);
  bool said = false;
  for (uint32_t i = 0; ljp_profile_notice(p, i); i++)
    said |= strstr(ljp_profile_notice(p, i), "(too many)") != NULL;
  assert_true(said);
  ljp_profile_free(p);
}

static void births_keep_their_rows(void **state)
{
  (void)state;
  struct ljp_profile_options options = {.no_symbols = true, .births = 1};
  begin_labelled(LJP_PRODUCER_MEMORY);
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, stack_below(root_b));
  put_s(&body, 7);
  put_u(&body, 1);
  put_u(&body, 1);
  put_u(&body, 65537);
  put_record(&payload, LJP_REC_HEAP_MOMENT, &body);
  end_stream();
  for (int frames = 0; frames < 2; frames++) {
    char text[512];
    options.label_key = frames ? "route" : NULL;
    options.label_frames = frames;
    struct ljp_profile *p = load_with(&options);
    const struct ljp_birth *b = ljp_births_find(&p->births, 0x1000);
    assert_non_null(b);
    path_of(p, p->rows[b->row].node, text, sizeof text);
    assert_string_equal(text, frames ? "route=/b;" STACK : STACK);
    assert_memory_equal(value_of(p, b->row, "route").data, "/b", 2);
    ljp_profile_free(p);
  }
}

/* -- Frames ---------------------------------------------------------------- */

static void frames_of_labels_divide_each_view(void **state)
{
  (void)state;
  for (int lua = 0; lua < 2; lua++) {
    struct ljp_profile_options options = {.no_symbols = true,
                                          .points = true,
                                          .lua_view = lua,
                                          .label_key = "route",
                                          .label_frames = true};
    begin_labelled(LJP_PRODUCER_CPU);
    sample(stack_below(root_a), 5);
    sample(stack_below(root_b), 7);
    sample(stack_below(0), 11);
    sample(root_b, 13);
    sample(frame(root_a, LJP_FRAME_HOST, LIBMINE, 0x100), 17);
    sample(frame(0, LJP_FRAME_HOST, LIBMINE, 0x100), 19);
    sample(0, 23);
    end_stream();
    struct ljp_profile *p = load_with(&options);
    assert_int_equal(count_at(p, "route=/a;" STACK), 5);
    assert_int_equal(count_at(p, "route=/b;" STACK), 7);
    assert_int_equal(count_at(p, "route=(none);" STACK), 11);
    assert_int_equal(count_at(p, "route=/b;(no stack)"), 13);
    const char *host =
        lua ? "route=/a;[outside Lua]" : "route=/a;mine.so+0x100";
    assert_int_equal(count_at(p, host), 17);
    assert_int_equal(count_at(p, "route=(none);(no stack)"), 23);
    uint64_t points = 0;
    for (uint32_t i = 0; i < p->point_count; i++)
      points += p->points[i].count;
    assert_int_equal(points, samples);
    ljp_profile_free(p);
  }
}

static void keys_are_listed_with_their_values(void **state)
{
  (void)state;
  struct ljp_labels_keys keys;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(stack_below(root_a), 5);
  end_stream();
  struct ljp_profile *p = load_with(&plain);
  assert_true(ljp_labels_keys(p, &keys));
  assert_int_equal(keys.count, 2);
  assert_memory_equal(ljp_profile_str(p, keys.list[0].key).data, "route", 5);
  assert_int_equal(keys.list[0].values, 2);
  assert_int_equal(keys.list[1].values, 1);
  free(keys.list);
  ljp_profile_free(p);
}

/* A part of a profile that is still being read (ljprof top). */
static void parts_have_labels(void **state)
{
  (void)state;
  const struct ljp_recent_query all = {.all = true};
  struct ljp_recent recent = {0};
  struct ljp_profile *p = ljp_profile_new(&plain), *part;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(stack_below(root_a), 5);
  sample(stack_below(root_b), 7);
  end_stream();
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ljp_recent_open(&recent, p, &all, &part), LJP_OK);
    assert_int_equal(sum_of(part, STACK, "route", "/a").count, 5);
    assert_int_equal(sum_of(part, STACK, "route", "/b").count, 7);
    ljp_recent_close(p, part);
  }
  ljp_recent_fini(&recent);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  assert_int_equal(sum_of(p, STACK, "route", "/b").count, 7);
  ljp_profile_free(p);
}

static int free_buffers(void **state)
{
  (void)state;
  shape_free();
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_differ_by_labels_but_not_their_stacks),
      cmocka_unit_test(labels_alone_are_no_stack),
      cmocka_unit_test(lost_labels_are_unknown),
      cmocka_unit_test(lost_labels_are_no_frames),
      cmocka_unit_test(the_same_set_of_two_inputs_is_one),
      cmocka_unit_test(sets_beyond_the_limit_are_one_and_counted),
      cmocka_unit_test(births_keep_their_rows),
      cmocka_unit_test(frames_of_labels_divide_each_view),
      cmocka_unit_test(keys_are_listed_with_their_values),
      cmocka_unit_test(parts_have_labels),
  };
  return cmocka_run_group_tests(tests, NULL, free_buffers);
}
