/*
** Output of untrusted strings: JSON stays valid, terminals are not harmed.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "test/support/json.h"
#include "tools/shared/show.h"

static struct ljp_print out;
static char text[1 << 16];
static size_t len;

static void keep(void *ctx, const char *data, size_t n)
{
  (void)ctx;
  assert_true(len + n < sizeof text);
  memcpy(text + len, data, n);
  len += n;
}

static void begin(void)
{
  len = 0;
  ljp_print_begin(&out, -1);
  out.sink = keep;
}

static const char *end(void)
{
  ljp_print_end(&out);
  text[len] = '\0';
  return text;
}

static void the_judge_of_json_tells_right_from_wrong(void **state)
{
  (void)state;
  const char *right[] = {"{}", "[]", " [1, -2.5e+3, 0, true, null] ",
                         "\"\\u00e4\\n\"",
                         "{\"a\":{\"b\":[{},[]]},\"c\":\"\xc3\xa4\"}"};
  const char *wrong[] = {"",           "{",        "{\"a\"}",
                         "{\"a\":1,}", "[1 2]",    "01",
                         "\"\x01\"",   "\"\xff\"", "\"\\x\"",
                         "[1]]",       "{1:2}",    "\"\xed\xa0\x80\"",
                         "nul",        "[1,,2]",   "\"a",
                         "-",          "1.",       "{\"a\":1 \"b\":2}"};
  for (size_t i = 0; i < sizeof right / sizeof *right; i++)
    assert_true(json_valid(right[i], strlen(right[i])));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(json_valid(wrong[i], strlen(wrong[i])));
  assert_true(json_lines_valid("{}\n{\"a\":1}\n", 11));
  assert_false(json_lines_valid("{}\n[]\n", 6));
  assert_false(json_lines_valid("{}", 2));
}

/* All strings of one and two bytes, and strings of three bytes at the limits of
** UTF-8 sequences. */
static void any_bytes_make_a_json_string(void **state)
{
  (void)state;
  for (unsigned i = 0; i < 1 << 16; i++) {
    char bytes[4] = {(char)i, (char)(i >> 8), (char)0xa4, 'x'};
    for (size_t n = 1; n <= 4; n++) {
      begin();
      ljp_print_json(&out, ljp_str(bytes, n));
      end();
      if (!json_valid(text, len))
        fail_msg("no JSON: %s", text);
    }
  }
}

static void what_is_not_utf8_stands_in_hex_beside_it(void **state)
{
  (void)state;
  struct ljp_shower show = {.out = &out, .json = true};
  begin();
  ljp_show_begin(&show, "t");
  ljp_show_string(&show, "good", ljp_str("\xc3\xa4\"\\\n", 5));
  ljp_show_string(&show, "bad", ljp_str("a\xff\xc3", 3));
  ljp_show_bytes(&show, "id", ljp_str("\x01\xab", 2));
  ljp_show_signed(&show, "n", INT64_MIN);
  ljp_show_number(&show, "u", UINT64_MAX);
  ljp_show_end(&show);
  assert_string_equal(end(),
                      "{\"type\":\"t\",\"good\":\"\xc3\xa4\\\"\\\\\\u000a\","
                      "\"bad\":\"a\\ufffd\\ufffd\",\"bad_hex\":\"61ffc3\","
                      "\"id\":\"01ab\",\"n\":-9223372036854775808,"
                      "\"u\":18446744073709551615}\n");
}

static void nothing_that_moves_a_cursor_is_printed(void **state)
{
  (void)state;
  begin();
  ljp_print_safe(&out, ljp_str("a\x1b[2J\r\n\x7f\0b\xc2\x9b", 12));
  ljp_print_safe(&out, ljp_str("\xe2\x80\xae\\\xff \xc3\xa4", 8));
  assert_string_equal(end(), "a\\x1b[2J\\x0d\\x0a\\x7f\\x00b\\xc2\\x9b"
                             "\\xe2\\x80\\xae\\\\\\xff \xc3\xa4");
}

