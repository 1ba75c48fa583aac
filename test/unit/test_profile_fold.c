/*
** The Lua view: machine code counts for the function of the program that made it
** run; nothing is lost or counted twice; folding again changes nothing.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "test/support/shape.h"

enum { F = 1, G, FFI = 7 };

/* The code of LIBVM and LIBMINE, by the address of its instruction. */
enum {
  MAIN = 0x100,
  PCALL = 0x110,
  BC_ADD = 0x120,
  TAB_NEW = 0x130,
  GC_STEP = 0x140,
  GC_SWEEP = 0x150,
  AUXSORT = 0x160,
  CCALL = 0x170,
  CCALL_ARGS = 0x180,
  CTYPE = 0x190,
  CTYPE_INLINED = 0x1a0,
  WORK = 0x200,
  HELPER = 0x210,
  QSORT = 0x220
};

static void symbols(void)
{
  static const struct {
    unsigned module, address;
    const char *name;
  } all[] = {{LIBMINE, MAIN, "main"},
             {LIBVM, PCALL, "lua_pcall"},
             {LIBVM, BC_ADD, "lj_BC_ADD"},
             {LIBVM, TAB_NEW, "lj_tab_new"},
             {LIBVM, GC_STEP, "lj_gc_step"},
             {LIBVM, GC_SWEEP, "gc_sweep"},
             {LIBVM, AUXSORT, "auxsort"},
             {LIBVM, CCALL, "lj_ccall_func"},
             {LIBVM, CCALL_ARGS, "ccall_set_args"},
             {LIBVM, CTYPE, "ctype_raw"},
             {LIBVM, CTYPE_INLINED, "ctype_raw"},
             {LIBMINE, WORK, "work"},
             {LIBMINE, HELPER, "helper"},
             {LIBMINE, QSORT, "qsort"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    symbol(all[i].module, all[i].address, 0, all[i].name);
    symbol(all[i].module, all[i].address + 1, 0, all[i].name);
  }
  symbol(LIBVM, CTYPE_INLINED, 1, "lj_ccall_func");
}

/* Begins a stream; returns the stack of a host that calls Lua. */
static uint64_t begin_in_host(bool named)
{
  begin();
  if (named)
    symbols();
  builtin(FFI, "ffi.meta.__call");
  lua_function(F, "f", 10);
  lua_function(G, "g", 20);
  uint64_t main = frame(0, LJP_FRAME_HOST, LIBMINE, MAIN + 1);
  return frame(main, LJP_FRAME_HOST, LIBVM, PCALL + 1);
}

static void same_sums(const struct ljp_profile *p)
{
  uint64_t count = 0, weight = 0, points = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    assert_true(p->rows[i].node < p->node_count);
    count += p->rows[i].count;
    weight += p->rows[i].weight;
  }
  for (uint32_t i = 0; i < p->point_count; i++) {
    assert_true(p->points[i].row < p->row_count);
    points += p->points[i].count;
  }
  for (uint32_t i = 1; i < p->node_count; i++)
    assert_true(p->nodes[i].parent < i);
  for (uint32_t i = 0; i < p->frame_count; i++)
    assert_true(p->frames[i].function < p->function_count);
  assert_int_equal(count, samples);
  assert_int_equal(weight, samples * 7);
  assert_int_equal(points, samples);
  assert_int_equal(p->totals.samples, samples);
}

/* The finished profile in the Lua view. */
static struct ljp_profile *finish_folded(void)
{
  struct ljp_profile *p = finish();
  same_sums(p);
  assert_int_equal(ljp_profile_fold(p, NULL), LJP_OK);
  same_sums(p);
  return p;
}

