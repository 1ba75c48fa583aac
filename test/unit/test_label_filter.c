/*
** Profiles of events with some labels: what is counted, and what is said of
** labels that no event has.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "test/support/labelled.h"

static void a_filter_counts_only_events_with_all_its_labels(void **state)
{
  (void)state;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(stack_below(root_a), 5);
  sample(stack_below(root_b), 7);
  sample(stack_below(0), 11);
  sample(0, 13);
  end_stream();
  static const struct {
    const char *one, *two;
    uint64_t count;
  } wanted[] = {{"route=/a", NULL, 5},       {"route=/b", NULL, 7},
                {"route=", NULL, 24},        {"tenant=x", NULL, 5},
                {"tenant=", NULL, 31},       {"route=/a", "tenant=x", 5},
                {"route=/b", "tenant=x", 0}, {"route=/b", "tenant=", 7},
                {"route=/a", "route=/b", 0}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    struct ljp_profile_options options = only(wanted[i].one);
    options.labels.list[1] = wanted[i].two;
    options.labels.count += wanted[i].two != NULL;
    struct ljp_profile *p = load_with(&options);
    assert_int_equal(p->totals.samples, wanted[i].count);
    assert_int_equal(p->totals.filtered, samples - wanted[i].count);
    ljp_profile_free(p);
  }
}

static void labels_that_the_file_does_not_have_are_named(void **state)
{
  (void)state;
  static const struct {
    const char *filter, *error;
  } wrong[] = {
      {"rout=/a",
       "there is no label 'rout'; those of the file are 'route', 'tenant'"},
      {"rout=",
       "there is no label 'rout'; those of the file are 'route', 'tenant'"},
      {"route=/c", "the label 'route' never has the value '/c'; its values are "
                   "'/a', '/b'"}};
  struct ljp_profile *p;
  begin_labelled(LJP_PRODUCER_CPU);
  sample(stack_below(root_a), 5);
  end_stream();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const struct ljp_profile_options options = only(wrong[i].filter);
    assert_int_equal(load(&options, &p), LJP_ERR_USE);
    assert_string_equal(error, wrong[i].error);
  }
  const struct ljp_profile_options by = {.no_symbols = true,
                                         .label_key = "rote"};
  assert_int_equal(load(&by, &p), LJP_ERR_USE);
  begin();
  sample(stack_below(0), 3);
  end_stream();
  const struct ljp_profile_options options = only("route=/a");
  assert_int_equal(load(&options, &p), LJP_ERR_USE);
  assert_string_equal(error,
                      "there is no label 'route': the file has no labels");
}

/* Blocks of /a and /b, which are freed and reallocated by the other. */
static void put_blocks(void)
{
  begin_labelled(LJP_PRODUCER_MEMORY);
  uint64_t a = stack_below(root_a), b = stack_below(root_b),
           none = stack_below(0);
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, a);
  mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, a);
  mem(LJP_MEM_ALLOC, 0x3000, 307, 0, 0, b);
  mem(LJP_MEM_ALLOC, 0x4000, 401, 0, 0, none);
  mem(LJP_MEM_ALLOC, 0x5000, 503, 0, 0, root_a); /* Without a stack. */
  mem(LJP_MEM_FREE, 0x1000, 101, 0, 0, b);
  mem(LJP_MEM_FREE, 0x3000, 307, 0, 0, a);
  mem(LJP_MEM_REALLOC, 0x6000, 601, 0x2000, 211, b);
  mem(LJP_MEM_FREE, 0x7000, 701, 0, 0, a);           /* Older. */
  mem(LJP_MEM_REALLOC, 0x8000, 809, 0x9000, 907, b); /* Likewise. */
  end_stream();
}

static void memory_counts_for_the_labels_of_its_allocation(void **state)
{
  (void)state;
  static const char *const filters[] = {"route=/a", "route=/b", "route="};
  static const char *const values[] = {"/a", "/b", ""};
  uint64_t live = 0, alloc = 0, freed = 0;
  put_blocks();
  struct ljp_profile *all = load_with(&plain);
  assert_int_equal(all->totals.memory.live_bytes, 401 + 503 + 601 + 809);
  assert_int_equal(all->totals.no_stack, 1);
  for (int i = 0; i < 3; i++) {
    const struct ljp_profile_options options = only(filters[i]);
    struct ljp_profile *p = load_with(&options);
    const struct sum of = sum_of(all, NULL, "route", values[i]);
    assert_int_equal(p->totals.memory.alloc_bytes, of.alloc_bytes);
    assert_int_equal(p->totals.memory.live_bytes, of.live_bytes);
    assert_int_equal(p->totals.memory.free_bytes, of.free_bytes);
    assert_int_equal(p->totals.before_frees, i == 2);
    assert_int_equal(p->totals.before_reallocs, i == 2);
    live += p->totals.memory.live_bytes;
    alloc += p->totals.memory.alloc_bytes;
    freed += p->totals.memory.free_bytes;
    ljp_profile_free(p);
  }
  assert_int_equal(live, all->totals.memory.live_bytes);
  assert_int_equal(alloc, all->totals.memory.alloc_bytes);
  assert_int_equal(freed, all->totals.memory.free_bytes);
  assert_int_equal(sum_of(all, NULL, "route", "/a").live_bytes, 503);
  assert_int_equal(sum_of(all, NULL, "route", "/b").live_bytes, 601 + 809);
  ljp_profile_free(all);
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
      cmocka_unit_test(a_filter_counts_only_events_with_all_its_labels),
      cmocka_unit_test(labels_that_the_file_does_not_have_are_named),
      cmocka_unit_test(memory_counts_for_the_labels_of_its_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, free_buffers);
}
