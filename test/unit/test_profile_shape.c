/*
** The tree that views see: a C function that Lua called is one frame, whether or
** not the host's frame of the same call was recorded.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "test/support/shape.h"

static void a_builtin_and_its_c_code_are_one_frame(void **state)
{
  (void)state;
  begin();
  uint64_t sort = frame(0, LJP_FRAME_BUILTIN, 0, SORT);
  uint64_t code = frame(sort, LJP_FRAME_HOST, LIBVM, 0x100);
  uint64_t aux = frame(code, LJP_FRAME_HOST, LIBVM, 0x200);
  uint64_t inlined = frame(sort, LJP_FRAME_HOST, LIBVM, 0x110);
  uint64_t floor_ = frame(0, LJP_FRAME_BUILTIN, 0, FLOOR);
  uint64_t assembly = frame(floor_, LJP_FRAME_VM, LIBVM, 0x300);
  uint64_t other = frame(floor_, LJP_FRAME_HOST, LIBVM, 0x400);
  symbol(LIBVM, 0x100, 0, "lj_cf_table_sort");
  symbol(LIBVM, 0xff, 0, "lj_cf_table_sort");
  symbol(LIBVM, 0x200, 0, "auxsort");
  symbol(LIBVM, 0x110, 0, "set2");
  symbol(LIBVM, 0x110, 1, "lj_cf_table_sort");
  symbol(LIBVM, 0x300, 0, "lj_ff_math_floor");
  symbol(LIBVM, 0x400, 0, "lj_str_new");
  sample(sort, 2);
  sample(code, 3);
  sample(aux, 5);
  sample(inlined, 7);
  sample(assembly, 11);
  sample(other, 13);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "table.sort"), 5);
  assert_int_equal(count_at(p, "table.sort;auxsort"), 5);
  assert_int_equal(count_at(p, "table.sort;set2"), 7);
  assert_int_equal(count_at(p, "math.floor"), 11);
  assert_int_equal(count_at(p, "math.floor;lj_str_new"), 13);
  ljp_profile_free(p);
}

static void a_c_function_is_one_frame_with_its_address(void **state)
{
  (void)state;
  begin();
  uint64_t guest = frame(0, LJP_FRAME_CFUNC, LIBMINE, 0x100);
  uint64_t host = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x140);
  uint64_t again = frame(host, LJP_FRAME_HOST, LIBMINE, 0x150);
  symbol(LIBMINE, 0x100, 0, "mine_work");
  symbol(LIBMINE, 0x140, 0, "mine_work");
  symbol(LIBMINE, 0x13f, 0, "mine_work");
  symbol(LIBMINE, 0x150, 0, "mine_work");
  sample(host, 3);
  sample(again, 5);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "mine_work"), 3);
  assert_int_equal(count_at(p, "mine_work;mine_work"), 5); /* A recursion. */
  unsigned seen = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_node *node = &p->nodes[p->rows[i].node];
    if (node->parent)
      continue;
    assert_int_equal(p->frames[node->frame].kind, LJP_FRAME_CFUNC);
    assert_int_equal(p->frames[node->frame].offset, 0x140);
    assert_int_equal(p->frames[node->frame].line, 10);
    seen++;
  }
  assert_int_equal(seen, 1);
  /* The guest's own frame is no longer used. */
  for (uint32_t i = 0; i < p->node_count; i++)
    assert_true(p->frames[p->nodes[i].frame].offset != 0x100);
  ljp_profile_free(p);
}

/* Compilers split functions, and call the part or put it back. */
static void a_part_of_a_function_is_the_function(void **state)
{
  (void)state;
  begin();
  uint64_t comp = frame(0, LJP_FRAME_HOST, LIBVM, 0x500);
  uint64_t part = frame(comp, LJP_FRAME_HOST, LIBVM, 0x600);
  uint64_t callee = frame(part, LJP_FRAME_HOST, LIBVM, 0x700);
  uint64_t back = frame(0, LJP_FRAME_HOST, LIBVM, 0x510);
  uint64_t alone = frame(0, LJP_FRAME_HOST, LIBVM, 0x608);
  uint64_t again = frame(comp, LJP_FRAME_HOST, LIBVM, 0x508);
  symbol(LIBVM, 0x4ff, 0, "sort_comp");
  symbol(LIBVM, 0x508, 0, "sort_comp");
  symbol(LIBVM, 0x600, 0, "copy");
  symbol(LIBVM, 0x600, 1, "sort_comp.part");
  symbol(LIBVM, 0x5ff, 0, "sort_comp.part");
  symbol(LIBVM, 0x608, 0, "sort_comp.part");
  symbol(LIBVM, 0x700, 0, "lua_call");
  symbol(LIBVM, 0x510, 0, "copy");
  symbol(LIBVM, 0x510, 1, "sort_comp");
  symbol(LIBVM, 0x510, 2, "sort_comp");
  sample(part, 2);
  sample(callee, 3);
  sample(back, 5);
  sample(alone, 7);
  sample(again, 11);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "sort_comp;copy"), 2 + 5);
  assert_int_equal(count_at(p, "sort_comp;lua_call"), 3);
  assert_int_equal(count_at(p, "sort_comp"), 7);
  assert_int_equal(count_at(p, "sort_comp;sort_comp"), 11); /* A recursion. */
  ljp_profile_free(p);
}

static void other_neighbours_stay_two_frames(void **state)
{
  (void)state;
  begin();
  uint64_t guest = frame(0, LJP_FRAME_CFUNC, LIBMINE, 0x100);
  uint64_t tail = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x240);
  uint64_t far = frame(guest, LJP_FRAME_HOST, LIBVM, 0x140);
  uint64_t before = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x90);
  uint64_t nameless = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x150);
  uint64_t host = frame(0, LJP_FRAME_HOST, LIBVM, 0x500);
  uint64_t above = frame(host, LJP_FRAME_HOST, LIBVM, 0x100);
  symbol(LIBMINE, 0x100, 0, "mine_work");
  symbol(LIBMINE, 0x240, 0, "mine_tail");
  symbol(LIBMINE, 0x90, 0, "mine_work");
  symbol(LIBVM, 0x140, 0, "mine_work");
  symbol(LIBVM, 0x100, 0, "lj_cf_table_sort");
  symbol(LIBVM, 0x4ff, 0, "lj_cf_table_sort");
  sample(guest, 2);
  sample(tail, 3);
  sample(far, 5);
  sample(before, 7);
  sample(nameless, 11);
  sample(above, 13);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "mine_work"), 2);
  assert_int_equal(count_at(p, "mine_work;mine_tail"), 3);
  assert_int_equal(count_at(p, "mine_work;mine_work"), 5 + 7);
  assert_int_equal(count_at(p, "mine_work;mine.so+0x150"), 11);
  assert_int_equal(count_at(p, "lj_cf_table_sort;lj_cf_table_sort"), 13);
  ljp_profile_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_builtin_and_its_c_code_are_one_frame),
      cmocka_unit_test(a_c_function_is_one_frame_with_its_address),
      cmocka_unit_test(a_part_of_a_function_is_the_function),
      cmocka_unit_test(other_neighbours_stay_two_frames),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  shape_free();
  return failed;
}
