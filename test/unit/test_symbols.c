/*
** The store of symbols: handles, answers, embedded symbols, notices. The test
** e2e/symbols covers real files.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "parsers/symbols/symbols.h"

static struct ljp_str str(const char *text)
{
  return (struct ljp_str){text, (uint32_t)strlen(text)};
}

static void a_module_is_its_path_and_its_contents(void **state)
{
  struct ljp_symbols *s = ljp_symbols_new(NULL);
  (void)state;
  uint32_t a = ljp_symbols_module(s, str("/x/a.so"), str("\1\2\3"), 4096, 0);
  assert_int_not_equal(a, 0);
  assert_int_equal(
      ljp_symbols_module(s, str("/x/a.so"), str("\1\2\3"), 4096, 0), a);
  assert_int_not_equal(
      ljp_symbols_module(s, str("/x/a.so"), str("\1\2\4"), 4096, 0), a);
  assert_int_not_equal(
      ljp_symbols_module(s, str("/x/b.so"), str("\1\2\3"), 4096, 0), a);
  assert_int_not_equal(
      ljp_symbols_module(s, str("/x/a.so"), str("\1\2\3"), 8192, 0), a);
  assert_int_equal(ljp_symbols_want(s, 0, 1), LJP_ERR_USE);
  assert_int_equal(ljp_symbols_want(s, 5, 1), LJP_ERR_USE);
  ljp_symbols_free(s);
}

static void what_was_not_asked_has_no_answer(void **state)
{
  struct ljp_symbols_options options = {.no_files = true};
  struct ljp_symbols *s = ljp_symbols_new(&options);
  (void)state;
  uint32_t a = ljp_symbols_module(s, str("/x/a.so"), str("\1"), 1, 0);
  assert_int_equal(ljp_symbols_want(s, a, 17), LJP_OK);
  assert_int_equal(ljp_symbols_want(s, a, 17), LJP_OK);
  assert_null(ljp_symbols_get(s, a, 17)); /* Not yet. */
  assert_int_equal(ljp_symbols_resolve(s), LJP_OK);
  assert_int_equal(ljp_symbols_get(s, a, 17)->count, 0);
  assert_null(ljp_symbols_get(s, a, 18));
  assert_null(ljp_symbols_get(s, a + 1, 17));
  assert_null(ljp_symbols_notice(s, 0));
  ljp_symbols_free(s);
}

static void embed(struct ljp_symbols *s, uint32_t module, uint64_t address,
                  uint64_t level, uint32_t line, const char *function,
                  const char *file)
{
  assert_int_equal(ljp_symbols_embedded(s, module, address, level, line,
                                        str(function), str(file)),
                   LJP_OK);
}

static void embedded_levels_are_put_in_order(void **state)
{
  struct ljp_symbols_options options = {.no_files = true};
  struct ljp_symbols *s = ljp_symbols_new(&options);
  (void)state;
  uint32_t a = ljp_symbols_module(s, str("/x/a.so"), str("\1"), 1, 0);
  embed(s, a, 29, 0, 3, "f", "f.c");
  embed(s, a, 17, 1, 11, "outer", "o.c");
  embed(s, a, 17, 0, 7, "inner", "i.c");
  embed(s, a, 17, 0, 7, "inner", "i.c"); /* Repeated in another segment. */
  embed(s, a, 31, 1, 5, "level 0 is lost", "");
  embed(s, a, 37, 0, 0, "", ""); /* Says that nothing was known. */
  for (uint64_t address = 17; address < 41; address += 2)
    assert_int_equal(ljp_symbols_want(s, a, address), LJP_OK);
  assert_int_equal(ljp_symbols_resolve(s), LJP_OK);
  const struct ljp_symbol *symbol = ljp_symbols_get(s, a, 17);
  assert_int_equal(symbol->count, 2);
  assert_string_equal(symbol->frames[0].function, "inner");
  assert_string_equal(symbol->frames[0].file, "i.c");
  assert_int_equal(symbol->frames[0].line, 7);
  assert_string_equal(symbol->frames[1].function, "outer");
  assert_int_equal(symbol->frames[1].line, 11);
  assert_int_equal(ljp_symbols_get(s, a, 29)->count, 1);
  assert_int_equal(ljp_symbols_get(s, a, 31)->count, 0);
  assert_int_equal(ljp_symbols_get(s, a, 37)->count, 0);
  assert_int_equal(
      ljp_symbols_embedded(s, a, 1, 1u << 20, 0, str("x"), str("")),
      LJP_ERR_LIMIT);
  ljp_symbols_free(s);
}

/* With and without a child process. */
static void later_questions_leave_earlier_answers(void **state)
{
  (void)state;
  for (int in_process = 0; in_process < 2; in_process++) {
    struct ljp_symbols_options options = {.in_process = in_process};
    struct ljp_symbols *s = ljp_symbols_new(&options);
    uint32_t a = ljp_symbols_module(s, str("/nothing/there"), str("\1"), 1, 0);
    uint32_t b = ljp_symbols_module(s, str("/"), str("\1"), 1, 0);
    embed(s, a, 17, 0, 7, "known", "");
    for (uint64_t i = 0; i < 1009; i++) {
      ljp_symbols_want(s, a, 17 + i);
      ljp_symbols_want(s, b, i);
    }
    assert_int_equal(ljp_symbols_resolve(s), LJP_OK);
    assert_string_equal(ljp_symbols_notice(s, 0),
                        "/nothing/there: No such file or directory");
    assert_string_equal(ljp_symbols_notice(s, 1), "/: not a regular file");
    assert_null(ljp_symbols_notice(s, 2));
    const struct ljp_symbol_frame *known = ljp_symbols_get(s, a, 17)->frames;
    ljp_symbols_want(s, a, 5);
    ljp_symbols_want(s, a, 17);
    assert_int_equal(ljp_symbols_resolve(s), LJP_OK);
    assert_null(ljp_symbols_notice(s, 2)); /* Only once. */
    assert_ptr_equal(ljp_symbols_get(s, a, 17)->frames, known);
    assert_string_equal(known->function, "known");
    assert_int_equal(ljp_symbols_get(s, a, 5)->count, 0);
    assert_int_equal(ljp_symbols_get(s, b, 1008)->count, 0);
    ljp_symbols_free(s);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_module_is_its_path_and_its_contents),
      cmocka_unit_test(what_was_not_asked_has_no_answer),
      cmocka_unit_test(embedded_levels_are_put_in_order),
      cmocka_unit_test(later_questions_leave_earlier_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
