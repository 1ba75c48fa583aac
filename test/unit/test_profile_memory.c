/*
** The profile's memory: every failing allocation is reported and leaks nothing,
** and no file makes the profile take more than an honest file needs.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "parsers/profile/profile.h"
#include "test/support/encode.h"
#include "test/support/wrapped_alloc.h"

static struct ljp_reader reader;

static enum ljp_status load(const void *data, size_t size, bool points,
                            struct ljp_profile_totals *totals)
{
  const struct ljp_profile_options options = {
      .no_symbols = true, .points = points, .gc_cost = points};
  enum ljp_status status = ljp_reader_memory(&reader, data, size);
  if (status)
    return status;
  struct ljp_profile *p = ljp_profile_new(&options);
  status = p ? ljp_profile_add(p, &reader) : LJP_ERR_MEM;
  if (!status)
    status = ljp_profile_finish(p);
  if (p && status)
    assert_true(p->error[0]);
  if (p && totals)
    *totals = p->totals;
  ljp_profile_free(p);
  ljp_reader_fini(&reader);
  return status;
}

static void each_allocation_that_fails_is_told_and_leaves_nothing(void **state)
{
  static const char *const names[] = {"every-record.ljp", "small-table.ljp"};
  static uint8_t data[1 << 20];
  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    char path[600];
    snprintf(path, sizeof path, LJP_SOURCE_DIR "/test/data/%s", names[i]);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    long n = 1;
    for (;; n++) {
      size_t before = alloc_live, before_bytes = alloc_bytes;
      alloc_fail_at = n;
      enum ljp_status status = load(data, size, true, NULL);
      bool failed = alloc_fail_at == 0;
      alloc_fail_at = 0;
      assert_int_equal(alloc_live, before);
      assert_int_equal(alloc_bytes, before_bytes);
      if (!failed) {
        assert_int_equal(status, LJP_OK);
        break;
      }
      if (status != LJP_ERR_MEM)
        fail_msg("%s: allocation %ld failed, status %d", names[i], n, status);
    }
    assert_true(n > 40); /* Every table was reached. */
  }
}

/* -- Many stacks, threads, states, in few bytes ---------------------------- */

static struct buf stream, payload, body;
static uint64_t seq;

static void put(uint32_t epoch)
{
  struct ljp_block_head head = test_head(seq++);
  head.epoch = epoch;
  put_block_head(&stream, head, &payload);
}

static void what_is_beyond_the_limits_is_counted_and_said(void **state)
{
  struct ljp_profile_totals totals;
  uint64_t samples = 0, id = 0;
  (void)state;
  if (LJP_PROFILE_MAX_NODES > (1u << 20)) {
    skip(); /* Needs the small limits of debug and fuzz builds. */
  }
  for (uint32_t epoch = 1; epoch <= 2; epoch++) {
    for (unsigned i = 0; i < 40000; i++) {
      id++;
      put_s(&body, (int64_t)id);
      put_u(&body, id);
      put_u8(&body, LJP_FRAME_KERNEL << 4);
      put_u(&body, id);
      put_record(&payload, LJP_REC_NODES, &body);
      put_u8(&body, LJP_SAMPLE_STACK | LJP_SAMPLE_VM | LJP_SAMPLE_WEIGHT);
      put_s(&body, 1);
      put_s(&body, (int64_t)id);
      put_u(&body, 1 + i % 50);
      put_u(&body, 7);
      put_record(&payload, LJP_REC_SAMPLES, &body);
      samples++;
      if (payload.len > 60000)
        put(epoch);
    }
    put(epoch);
  }
  put_end_block(&stream, seq++);
  alloc_bytes = alloc_peak = 0;
  assert_int_equal(load(stream.data, stream.len, false, &totals), LJP_OK);
  assert_int_equal(totals.samples, samples);
  assert_int_equal(totals.cpu_ns, samples * 7);
  assert_true(totals.too_many > 0);
  assert_true(alloc_peak < LJP_READER_MAX_BYTES + (64u << 20));
}

static void live_blocks_take_at_most_64_bytes_each(void **state)
{
  enum { BLOCKS = 1600000 };
  struct ljp_profile_totals totals;
  size_t before;
  (void)state;
#ifdef LJP_DEBUG
  skip(); /* Chunks of the table have only four blocks. */
#endif
  stream.len = payload.len = body.len = 0;
  seq = 0;
  for (unsigned i = 0; i < BLOCKS; i++) {
    put_u8(&body, LJP_MEM_ALLOC | (i ? 0 : LJP_MEM_SIZE));
    put_s(&body, 0);
    put_s(&body, 4);
    if (i == 0)
      put_u(&body, 32);
    if (body.len > 60000 || i == BLOCKS - 1) {
      put_record(&payload, LJP_REC_MEM, &body);
      put(1);
      /* Addresses continue from one record to the next. */
      put_u8(&body, LJP_MEM_ALLOC | LJP_MEM_SIZE);
      put_s(&body, 0);
      put_s(&body, (int64_t)(i + 1) * 4 + 4);
      put_u(&body, 32);
      i++;
    }
  }
  put_end_block(&stream, seq++);
  alloc_bytes = alloc_peak = 0;
  load("", 0, false, NULL); /* The memory of an empty profile. */
  before = alloc_peak;
  alloc_bytes = alloc_peak = 0;
  assert_int_equal(load(stream.data, stream.len, false, &totals), LJP_OK);
  assert_int_equal(totals.double_allocs, 0);
  assert_true(totals.alloc_events > BLOCKS - 100);
  assert_int_equal(totals.memory.live_bytes, totals.alloc_events * 32);
  if ((double)(alloc_peak - before) / (double)totals.alloc_events > 64)
    fail_msg("%.1f bytes a block",
             (double)(alloc_peak - before) / (double)totals.alloc_events);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_allocation_that_fails_is_told_and_leaves_nothing),
      cmocka_unit_test(what_is_beyond_the_limits_is_counted_and_said),
      cmocka_unit_test(live_blocks_take_at_most_64_bytes_each),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
