/* Samples read many at a time are the same as samples read one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/stream/reader.h"
#include "test/support/encode.h"
#include "test/support/samples.h"

/* Reads all samples: the first of each record as an item, the others `room` at a
** time (0: each as an item). Returns a number that depends on everything that
** was read and on its order. */
static uint64_t sum_of_samples(const struct buf *file, size_t room,
                               unsigned *samples, unsigned *bads)
{
  static struct ljp_reader reader;
  struct ljp_timed_sample many[64];
  const struct ljp_item *e;
  uint64_t sum = 0;
  *samples = *bads = 0;
  assert_int_equal(ljp_reader_memory(&reader, file->data, file->len), LJP_OK);
  for (;;) {
    assert_int_equal(ljp_reader_next(&reader, &e), LJP_OK);
    if (e->what == LJP_ITEM_FINISH)
      break;
    if (e->what == LJP_ITEM_BAD)
      sum = sum * 31 + e->u.bad.payload_offset + e->u.bad.bytes + ++*bads;
    if (e->what != LJP_REC_SAMPLES) {
      assert_int_equal(ljp_reader_samples(&reader, many, 64), 0);
      continue;
    }
    size_t n = 1;
    many[0] = (struct ljp_timed_sample){e->time_ns, e->u.sample};
    do {
      sum = sum_samples(sum, many, n);
      *samples += (unsigned)n;
      n = room ? ljp_reader_samples(&reader, many, room) : 0;
    } while (n);
  }
  assert_int_equal(reader.tally.read[LJP_REC_SAMPLES], *samples);
  ljp_reader_fini(&reader);
  return sum;
}

static void samples_that_come_many_at_once_are_the_same(void **state)
{
  static const unsigned rooms[] = {1, 2, 7, 64};
  struct buf file = {0}, payload = {0}, body = {0};
  unsigned want_samples, want_bads, samples, bads;
  uint64_t random = 88172645463325252u;
  (void)state;
  for (unsigned record = 0; record < 40; record++) {
    for (unsigned i = 0; i < 5 * record; i++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
      unsigned has =
          random >> 40 & (random >> 63 ? LJP_SAMPLE_KNOWN
                                       : LJP_SAMPLE_STACK | LJP_SAMPLE_STATE);
      if (record % 3 == 1 && i == 91)
        has = 0x40; /* A reserved bit: the rest of the record is malformed. */
      put_u8(&body, (uint8_t)has);
      put_s(&body, (int64_t)(random >> 20 & 0xfffff));
      if (has & LJP_SAMPLE_STACK)
        put_s(&body, (int64_t)(random >> 13 & 0x3fff) - 0x1000);
      if (has & LJP_SAMPLE_STATE)
        put_u8(&body, random >> 31 & 7);
      if (has & LJP_SAMPLE_VM)
        put_u(&body, 1 + (random >> 30 & 3));
      if (has & LJP_SAMPLE_WEIGHT)
        put_u(&body, random >> 25 & 0x1fffffff);
      if (has & LJP_SAMPLE_CUT)
        put_u8(&body, random >> 50 & 7);
      if (has & LJP_SAMPLE_EXTRA) {
        put_u(&body, 2);
        put_u8(&body, 0x81);
        put_u8(&body, 0xff);
      }
    }
    put_record(&payload, LJP_REC_SAMPLES, &body);
  }
  put_block(&file, 0, &payload);
  uint64_t want = sum_of_samples(&file, 0, &want_samples, &want_bads);
  assert_int_equal(want_bads, 7);
  assert_true(want_samples > 2000);
  for (unsigned i = 0; i < 4; i++) {
    assert_true(sum_of_samples(&file, rooms[i], &samples, &bads) == want);
    assert_int_equal(samples, want_samples);
    assert_int_equal(bads, want_bads);
  }
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_that_come_many_at_once_are_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
