/*
** Sets of labels: each has one number, whoever asks; there is a limit.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profilers/session/labels.h"

static uint32_t number(const char *key, const char *value)
{
  struct ljp_labels labels = {.count = 0};
  uint32_t set;
  assert_true(ljp_labels_put(&labels, key, value));
  assert_true(ljp_labels_intern(&labels, &set));
  return set;
}

static uint32_t pair(const char *key, const char *value, const char *other,
                     const char *other_value)
{
  struct ljp_labels labels = {.count = 0};
  uint32_t set;
  assert_true(ljp_labels_put(&labels, key, value) &&
              ljp_labels_put(&labels, other, other_value));
  assert_true(ljp_labels_intern(&labels, &set));
  return set;
}

static void a_set_is_the_same_in_any_order(void **state)
{
  (void)state;
  struct ljp_labels a = {.count = 0}, b = {.count = 0}, got;
  uint32_t first, second;
  assert_true(ljp_labels_put(&a, "route", "/a") &&
              ljp_labels_put(&a, "host", "h") &&
              ljp_labels_put(&a, "tenant", ""));
  assert_true(
      ljp_labels_put(&b, "tenant", "") && ljp_labels_put(&b, "route", "/b") &&
      ljp_labels_put(&b, "host", "h") && ljp_labels_put(&b, "route", "/a"));
  assert_true(ljp_labels_intern(&a, &first) && ljp_labels_intern(&b, &second));
  assert_true(first != 0);
  assert_int_equal(first, second);
  ljp_labels_get(first, &got);
  assert_int_equal(got.count, 3);
  assert_string_equal(got.list[0].key, "host");
  assert_string_equal(got.list[1].value, "/a");
  assert_string_equal(got.list[2].key, "tenant");
  assert_string_equal(got.list[2].value, "");
  assert_int_equal(ljp_labels_bytes(&got),
                   sizeof "host\0h\0route\0/a\0tenant\0");
}

static void no_labels_are_number_0(void **state)
{
  (void)state;
  struct ljp_labels labels;
  char text[LJP_NAME_BYTES];
  size_t bytes;
  uint32_t set = 7;
  ljp_labels_get(number("route", "/a"), &labels);
  assert_true(ljp_labels_put(&labels, "other", NULL));
  assert_true(ljp_labels_put(&labels, "route", NULL));
  assert_int_equal(labels.count, 0);
  assert_true(ljp_labels_intern(&labels, &set));
  assert_int_equal(set, 0);
  ljp_labels_get(0, &labels);
  assert_int_equal(labels.count, 0);
  assert_false(ljp_labels_describe(0, text, &bytes));
  assert_false(ljp_labels_describe(UINT64_MAX, text, &bytes));
}

static void a_set_has_a_limit(void **state)
{
  (void)state;
  struct ljp_labels labels = {.count = 0};
  char keys[LJP_LABELS_PAIRS + 1][8];
  for (int i = 0; i < LJP_LABELS_PAIRS; i++) {
    snprintf(keys[i], sizeof keys[i], "k%d", i);
    assert_true(ljp_labels_put(&labels, keys[i], "v"));
  }
  assert_false(ljp_labels_put(&labels, "one more", "v"));
  assert_true(ljp_labels_put(&labels, "k3", "w"));
  assert_true(ljp_labels_put(&labels, "k4", NULL));
  assert_true(ljp_labels_put(&labels, "one more", "v"));
}

enum { THREADS = 4, EACH = 500 };
static uint32_t numbers[THREADS][EACH];

static void *intern_many(void *arg)
{
  uint32_t *out = arg;
  char value[16];
  for (int i = 0; i < EACH; i++) {
    snprintf(value, sizeof value, "%d", i);
    out[i] = number("thread", value);
  }
  return NULL;
}

static void threads_agree(void **state)
{
  (void)state;
  pthread_t threads[THREADS];
  struct ljp_labels labels;
  char value[16];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, intern_many, numbers[i]),
                     0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (int k = 0; k < EACH; k++) {
    for (int i = 1; i < THREADS; i++)
      assert_int_equal(numbers[i][k], numbers[0][k]);
    snprintf(value, sizeof value, "%d", k);
    ljp_labels_get(numbers[0][k], &labels);
    assert_string_equal(labels.list[0].value, value);
  }
}

static void beyond_the_limit_values_are_others(void **state)
{
  (void)state;
  struct ljp_labels labels;
  char value[16];
  uint32_t other = 0, known = number("route", "/a");
  for (int i = 0; i < 10000; i++) {
    snprintf(value, sizeof value, "/%d", i);
    other = number("url", value);
  }
  assert_in_range(ljp_labels_others(), 10000 - LJP_LABELS_SETS,
                  10000 - LJP_LABELS_SETS + THREADS * EACH + 8);
  ljp_labels_get(other, &labels);
  assert_string_equal(labels.list[0].key, "url");
  assert_string_equal(labels.list[0].value, "(other)");
  assert_int_equal(number("url", "/9998"), other);
  assert_int_equal(number("route", "/a"), known);
  /* A key with few values keeps them beside one with many. */
  for (int i = 0; i < 100; i++) {
    snprintf(value, sizeof value, "/%d", 5000 + i);
    ljp_labels_get(pair("route", i % 2 ? "/a" : "/b", "url", value), &labels);
    assert_int_equal(labels.count, 2);
    assert_string_equal(labels.list[0].value, i % 2 ? "/a" : "/b");
    assert_string_equal(labels.list[1].value, "(other)");
  }
  /* Keys without end: at last there is no set for them. */
  for (int i = 0; i < 1000; i++) {
    snprintf(value, sizeof value, "k%d", i);
    other = number(value, "x");
  }
  assert_int_equal(other, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_set_is_the_same_in_any_order),
      cmocka_unit_test(no_labels_are_number_0),
      cmocka_unit_test(a_set_has_a_limit),
      cmocka_unit_test(threads_agree),
      cmocka_unit_test(beyond_the_limit_values_are_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
