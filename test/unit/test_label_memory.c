/* Labels when memory runs out: each failing allocation is told and leaks nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "test/support/wrapped_alloc.h"

#include "test/support/labelled.h"

static enum ljp_status try_load(const struct ljp_profile_options *options)
{
  enum ljp_status status = ljp_reader_memory(&reader, stream.data, stream.len);
  if (status)
    return status;
  struct ljp_profile *p = ljp_profile_new(options);
  status = p ? ljp_profile_add(p, &reader) : LJP_ERR_MEM;
  if (!status)
    status = ljp_profile_finish(p);
  ljp_profile_free(p);
  ljp_reader_fini(&reader);
  return status;
}

static void each_allocation_that_fails_is_told_and_leaves_nothing(void **state)
{
  static const struct ljp_profile_options how[] = {
      {.no_symbols = true, .points = true},
      {.no_symbols = true, .labels = {.list = {"route=/a"}, .count = 1}},
      {.no_symbols = true, .labels = {.list = {"route=/c"}, .count = 1}},
      {.no_symbols = true,
       .lua_view = true,
       .label_key = "route",
       .label_frames = true}};
  (void)state;
  begin_labelled(LJP_PRODUCER_MEMORY);
  sample(stack_below(root_a), 5);
  sample(stack_below(root_b), 7);
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, stack_below(root_a));
  mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, root_b);
  end_stream();
  for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
    const enum ljp_status wanted = i == 2 ? LJP_ERR_USE : LJP_OK;
    for (long n = 1;; n++) {
      size_t before = alloc_live;
      alloc_fail_at = n;
      enum ljp_status status = try_load(&how[i]);
      bool failed = alloc_fail_at == 0;
      alloc_fail_at = 0;
      assert_int_equal(alloc_live, before);
      if (!failed) {
        assert_int_equal(status, wanted);
        assert_true(n > 20);
        break;
      }
      if (status != LJP_ERR_MEM)
        fail_msg("options %zu: allocation %ld failed, status %d", i, n, status);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_allocation_that_fails_is_told_and_leaves_nothing),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  shape_free();
  return failed;
}
