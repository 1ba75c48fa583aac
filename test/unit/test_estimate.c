/*
** Bounds of estimates from samples, for known populations of blocks. Each is
** sampled again and again, as the recorder does it. The true value must be
** within the bounds in at least 95 of 100 trials, and the mean of all estimates
** must be near it. The random numbers are the same in each run.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "parsers/profile/estimate.h"

#define INTERVAL 8192.0

enum { KINDS = 4, TRIALS = 20000 };

struct population {
  const char *text;
  struct {
    uint64_t size, count;
  } of[KINDS];
};

static uint64_t state = 88172645463325252u;

static double random_unit(void) /* (0, 1] */
{
  uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return ((double)((x ^ (x >> 31)) >> 11) + 1) * 0x1p-53;
}

/* Samples the blocks of one size. It draws the number of blocks between two
** samples, so that the time depends on the samples only. */
static void sample(struct ljp_estimate *e, uint64_t size, uint64_t count,
                   double *objects, double *bytes)
{
  double chance = -expm1(-(double)size / INTERVAL);
  uint64_t weight = (uint64_t)((double)size / chance + 0.5);
  double at = 0;
  for (;;) {
    at += 1;
    if (chance < 1)
      at += floor(log(random_unit()) / log1p(-chance));
    if (at > (double)count)
      return;
    ljp_estimate_add(e, size, weight);
    *objects += (double)weight / (double)size;
    *bytes += (double)weight;
  }
}

struct outcome {
  double objects, bytes;             /* True values. */
  double mean_objects, mean_bytes;   /* Of all estimates. */
  double cover_objects, cover_bytes; /* Share of trials within the bounds. */
  double width; /* Of the bounds of bytes, relative to the true value. */
};

static struct outcome try_out(const struct population *p, int trials)
{
  struct outcome o = {0};
  int shown = 0;
  for (int k = 0; k < KINDS; k++) {
    o.objects += (double)p->of[k].count;
    o.bytes += (double)p->of[k].count * (double)p->of[k].size;
  }
  for (int i = 0; i < trials; i++) {
    struct ljp_estimate e = {0};
    double objects = 0, bytes = 0;
    for (int k = 0; k < KINDS; k++)
      if (p->of[k].count)
        sample(&e, p->of[k].size, p->of[k].count, &objects, &bytes);
    struct ljp_bounds b = ljp_estimate_bytes(&e, bytes, INTERVAL);
    assert_true(0 <= b.low && b.low <= bytes && bytes <= b.high);
    o.cover_bytes += b.low <= o.bytes && o.bytes <= b.high;
    o.width += (b.high - b.low) / o.bytes / trials;
    o.mean_objects += objects / trials;
    o.mean_bytes += bytes / trials;
    if (!e.samples) /* Then there is no row, and no estimate. */
      continue;
    shown++;
    b = ljp_estimate_objects(&e, objects, INTERVAL);
    assert_true(0 <= b.low && b.low <= objects && objects <= b.high);
    o.cover_objects += b.low <= o.objects && o.objects <= b.high;
  }
  o.cover_objects /= shown;
  o.cover_bytes /= trials;
  return o;
}

static const struct population one_size[] = {
    {"16 bytes, 0.6 samples", {{16, 307}}},
    {"16 bytes, 1.2 samples", {{16, 613}}},
    {"16 bytes, 3 samples", {{16, 1543}}},
    {"16 bytes, 10 samples", {{16, 5119}}},
    {"16 bytes, 100 samples", {{16, 51199}}},
    {"16 bytes, 1000 samples", {{16, 511997}}},
    {"1 KB, 3 samples", {{1009, 23}}},
    {"1 KB, 30 samples", {{1009, 251}}},
    {"4 KiB, once", {{4093, 1}}},
    {"4 KiB, twice", {{4093, 2}}},
    {"4 KiB, five times", {{4093, 5}}},
    {"the interval, 3 times", {{8191, 3}}},
    {"the interval, 29 times", {{8191, 29}}},
    {"twice the interval, 7 times", {{16381, 7}}},
    {"32 KiB, once", {{32749, 1}}},
    {"32 KiB, 5 times", {{32749, 5}}},
    {"32 KiB, 53 times", {{32749, 53}}},
    {"64 KiB, 997 times", {{65521, 997}}},
    {"1 MB, 13 times", {{1048573, 13}}},
};
static const struct population mixed[] = {
    {"16 bytes to 1 MB",
     {{16, 100003}, {257, 10007}, {4093, 1009}, {1048573, 11}}},
    {"16 bytes to 64 KiB, few",
     {{16, 2503}, {257, 251}, {4093, 23}, {65521, 3}}},
    {"16 bytes to 64 KiB, very few",
     {{16, 499}, {257, 53}, {4093, 5}, {65521, 3}}},
    {"as many bytes of each",
     {{16, 65536}, {256, 4096}, {4096, 256}, {65536, 16}}},
    {"few small ones beside large", {{64, 7}, {65521, 7}}},
    {"small ones beside large", {{16, 256}, {4096, 101}}},
    {"as many of each", {{64, 307}, {1024, 307}, {16384, 307}, {1048576, 307}}},
};