static void backslashes_are_doubled_only_before_escapes(void **state)
{
  static const char *const cases[][2] = {
      {"C:\\dir\\xampp\\", "C:\\dir\\xampp\\"},
      {"\\w+\\\\n", "\\w+\\\\n"},
      {"\\x1", "\\x1"},
      {"\\x1b", "\\\\x1b"}, /* The text, not the character. */
      {"\x1b", "\\x1b"},
      {"\\\x1b", "\\\\\\x1b"},
      {"\\\\\xff", "\\\\\\\\\\xff"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin();
    ljp_print_safe(&out, ljp_str(cases[i][0], strlen(cases[i][0])));
    assert_string_equal(end(), cases[i][1]);
  }
}

/* C1, two controls of direction, zero width, a line's end, a tag. */
#define HIDDEN                                                                 \
  "\xc2\x9b"                                                                   \
  "\xd8\x9c"                                                                   \
  "\xe2\x80\xae"                                                               \
  "\xe2\x80\x8b"                                                               \
  "\xe2\x80\xa8"                                                               \
  "\xf3\xa0\x81\x81"
static const struct ljp_str hidden = {"a<" HIDDEN "\x9b\t\xc3\xa4", 23};

static void what_hides_in_json_is_escaped_without_loss(void **state)
{
  (void)state;
  begin();
  ljp_print_json(&out, hidden);
  assert_string_equal(end(), "\"a<\\u009b\\u061c\\u202e\\u200b\\u2028"
                             "\\udb40\\udc41\\ufffd\\u0009\xc3\xa4\"");
}

static void what_hides_in_a_page_is_seen_there(void **state)
{
  (void)state;
  begin();
  ljp_print_json_page(&out, hidden);
  assert_string_equal(end(),
                      "\"a\\u003c\\\\u009b\\\\u061c\\\\u202e\\\\u200b"
                      "\\\\u2028\\\\udb40\\\\udc41\\ufffd\\u0009\xc3\xa4\"");
  assert_true(json_valid(text, len));
}

#define FFFD "\xef\xbf\xbd"
static void what_hides_in_a_drawing_or_an_export_is_replaced(void **state)
{
  (void)state;
  begin();
  ljp_print_xml(&out, hidden);
  assert_string_equal(end(), "a&#60;" FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD
                             "\xc3\xa4");
  begin();
  ljp_print_plain(&out, hidden, '<');
  assert_string_equal(end(), "a:      " FFFD " \xc3\xa4");
}

static void output_larger_than_the_buffer_comes_whole(void **state)
{
  (void)state;
  begin();
  for (int i = 0; i < 6000; i++)
    ljp_print_dec(&out, 100000 + (uint64_t)i);
  ljp_print_format(&out, "%s", "!");
  end();
  assert_int_equal(len, 36001);
  assert_memory_equal(text, "100000100001", 12);
  assert_memory_equal(text + len - 7, "105999!", 7);
}

static void a_failed_write_is_remembered(void **state)
{
  (void)state;
  ljp_print_begin(&out, 1023); /* No such descriptor. */
  ljp_print_str(&out, "x");
  assert_int_not_equal(ljp_print_end(&out), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_judge_of_json_tells_right_from_wrong),
      cmocka_unit_test(any_bytes_make_a_json_string),
      cmocka_unit_test(what_is_not_utf8_stands_in_hex_beside_it),
      cmocka_unit_test(nothing_that_moves_a_cursor_is_printed),
      cmocka_unit_test(backslashes_are_doubled_only_before_escapes),
      cmocka_unit_test(what_hides_in_json_is_escaped_without_loss),
      cmocka_unit_test(what_hides_in_a_page_is_seen_there),
      cmocka_unit_test(what_hides_in_a_drawing_or_an_export_is_replaced),
      cmocka_unit_test(output_larger_than_the_buffer_comes_whole),
      cmocka_unit_test(a_failed_write_is_remembered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