static void machine_code_counts_for_the_function_that_runs_it(void **state)
{
  (void)state;
  uint64_t host = begin_in_host(true);
  uint64_t f = frame(host, LJP_FRAME_LUA, F, 11);
  uint64_t add = frame(f, LJP_FRAME_VM, LIBVM, BC_ADD);
  uint64_t tab = frame(f, LJP_FRAME_HOST, LIBVM, TAB_NEW);
  uint64_t kernel = frame(tab, LJP_FRAME_KERNEL, 0, 0);
  uint64_t sort = frame(f, LJP_FRAME_BUILTIN, 0, SORT);
  uint64_t aux = frame(sort, LJP_FRAME_HOST, LIBVM, AUXSORT + 1);
  uint64_t call = frame(aux, LJP_FRAME_HOST, LIBVM, PCALL + 1);
  uint64_t g = frame(call, LJP_FRAME_LUA, G, 21);
  uint64_t trace = frame(f, LJP_FRAME_TRACE, 0, 3);
  uint64_t inlined = frame(trace, LJP_FRAME_LUA_INLINED, G, 21);
  uint64_t made = frame(inlined, LJP_FRAME_HOST, LIBVM, TAB_NEW);
  uint64_t own = frame(f, LJP_FRAME_PROFILER, 0, 0);
  sample(f, 2);
  sample(add, 3);
  sample(tab, 5);
  sample(kernel, 7);
  sample(aux, 11);
  sample(call, 13);
  sample(g, 17);
  sample(trace, 19);
  sample(made, 23);
  sample(own, 29);
  struct ljp_profile *p = finish_folded();
  assert_true(p->folded);
  assert_int_equal(count_at(p, "f a.lua:10"), 2 + 3 + 5 + 7 + 19);
  assert_int_equal(count_at(p, "f a.lua:10;table.sort"), 11 + 13);
  assert_int_equal(count_at(p, "f a.lua:10;table.sort;g a.lua:20"), 17);
  assert_int_equal(count_at(p, "f a.lua:10;g a.lua:20"), 23);
  assert_int_equal(count_at(p, "f a.lua:10;[profiler]"), 29);
  ljp_profile_free(p);
}

static void a_c_function_has_what_it_calls_but_not_lua(void **state)
{
  (void)state;
  uint64_t host = begin_in_host(true);
  uint64_t pmain = frame(host, LJP_FRAME_CFUNC, LIBMINE, HELPER);
  uint64_t f = frame(pmain, LJP_FRAME_LUA, F, 11);
  uint64_t c = frame(f, LJP_FRAME_CFUNC, LIBMINE, WORK);
  uint64_t code = frame(c, LJP_FRAME_HOST, LIBMINE, WORK + 1);
  uint64_t helper = frame(code, LJP_FRAME_HOST, LIBMINE, HELPER + 1);
  uint64_t g = frame(helper, LJP_FRAME_LUA, G, 21);
  uint64_t nameless = frame(f, LJP_FRAME_CFUNC, LIBMINE, 0x900);
  uint64_t inside = frame(nameless, LJP_FRAME_HOST, LIBMINE, 0x944);
  sample(c, 2);
  sample(code, 3);
  sample(helper, 5);
  sample(g, 7);
  sample(inside, 11);
  sample(pmain, 13);
  struct ljp_profile *p = finish_folded();
  assert_int_equal(count_at(p, "f a.lua:10;work"), 2 + 3 + 5);
  assert_int_equal(count_at(p, "f a.lua:10;work;g a.lua:20"), 7);
  assert_int_equal(count_at(p, "f a.lua:10;mine.so+0x900"), 11);
  assert_int_equal(count_at(p, "[outside Lua]"), 13);
  ljp_profile_free(p);
}

static void a_function_of_the_ffi_is_one_frame(void **state)
{
  (void)state;
  for (int named = 0; named < 2; named++) {
    uint64_t host = begin_in_host(named);
    uint64_t f = frame(host, LJP_FRAME_LUA, F, 11);
    uint64_t call = frame(f, LJP_FRAME_BUILTIN, 0, FFI);
    uint64_t vm = frame(call, LJP_FRAME_VM, LIBVM, BC_ADD);
    uint64_t glue = frame(call, LJP_FRAME_HOST, LIBVM, CCALL + 1);
    uint64_t args = frame(glue, LJP_FRAME_HOST, LIBVM, CCALL_ARGS);
    uint64_t ctype = frame(call, LJP_FRAME_HOST, LIBVM, CTYPE);
    uint64_t inlined = frame(call, LJP_FRAME_HOST, LIBVM, CTYPE_INLINED);
    uint64_t sort = frame(glue, LJP_FRAME_HOST, LIBMINE, QSORT + 1);
    uint64_t helper = frame(sort, LJP_FRAME_HOST, LIBMINE, HELPER + 1);
    uint64_t g = frame(helper, LJP_FRAME_LUA, G, 21);
    uint64_t compiled = frame(call, LJP_FRAME_HOST, LIBMINE, QSORT);
    sample(vm, 2);
    sample(args, 3);
    sample(ctype, 13);
    sample(inlined, 17);
    sample(helper, 5);
    sample(g, 7);
    sample(compiled, 11);
    struct ljp_profile *p = finish_folded();
    assert_int_equal(count_at(p, "f a.lua:10;ffi.meta.__call"),
                     2 + 3 + 13 + 17);
    assert_int_equal(count_at(p, named ? "f a.lua:10;qsort"
                                       : "f a.lua:10;(function of mine.so)"),
                     5 + 11);
    assert_int_equal(
        count_at(p, named ? "f a.lua:10;qsort;g a.lua:20"
                          : "f a.lua:10;(function of mine.so);g a.lua:20"),
        7);
    ljp_profile_free(p);
  }
}

