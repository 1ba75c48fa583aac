/* The names of the files of a store. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/store_name.h"

static void a_name_says_service_time_sequence_and_process(void **state)
{
  (void)state;
  const struct ljp_store_name name = {.service = "my-app.lua",
                                      .time_s = 1795832100,
                                      .sequence = 42,
                                      .pid = 4711};
  char text[LJP_STORE_NAME_BYTES];
  ljp_store_name_put(text, &name);
  assert_string_equal(text, "my-app.lua-20261128T021500Z-00000042-4711.ljp");
  struct ljp_store_name again;
  assert_true(ljp_store_name_parse(text, &again));
  assert_string_equal(again.service, "my-app.lua");
  assert_int_equal(again.time_s, 1795832100);
  assert_int_equal(again.sequence, 42);
  assert_int_equal(again.pid, 4711);
}

static void a_merged_file_has_no_process(void **state)
{
  (void)state;
  struct ljp_store_name name;
  assert_true(ljp_store_name_parse("nginx-20240229T235959Z-00000007-merged.ljp",
                                   &name));
  assert_int_equal(name.pid, 0);
  assert_int_equal(name.sequence, 7);
  char text[LJP_STORE_NAME_BYTES];
  ljp_store_name_put(text, &name);
  assert_string_equal(text, "nginx-20240229T235959Z-00000007-merged.ljp");
}

/* Against the C library: a prime number of seconds apart. */
static void times_are_those_of_gmtime(void **state)
{
  (void)state;
  for (uint64_t t = 0; t < UINT64_C(253402300800); t += 86028121) {
    struct ljp_store_name name = {
        .service = "x", .time_s = t, .sequence = 1, .pid = 1};
    char text[LJP_STORE_NAME_BYTES], wanted[LJP_STORE_NAME_BYTES];
    time_t seconds = (time_t)t;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(wanted, sizeof wanted, "x-%Y%m%dT%H%M%SZ-00000001-1.ljp", &tm);
    ljp_store_name_put(text, &name);
    assert_string_equal(text, wanted);
    assert_true(ljp_store_name_parse(text, &name));
    assert_int_equal(name.time_s, t);
  }
}

static void other_names_are_refused(void **state)
{
  (void)state;
  static const char *const others[] = {
      "",
      ".ljp",
      "app.ljp",
      "app.ljp.s1",
      "-20261128T021500Z-00000042-4711.ljp",
      "app-20261128T021500Z-00000042-4711.ljp.ljp-12-0",
      "app-20261128T021500Z-00000042-4711",
      "app-20261128T021500Z-00000042-.ljp",
      "app-20261128T021500Z-00000042-0.ljp",
      "app-20261128T021500Z-00000042-12x.ljp",
      "app-20261128T021500Z--4711.ljp",
      "app-20261128T021500Z-0000000000042-4711.ljp",
      "app-20261128t021500Z-00000042-4711.ljp",
      "app-20261328T021500Z-00000042-4711.ljp",
      "app-20261128T241500Z-00000042-4711.ljp",
      "app-2026112T021500Z-00000042-4711.ljp",
      "app_20261128T021500Z-00000042-4711.ljp",
      ".app-20261128T021500Z-00000042-4711.ljp",
      "a/b-20261128T021500Z-00000042-4711.ljp",
      "a\n-20261128T021500Z-00000042-4711.ljp"};
  struct ljp_store_name name;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (ljp_store_name_parse(others[i], &name))
      fail_msg("'%s' is accepted", others[i]);
  char longest[400];
  memset(longest, 'a', sizeof longest);
  strcpy(longest + 65, "-20261128T021500Z-00000042-4711.ljp");
  assert_false(ljp_store_name_parse(longest, &name));
  strcpy(longest + 64, "-20261128T021500Z-00000042-4711.ljp");
  assert_true(ljp_store_name_parse(longest, &name));
}

static void a_service_is_made_of_any_text(void **state)
{
  (void)state;
  char out[LJP_STORE_SERVICE_BYTES], text[200];
  ljp_store_service_make(out, "my app/\xc3\xa4.lua");
  assert_string_equal(out, "my_app___.lua");
  ljp_store_service_make(out, "...");
  assert_string_equal(out, "x");
  memset(text, 'b', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  ljp_store_service_make(out, text);
  assert_int_equal(strlen(out), 64);
  assert_true(ljp_store_service_valid(out));
  assert_false(ljp_store_service_valid(""));
  assert_false(ljp_store_service_valid(".hidden"));
  assert_false(ljp_store_service_valid("a b"));
  assert_false(ljp_store_service_valid(text));
}

static void the_sequence_counts_more_than_the_time(void **state)
{
  (void)state;
  const struct ljp_store_name first = {
      .service = "a", .time_s = 2000, .sequence = 9, .pid = 5};
  const struct ljp_store_name set_back = {
      .service = "a", .time_s = 1000, .sequence = 10, .pid = 5};
  const struct ljp_store_name twin = {
      .service = "a", .time_s = 1000, .sequence = 10, .pid = 6};
  assert_true(ljp_store_name_compare(&first, &set_back) < 0);
  assert_true(ljp_store_name_compare(&set_back, &first) > 0);
  assert_true(ljp_store_name_compare(&set_back, &twin) < 0);
  assert_int_equal(ljp_store_name_compare(&twin, &twin), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_says_service_time_sequence_and_process),
      cmocka_unit_test(a_merged_file_has_no_process),
      cmocka_unit_test(times_are_those_of_gmtime),
      cmocka_unit_test(other_names_are_refused),
      cmocka_unit_test(a_service_is_made_of_any_text),
      cmocka_unit_test(the_sequence_counts_more_than_the_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
