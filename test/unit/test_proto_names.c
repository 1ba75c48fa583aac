/*
** Names of functions that outlive their surroundings: each exists once, and its
** memory is used again.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "src/base/describe.h"
#include "src/luajit/functions/proto_names.h"

static uint32_t get(const char *name)
{
  return ljp_proto_name_get(name, strlen(name));
}

static void equal_names_have_one_number(void **state)
{
  (void)state;
  uint32_t a = ljp_proto_name_get("handler", 7);
  uint32_t b = ljp_proto_name_get("hand", 4);
  assert_true(a > 0 && a < LJP_PROTO_NAMES_END);
  assert_int_not_equal(a, b);
  assert_int_equal(ljp_proto_name_get("handler of what follows", 7), a);
  assert_string_equal(ljp_proto_name(a), "handler");
  assert_string_equal(ljp_proto_name(b), "hand");
  ljp_proto_name_put(a);
  ljp_proto_name_put(b);
  assert_string_equal(ljp_proto_name(a), "handler"); /* one user is left */
  ljp_proto_name_put(a);
}

static void no_name_is_number_0(void **state)
{
  (void)state;
  assert_string_equal(ljp_proto_name(0), "");
  ljp_proto_name_put(0);
  uint32_t empty = get("");
  assert_string_equal(ljp_proto_name(empty), "");
  ljp_proto_name_put(empty);
}

static void a_name_ends_at_a_zero_byte_or_at_the_bound(void **state)
{
  char text[2 * LJP_NAME_BYTES];
  (void)state;
  uint32_t a = ljp_proto_name_get("ab\0cd", 5);
  assert_string_equal(ljp_proto_name(a), "ab");
  memset(text, 'x', sizeof text);
  uint32_t b = ljp_proto_name_get(text, sizeof text);
  assert_int_equal(strlen(ljp_proto_name(b)), LJP_NAME_BYTES - 1);
  assert_int_equal(ljp_proto_name_get(text, LJP_NAME_BYTES - 1), b);
  ljp_proto_name_put(a);
  ljp_proto_name_put(b);
  ljp_proto_name_put(b);
}

/* A name of 1 to 67 letters and a number. */
static const char *name_of(uint32_t i)
{
  static char text[96];
  snprintf(text, sizeof text, "%.*s%u", (int)(i % 67),
           "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmn",
           i);
  return text;
}

enum { MANY = 10007 };

static void many_names_stay_apart(void **state)
{
  static uint32_t number[MANY];
  uint32_t highest = 0;
  (void)state;
  for (int pass = 0; pass < 3; pass++) {
    for (uint32_t i = 0; i < MANY; i++) {
      number[i] = get(name_of(i));
      assert_true(number[i] > 0);
      if (pass == 0 && number[i] > highest)
        highest = number[i];
      assert_true(number[i] <= highest); /* in the memory of the first pass */
    }
    for (uint32_t i = 0; i < MANY; i++)
      assert_string_equal(ljp_proto_name(number[i]), name_of(i));
    /* In the second pass some stay, and the rest comes back. */
    for (uint32_t i = 0; i < MANY; i++)
      if (pass != 1 || i % 3 == 0)
        ljp_proto_name_put(number[i]);
    for (uint32_t i = 0; pass == 1 && i < MANY; i++)
      if (i % 3)
        assert_string_equal(ljp_proto_name(number[i]), name_of(i));
  }
  for (uint32_t i = 0; i < MANY; i++)
    if (i % 3)
      ljp_proto_name_put(number[i]); /* its user of the second pass */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_names_have_one_number),
      cmocka_unit_test(no_name_is_number_0),
      cmocka_unit_test(a_name_ends_at_a_zero_byte_or_at_the_bound),
      cmocka_unit_test(many_names_stay_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