static void the_collector_has_a_frame(void **state)
{
  (void)state;
  for (int named = 0; named < 2; named++) {
    uint64_t host = begin_in_host(named);
    uint64_t f = frame(host, LJP_FRAME_LUA, F, 11);
    uint64_t tab = frame(f, LJP_FRAME_HOST, LIBVM, TAB_NEW + 1);
    uint64_t step = frame(tab, LJP_FRAME_HOST, LIBVM, GC_STEP + 1);
    uint64_t sweep = frame(step, LJP_FRAME_HOST, LIBVM, GC_SWEEP);
    uint64_t finalizer = frame(step, LJP_FRAME_LUA, G, 21);
    uint64_t closing = frame(host, LJP_FRAME_HOST, LIBVM, GC_STEP + 1);
    sample(tab, 2);
    sample_in(step, LJP_VMSTATE_GC, 3);
    sample_in(sweep, LJP_VMSTATE_GC, 5);
    sample(finalizer, 7);
    sample_in(closing, LJP_VMSTATE_GC, 11);
    sample_in(f, LJP_VMSTATE_GC, 13);
    struct ljp_profile *p = finish_folded();
    assert_int_equal(count_at(p, "f a.lua:10"), 2);
    assert_int_equal(count_at(p, "f a.lua:10;[garbage collector]"), 3 + 5 + 13);
    /* Without symbols, only the state tells the collector. */
    assert_int_equal(
        count_at(p, named ? "f a.lua:10;[garbage collector];g a.lua:20"
                          : "f a.lua:10;g a.lua:20"),
        7);
    assert_int_equal(count_at(p, "[garbage collector]"), 11);
    ljp_profile_free(p);
  }
}

static void stacks_without_lua_are_one_row(void **state)
{
  (void)state;
  uint64_t host = begin_in_host(true);
  uint64_t kernel = frame(host, LJP_FRAME_KERNEL, 0, 0);
  uint64_t own = frame(host, LJP_FRAME_PROFILER, 0, 0);
  uint64_t trace = frame(host, LJP_FRAME_TRACE, 0, 3);
  uint64_t code = frame(trace, LJP_FRAME_HOST, LIBVM, TAB_NEW);
  uint64_t cut = frame(0, LJP_FRAME_CUT, 0, LJP_CUT_NO_TABLE);
  uint64_t above = frame(cut, LJP_FRAME_HOST, LIBMINE, MAIN + 1);
  uint64_t c = frame(above, LJP_FRAME_CFUNC, LIBMINE, WORK);
  sample(host, 2);
  sample(kernel, 3);
  sample(own, 5);
  sample(code, 7);
  sample(above, 11);
  sample(c, 13);
  sample(0, 17);
  struct ljp_profile *p = finish_folded();
  assert_int_equal(count_at(p, "[outside Lua]"), 2 + 3);
  assert_int_equal(count_at(p, "[profiler]"), 5);
  assert_int_equal(count_at(p, "(unknown trace 3)"), 7);
  assert_int_equal(count_at(p, "(cut: no unwind table for the address)"), 11);
  assert_int_equal(count_at(p, "(cut: no unwind table for the address);work"),
                   13);
  assert_int_equal(count_at(p, "(no stack)"), 17);
  ljp_profile_free(p);
}