static void check(const struct population *p)
{
  struct outcome o = try_out(p, TRIALS);
  print_message(
      "%-29s in bounds %.2f %% (objects), %.2f %% (bytes), %.2f wide; "
      "mean off by %+.2f %%, %+.2f %%\n",
      p->text, 100 * o.cover_objects, 100 * o.cover_bytes, o.width,
      100 * (o.mean_objects / o.objects - 1),
      100 * (o.mean_bytes / o.bytes - 1));
  assert_true(o.cover_objects >= 0.95);
  assert_true(o.cover_bytes >= 0.95);
  assert_true(fabs(o.mean_objects / o.objects - 1) < 0.02);
  assert_true(fabs(o.mean_bytes / o.bytes - 1) < 0.02);
}

static void bounds_hold_for_blocks_of_one_size(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof one_size / sizeof *one_size; i++)
    check(&one_size[i]);
}

static void bounds_hold_for_blocks_of_many_sizes(void **unused)
{
  (void)unused;
  for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
    check(&mixed[i]);
}

/* Wide bounds are always right. They must not be wider than necessary. */
static void many_samples_have_narrow_bounds(void **unused)
{
  (void)unused;
  struct population p = {"", {{16, 511997}}}; /* 1000 samples. */
  double width = try_out(&p, 100).width;
  assert_true(width > 2 * 2.0 / sqrt(1000) && width < 2 * 2.6 / sqrt(1000));
  p.of[0].count = 51199;
  assert_true(try_out(&p, 100).width < 2 * 2.6 / sqrt(100));
}

/* The exact interval of a Poisson variable from tables: 3 seen, 98 %. */
static void few_samples_have_exact_bounds(void **unused)
{
  (void)unused;
  struct ljp_estimate e = {0};
  for (int i = 0; i < 3; i++)
    ljp_estimate_add(&e, 1, 1000000);
  struct ljp_bounds b = ljp_estimate_bytes(&e, 3e6, 1e6);
  assert_true(fabs(b.low / 1e6 - 0.436) < 0.001);
  assert_true(fabs(b.high / 1e6 - 10.045) < 0.001);
  b = ljp_estimate_bytes(&(struct ljp_estimate){0}, 0, 1e6);
  assert_true(b.low == 0 && fabs(b.high / 1e6 - 4.605) < 0.001);
}

static void what_is_always_sampled_is_exact(void **unused)
{
  (void)unused;
  struct ljp_estimate e = {0};
  for (int i = 0; i < 7; i++)
    ljp_estimate_add(&e, 1 << 20, 1 << 20);
  struct ljp_bounds b = ljp_estimate_objects(&e, 7, 512);
  assert_true(b.low == 7 && b.high < 7 + 5 * 512 / 16 + 5);
  b = ljp_estimate_bytes(&e, 7 << 20, 512);
  assert_true(b.low == 7 << 20 && b.high < (7 << 20) + 5 * 512);
  b = ljp_estimate_bytes(&e, 7 << 20, 0); /* Nothing was sampled. */
  assert_true(b.low == 7 << 20 && b.high == 7 << 20);
}

static void blocks_that_are_taken_out_leave_nothing(void **unused)
{
  (void)unused;
  struct ljp_estimate e = {0};
  for (uint64_t size = 16; size < 100000; size = size * 7 / 3)
    ljp_estimate_add(&e, size, size + 8192);
  for (uint64_t size = 16; size < 100000; size = size * 7 / 3)
    ljp_estimate_take(&e, size, size + 8192);
  assert_int_equal(e.samples, 0);
  assert_int_equal(e.bytes, 0);
  assert_true(e.variance_bytes == 0 && e.variance_objects == 0 && e.grain == 0);
  struct ljp_estimate bad = {0}; /* As from a broken file. */
  ljp_estimate_add(&bad, 0, 8192);
  ljp_estimate_add(&bad, 8192, 16);
  assert_int_equal(bad.samples, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bounds_hold_for_blocks_of_one_size),
      cmocka_unit_test(bounds_hold_for_blocks_of_many_sizes),
      cmocka_unit_test(many_samples_have_narrow_bounds),
      cmocka_unit_test(few_samples_have_exact_bounds),
      cmocka_unit_test(what_is_always_sampled_is_exact),
      cmocka_unit_test(blocks_that_are_taken_out_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
