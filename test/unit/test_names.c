/*
** Names for people: of chunks as LuaJIT shows them, and of the stream's numbers.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "parsers/stream/names.h"

static void chunks_are_named_as_luajit_names_them(void **state)
{
  static const char *const cases[][2] = {
      {"", "[string \"\"]"},
      {"@", "@"},
      {"=", "="},
      {"@a", "a"},
      {"@lib/app.lua", "lib/app.lua"},
      {"=stdin", "stdin"},
      {"@two\nlines", "two\nlines"},
      {"x", "[string \"x\"]"},
      {"return 1", "[string \"return 1\"]"},
      {"return 1\n", "[string \"return 1...\"]"},
      {"\nreturn 1", "[string \"...\"]"},
      {"0123456789012345678901234567890123456789",
       "[string \"0123456789012345678901234567890123456789\"]"},
      {"01234567890123456789012345678901234567890",
       "[string \"0123456789012345678901234567890123456789...\"]"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char room[LJP_CHUNK_NAME_BYTES], text[LJP_CHUNK_NAME_BYTES];
    struct ljp_str name = ljp_chunk_name(
        (struct ljp_str){cases[i][0], (uint32_t)strlen(cases[i][0])}, room);
    assert_true(name.len < sizeof text);
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    assert_string_equal(text, cases[i][1]);
  }
}

static void numbers_have_the_names_of_their_list(void **state)
{
  (void)state;
  assert_string_equal(ljp_name_shown(LJP_SHOW_RECORD, LJP_REC_MARK),
                      ljp_name_record(LJP_REC_MARK));
  assert_string_not_equal(ljp_name_record(LJP_REC_MARK),
                          ljp_name_record(LJP_REC_END));
  for (unsigned show = 0; show <= LJP_SHOW_STATUS; show++)
    assert_null(ljp_name_shown((enum ljp_show)show, UINT64_MAX));
  assert_null(ljp_name_shown(LJP_SHOW_TEXT, LJP_REC_MARK));
}

static void numbers_of_objects_are_named_by_their_place(void **state)
{
  (void)state;
  assert_string_equal(ljp_name_heap_number(LJP_MEM_TYPE_TRACE, 0), "number");
  assert_string_equal(ljp_name_heap_number(LJP_MEM_TYPE_TRACE, 1), "code");
  assert_string_equal(ljp_name_heap_number(LJP_MEM_TYPE_TRACE, 2),
                      "code_bytes");
  for (unsigned type = 0; type < 32; type++)
    for (unsigned i = 0; i < 8; i++)
      assert_int_equal(ljp_name_heap_number(type, i) != NULL,
                       i < ljp_heap_numbers(type));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chunks_are_named_as_luajit_names_them),
      cmocka_unit_test(numbers_have_the_names_of_their_list),
      cmocka_unit_test(numbers_of_objects_are_named_by_their_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