static void rows_are_found_again(void **state)
{
  (void)state;
  uint64_t host = begin_in_host(true);
  uint64_t f = frame(host, LJP_FRAME_LUA, F, 11);
  uint64_t add = frame(f, LJP_FRAME_VM, LIBVM, BC_ADD);
  sample(add, 3);
  sample(host, 5);
  struct ljp_profile *p = finish();
  uint32_t map[16] = {0}, rows = p->row_count;
  uint64_t counts[16];
  assert_in_range(rows, 2, 16);
  for (uint32_t i = 0; i < rows; i++)
    counts[i] = p->rows[i].count;
  assert_int_equal(ljp_profile_fold(p, map), LJP_OK);
  for (uint32_t i = 0; i < rows; i++)
    assert_int_equal(p->rows[map[i]].count, counts[i]);
  ljp_profile_free(p);
}

/* Both views. */
#define AT(name) (0x401 + 2 * (name))
static void our_hooks_are_no_work_of_the_program(void **state)
{
  (void)state;
  uint64_t host = begin_in_host(true);
  enum { HOOK, INNER, OURS, FRESH, GIVEN, LATE, PARSE, ENTER, LIKE };
  static const char *const names[] = {
      "ljp_hook_gc",     "map_put",   "ljp_every_hook", "every_fresh",
      "lj_alloc_malloc", "proto_add", "fs_finish",      "ljp_hook_enter_call",
      "ljp_like"};
  for (unsigned i = 0; i < 2 * sizeof names / sizeof *names; i++)
    symbol(i / 2 == LIKE ? LIBMINE : LIBVM, 0x400 + i, 0, names[i / 2]);
  uint64_t f = frame(host, LJP_FRAME_LUA, F, 11);
  uint64_t add = frame(f, LJP_FRAME_VM, LIBVM, BC_ADD);
  uint64_t tab = frame(f, LJP_FRAME_HOST, LIBVM, TAB_NEW + 1);
  uint64_t hook = frame(tab, LJP_FRAME_HOST, LIBVM, AT(HOOK));
  uint64_t inner = frame(hook, LJP_FRAME_HOST, LIBVM, AT(INNER));
  uint64_t libc = frame(inner, LJP_FRAME_HOST, LIBMINE, QSORT + 1);
  uint64_t kernel = frame(libc, LJP_FRAME_KERNEL, 0, 0);
  uint64_t known = frame(inner, LJP_FRAME_PROFILER, 0, 0);
  uint64_t collector = frame(inner, LJP_FRAME_HOST, LIBVM, GC_STEP + 1);
  uint64_t finalizer = frame(inner, LJP_FRAME_LUA, G, 21);
  uint64_t allocator = frame(tab, LJP_FRAME_HOST, LIBVM, AT(OURS));
  uint64_t place = frame(allocator, LJP_FRAME_HOST, LIBMINE, QSORT + 1);
  uint64_t fresh = frame(allocator, LJP_FRAME_HOST, LIBVM, AT(FRESH));
  uint64_t given = frame(fresh, LJP_FRAME_HOST, LIBVM, AT(GIVEN));
  uint64_t parse = frame(f, LJP_FRAME_HOST, LIBVM, AT(PARSE));
  uint64_t late = frame(parse, LJP_FRAME_HOST, LIBVM, AT(LATE));
  uint64_t like = frame(f, LJP_FRAME_CFUNC, LIBMINE, AT(LIKE));
  uint64_t enter = frame(f, LJP_FRAME_HOST, LIBVM, AT(ENTER));
  uint64_t entered = frame(enter, LJP_FRAME_HOST, LIBMINE, QSORT + 1);
  sample(enter, 47);
  sample(entered, 53);
  sample(add, 2);
  sample(hook, 3);
  sample(inner, 5);
  sample(libc, 7);
  sample(kernel, 11);
  sample(known, 13);
  sample(collector, 17);
  sample(finalizer, 19);
  sample(allocator, 23);
  sample(place, 29);
  sample(fresh, 31);
  sample(given, 37);
  sample(late, 41);
  sample(like, 43);
  struct ljp_profile *p = finish();
#define IN_F "main;lua_pcall;f a.lua:10;"
  same_sums(p);
  assert_int_equal(count_at(p, IN_F "lj_tab_new;[profiler]"),
                   3 + 5 + 7 + 11 + 13 + 23 + 31);
  assert_int_equal(count_at(p, IN_F "lj_tab_new;lj_gc_step"), 17);
  assert_int_equal(count_at(p, IN_F "lj_tab_new;g a.lua:20"), 19);
  /* What our allocator calls is the program's allocator. */
  assert_int_equal(count_at(p, IN_F "lj_tab_new;qsort"), 29);
  assert_int_equal(count_at(p, IN_F "lj_tab_new;lj_alloc_malloc"), 37);
  assert_int_equal(count_at(p, IN_F "fs_finish;[profiler]"), 41);
  assert_int_equal(count_at(p, IN_F "ljp_like"), 43);
  /* A hook that runs the program's code. */
  assert_int_equal(count_at(p, IN_F "ljp_hook_enter_call"), 47);
  assert_int_equal(count_at(p, IN_F "ljp_hook_enter_call;qsort"), 53);
#undef IN_F
  assert_int_equal(ljp_profile_fold(p, NULL), LJP_OK);
  same_sums(p);
  assert_int_equal(count_at(p, "f a.lua:10"), 2 + 29 + 37 + 47 + 53);
  assert_int_equal(count_at(p, "f a.lua:10;[profiler]"),
                   3 + 5 + 7 + 11 + 13 + 23 + 31 + 41);
  ljp_profile_free(p);
}

