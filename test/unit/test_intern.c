/* The stack tree, the table of definitions, and modules over time. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/writer/definitions.h"
#include "src/writer/intern.h"
#include "src/writer/modules.h"

/* The node of one word below parent; LJP_NO_NODE: no room. */
static uint32_t child(struct ljp_intern *t, uint32_t parent, uint64_t word)
{
  uint32_t node = LJP_NO_NODE;
  return ljp_intern_path(t, parent, &word, 1, &node) ? node : LJP_NO_NODE;
}

static void the_same_path_is_one_node_another_is_another(void **state)
{
  (void)state;
  struct ljp_intern t;
  assert_int_equal(ljp_intern_init(&t, 1024), LJP_OK);
  uint32_t a = child(&t, LJP_NO_NODE, 11);
  uint32_t b = child(&t, a, 13);
  uint32_t c = child(&t, LJP_NO_NODE, 13);
  assert_int_not_equal(b, c);
  assert_int_equal(child(&t, a, 13), b);
  assert_int_equal(t.nodes[b].parent, a);
  assert_int_equal(ljp_intern_id(&t, a), 1);
  ljp_intern_fini(&t);
}

static void a_table_that_grew_still_knows_all(void **state)
{
  (void)state;
  struct ljp_intern t;
  enum { N = 8192 };
  assert_int_equal(ljp_intern_init(&t, N), LJP_OK);
  for (uint32_t i = 0; i < N; i++)
    assert_int_equal(child(&t, i ? i / 3 : LJP_NO_NODE, i * 7919u), i);
  for (uint32_t i = 0; i < N; i++)
    assert_int_equal(child(&t, i ? i / 3 : LJP_NO_NODE, i * 7919u), i);
  assert_int_equal(child(&t, 1, 1), LJP_NO_NODE);
  ljp_intern_fini(&t);
}

static void ids_are_not_used_again_after_clearing(void **state)
{
  (void)state;
  struct ljp_intern t;
  assert_int_equal(ljp_intern_init(&t, 16), LJP_OK);
  for (uint64_t i = 0; i < 13; i++)
    child(&t, LJP_NO_NODE, i);
  ljp_intern_clear(&t);
  uint32_t again = child(&t, LJP_NO_NODE, 5);
  assert_int_equal(ljp_intern_id(&t, again), 14);
  assert_int_equal(t.nodes[again].epoch, 0);
  ljp_intern_fini(&t);
}

/* Compares with a list of nodes that is searched from end to end. */
static void paths_share_just_what_they_have_in_common(void **state)
{
  (void)state;
  enum { MAX = 4096, DEPTH = 11 };
  static struct ljp_node list[MAX];
  struct ljp_intern t;
  uint32_t count = 0, seed = 2463534242u, rounds = 0;
  assert_int_equal(ljp_intern_init(&t, MAX), LJP_OK);
  for (; count <= MAX - DEPTH; rounds++) {
    uint64_t words[DEPTH];
    uint32_t chain[DEPTH], parent = LJP_NO_NODE;
    for (unsigned i = 0; i < DEPTH; i++) {
      seed = seed * 1103515245u + 12345;
      words[i] = seed >> 16 & (i % 3 ? 1 : 3);
    }
    /* In two steps, like a stack whose beginning the writer knows. */
    unsigned half = seed >> 8 & 7;
    assert_int_equal(ljp_intern_path(&t, parent, words, half, chain), half);
    assert_int_equal(ljp_intern_path(&t, half ? chain[half - 1] : parent,
                                     words + half, DEPTH - half, chain + half),
                     DEPTH - half);
    for (unsigned i = 0; i < DEPTH; i++) {
      uint32_t k = 0;
      while (k < count &&
             (list[k].word != words[i] || list[k].parent != parent))
        k++;
      if (k == count)
        list[count++] = (struct ljp_node){.word = words[i], .parent = parent};
      assert_int_equal(chain[i], k);
      parent = k;
    }
    assert_int_equal(t.count, count);
  }
  assert_true(rounds * DEPTH > count * 2); /* Many nodes were known. */
  ljp_intern_fini(&t);
}

