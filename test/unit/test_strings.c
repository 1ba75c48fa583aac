/* parsers/base: strings, arrays and indexes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/base/array.h"
#include "parsers/base/strings.h"

static struct ljp_str str(const char *text)
{
  return (struct ljp_str){text, (uint32_t)strlen(text)};
}

static void equal_strings_have_one_number(void **state)
{
  enum { STRINGS = 2003 };
  struct ljp_strings s;
  char text[64];
  (void)state;
  assert_int_equal(ljp_strings_init(&s, 1 << 20), LJP_OK);
  for (int round = 0; round < 2; round++)
    for (uint32_t i = 0; i < STRINGS; i++) {
      uint32_t id;
      snprintf(text, sizeof text, "%*u", (int)(i % 53), i);
      assert_int_equal(ljp_strings_add(&s, str(text), &id), LJP_OK);
      assert_int_equal(id, i + 1);
      assert_true(ljp_str_same(s.list[id], str(text)));
    }
  assert_int_equal(s.count, STRINGS + 1);
  ljp_strings_fini(&s);
}

static void the_empty_string_is_number_zero(void **state)
{
  struct ljp_strings s;
  uint32_t id = 7;
  (void)state;
  assert_int_equal(ljp_strings_init(&s, 1 << 20), LJP_OK);
  assert_int_equal(ljp_strings_add(&s, (struct ljp_str){NULL, 0}, &id), LJP_OK);
  assert_int_equal(id, 0);
  ljp_strings_fini(&s);
}

static void a_new_string_beyond_the_limit_is_refused(void **state)
{
  static char text[100003];
  const size_t limit = 150001;
  struct ljp_strings s;
  uint32_t id, again;
  (void)state;
  memset(text, 'x', sizeof text);
  assert_int_equal(ljp_strings_init(&s, limit), LJP_OK);
  struct ljp_str first = {text, sizeof text}, second = {text, sizeof text - 1};
  assert_int_equal(ljp_strings_add(&s, first, &id), LJP_OK);
  assert_int_equal(ljp_strings_add(&s, second, &again), LJP_ERR_LIMIT);
  assert_int_equal(ljp_strings_add(&s, first, &again), LJP_OK);
  assert_int_equal(again, id);
  assert_true(s.bytes <= limit);
  ljp_strings_fini(&s);
}

static void arrays_of_lines_begin_at_a_line(void **state)
{
  uint64_t *items = NULL;
  uint32_t room = 0;
  (void)state;
  for (uint32_t i = 0; i < 1009; i++) {
    assert_true(ljp_array_reserve_lines(&items, i, &room, sizeof *items));
    assert_int_equal((uintptr_t)items % LJP_CACHE_LINE_BYTES, 0);
    items[i] = i;
  }
  for (uint32_t i = 0; i < 1009; i++)
    assert_int_equal(items[i], i);
  free(items);
}

static void a_path_is_cut_to_its_last_component(void **state)
{
  (void)state;
  assert_true(
      ljp_str_same(ljp_base_name(str("/usr/lib/libx.so")), str("libx.so")));
  assert_true(ljp_str_same(ljp_base_name(str("libx.so")), str("libx.so")));
  assert_true(ljp_str_same(ljp_base_name(str("/usr/lib/")), str("/usr/lib/")));
  assert_int_equal(ljp_base_name((struct ljp_str){NULL, 0}).len, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_strings_have_one_number),
      cmocka_unit_test(the_empty_string_is_number_zero),
      cmocka_unit_test(a_new_string_beyond_the_limit_is_refused),
      cmocka_unit_test(arrays_of_lines_begin_at_a_line),
      cmocka_unit_test(a_path_is_cut_to_its_last_component),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