/* Every kind of frame above every other, three deep, in two states: folding
** keeps the sums, and folding again changes nothing. */
static void folding_again_changes_nothing(void **state)
{
  (void)state;
  static const struct {
    unsigned kind;
    uint64_t ref, value;
  } all[] = {{LJP_FRAME_LUA, F, 11},           {LJP_FRAME_LUA_INLINED, G, 21},
             {LJP_FRAME_BUILTIN, 0, SORT},     {LJP_FRAME_BUILTIN, 0, FFI},
             {LJP_FRAME_CFUNC, LIBMINE, WORK}, {LJP_FRAME_HOST, LIBMINE, QSORT},
             {LJP_FRAME_HOST, LIBVM, GC_STEP}, {LJP_FRAME_HOST, LIBVM, CCALL},
             {LJP_FRAME_VM, LIBVM, BC_ADD},    {LJP_FRAME_TRACE, 0, 3},
             {LJP_FRAME_KERNEL, 0, 0},         {LJP_FRAME_CUT, 0, 1},
             {LJP_FRAME_PROFILER, 0, 0},       {15, 0, 9}};
  enum { MANY = sizeof all / sizeof *all };
  for (int named = 0; named < 2; named++) {
    begin_in_host(named);
    for (unsigned i = 0; i < MANY; i++) {
      uint64_t a = frame(0, all[i].kind, all[i].ref, all[i].value);
      for (unsigned j = 0; j < MANY; j++) {
        uint64_t b = frame(a, all[j].kind, all[j].ref, all[j].value);
        for (unsigned k = 0; k < MANY; k++) {
          uint64_t c = frame(b, all[k].kind, all[k].ref, all[k].value);
          sample_in(c, k % 2 ? LJP_VMSTATE_GC : LJP_VMSTATE_C, 1 + k % 3);
        }
      }
    }
    struct ljp_profile *p = finish_folded();
    uint32_t rows = p->row_count, functions = p->function_count;
    for (uint32_t i = 0; i < p->node_count; i++)
      assert_true(p->frames[p->nodes[i].frame].kind != LJP_FRAME_HOST &&
                  p->frames[p->nodes[i].frame].kind != LJP_FRAME_VM);
    assert_int_equal(ljp_profile_fold(p, NULL), LJP_OK);
    same_sums(p);
    assert_int_equal(p->row_count, rows);
    assert_int_equal(p->function_count, functions);
    ljp_profile_free(p);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(machine_code_counts_for_the_function_that_runs_it),
      cmocka_unit_test(a_c_function_has_what_it_calls_but_not_lua),
      cmocka_unit_test(a_function_of_the_ffi_is_one_frame),
      cmocka_unit_test(the_collector_has_a_frame),
      cmocka_unit_test(stacks_without_lua_are_one_row),
      cmocka_unit_test(rows_are_found_again),
      cmocka_unit_test(our_hooks_are_no_work_of_the_program),
      cmocka_unit_test(folding_again_changes_nothing),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  shape_free();
  return failed;
}