static void a_full_table_says_how_far_it_came(void **state)
{
  (void)state;
  struct ljp_intern t;
  const uint64_t words[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  uint32_t chain[12];
  assert_int_equal(ljp_intern_init(&t, 16), LJP_OK);
  assert_int_equal(ljp_intern_path(&t, LJP_NO_NODE, words, 12, chain), 12);
  assert_int_equal(ljp_intern_path(&t, chain[6], words, 12, chain), 4);
  assert_int_equal(t.count, 16);
  assert_int_equal(ljp_intern_path(&t, LJP_NO_NODE, words, 12, chain), 12);
  assert_int_equal(chain[11], 11);
  ljp_intern_fini(&t);
}

static void definitions_are_kept_replaced_and_purged(void **state)
{
  (void)state;
  struct ljp_defs d;
  uint8_t bytes[] = {1, 2, 3};
  assert_int_equal(ljp_defs_init(&d), LJP_OK);
  for (uint64_t i = 0; i < 1009; i++) {
    bytes[0] = (uint8_t)i;
    assert_non_null(ljp_defs_put(&d, LJP_DEF_PROTO, i, i + 5, bytes, 3));
    assert_non_null(ljp_defs_put(&d, LJP_DEF_VM, i, i, bytes, 2));
  }
  assert_int_equal(d.bytes, 1009 * (5 + 2 * LJP_DEF_OVERHEAD));
  assert_null(ljp_defs_find(&d, LJP_DEF_TRACE, 5));
  assert_int_equal(ljp_defs_find(&d, LJP_DEF_PROTO, 997)->id, 1002);
  assert_int_equal(ljp_defs_find(&d, LJP_DEF_PROTO, 997)->record[0],
                   (uint8_t)997);
  for (uint64_t i = 0; i < 1009; i += 3)
    ljp_defs_find(&d, LJP_DEF_VM, i)->ended = true;
  ljp_defs_purge(&d, false);
  for (uint64_t i = 0; i < 1009; i++) {
    assert_int_equal(!ljp_defs_find(&d, LJP_DEF_VM, i), i % 3 == 0);
    assert_non_null(ljp_defs_find(&d, LJP_DEF_PROTO, i));
  }
  ljp_defs_purge(&d, true);
  assert_null(ljp_defs_find(&d, LJP_DEF_PROTO, 5));
  assert_non_null(ljp_defs_find(&d, LJP_DEF_VM, 5));
  assert_int_equal(d.count, 672);
  assert_int_equal(d.bytes, 672 * (2 + LJP_DEF_OVERHEAD));
  ljp_defs_fini(&d);
}

static void a_gone_module_is_kept_until_its_nodes_go(void **state)
{
  (void)state;
  struct ljp_defs d;
  uint8_t byte = 9;
  assert_int_equal(ljp_defs_init(&d), LJP_OK);
  ljp_defs_put(&d, LJP_DEF_MODULE, 7, 7, &byte, 1)->ended = true;
  ljp_defs_purge(&d, false);
  assert_non_null(ljp_defs_find(&d, LJP_DEF_MODULE, 7));
  ljp_defs_purge(&d, true);
  assert_null(ljp_defs_find(&d, LJP_DEF_MODULE, 7));
  ljp_defs_fini(&d);
}

static void this_function_is_found_in_the_program_itself(void **state)
{
  (void)state;
  struct ljp_modules m;
  bool settled;
  ljp_modules_init(&m);
  assert_int_equal(ljp_modules_look(&m, 1000), LJP_OK);
  uint64_t here =
      (uint64_t)(uintptr_t)&this_function_is_found_in_the_program_itself;
  const struct ljp_module *found = ljp_modules_find(&m, here, 900, &settled);
  assert_non_null(found);
  assert_true(settled);
  assert_true(found->flags & 1);
  assert_non_null(strstr(found->path, "test_intern"));
  found = ljp_modules_find(&m, (uint64_t)(uintptr_t)&malloc, 900, &settled);
  assert_non_null(found);
  assert_null(ljp_modules_find(&m, 16, 900, &settled));
  uint32_t generation = m.generation;
  assert_int_equal(ljp_modules_look(&m, 2000), LJP_OK);
  assert_int_equal(m.generation, generation);
  ljp_modules_fini(&m);
}

/* The old module was seen until 200. The look at 300 missed it and found the
** new one. */
static void between_two_looks_neither_library_is_named(void **state)
{
  (void)state;
  struct ljp_module list[] = {
      {.id = 2, .start = 100, .end = 200, .maybe_from_ns = 200},
      {.id = 1, .start = 100, .end = 200, .until_ns = 200, .gone_ns = 300}};
  struct ljp_modules m = {.list = list, .loaded = 1, .count = 2};
  bool settled;
  assert_int_equal(ljp_modules_find(&m, 150, 199, &settled)->id, 1);
  assert_false(settled);
  assert_null(ljp_modules_find(&m, 150, 250, &settled));
  assert_false(settled);
  assert_int_equal(ljp_modules_find(&m, 150, 301, &settled)->id, 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_path_is_one_node_another_is_another),
      cmocka_unit_test(a_table_that_grew_still_knows_all),
      cmocka_unit_test(ids_are_not_used_again_after_clearing),
      cmocka_unit_test(paths_share_just_what_they_have_in_common),
      cmocka_unit_test(a_full_table_says_how_far_it_came),
      cmocka_unit_test(definitions_are_kept_replaced_and_purged),
      cmocka_unit_test(a_gone_module_is_kept_until_its_nodes_go),
      cmocka_unit_test(this_function_is_found_in_the_program_itself),
      cmocka_unit_test(between_two_looks_neither_library_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
