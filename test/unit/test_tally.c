/* The reader's tally: losses, and events swallowed by gaps, as TOTALS shows. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "test/support/collect.h"
#include "test/support/encode.h"
#include "test/support/samples.h"

static struct collect c;

static void read_it(const struct buf *file)
{
  collect(&c, file->data, file->len);
}

static void put_totals(struct buf *file, uint64_t seq, uint64_t marks)
{
  struct buf payload = {0}, body = {0};
  put_u(&body, 1);
  put_u(&body, LJP_REC_MARK);
  put_u(&body, marks);
  put_record(&payload, LJP_REC_TOTALS, &body);
  put_block(file, seq, &payload);
  buf_free(&payload);
  buf_free(&body);
}

static void totals_tell_how_many_events_a_gap_swallowed(void **state)
{
  (void)state;
  struct buf file = {0};
  put_totals(&file, 0, 0);
  put_marks(&file, 1, 3);
  put_marks(&file, 9, 9);
  put_totals(&file, 10, 9);
  put_marks(&file, 11, 11);
  put_totals(&file, 12, 10);
  read_it(&file);
  assert_int_equal(c.bads, 0);
  assert_int_equal(c.tally.read[LJP_REC_MARK], 5);
  assert_int_equal(c.tally.swallowed[LJP_REC_MARK], 5);
  buf_free(&file);
}

static void totals_that_no_gap_explains_are_malformed(void **state)
{
  (void)state;
  for (uint64_t said = 0; said < 6; said++) {
    struct buf file = {0};
    put_totals(&file, 0, 0);
    put_marks(&file, 1, 3);
    put_totals(&file, 4, said);
    read_it(&file);
    assert_int_equal(c.bads, said != 3);
    if (said != 3)
      assert_int_equal(c.bad[0].reason, LJP_BAD_TOTALS);
    buf_free(&file);
  }
}

/* Events missing after the next TOTALS are not explained by the gap. */
static void a_gap_explains_only_what_it_swallowed(void **state)
{
  (void)state;
  struct buf file = {0};
  put_totals(&file, 0, 0);
  put_marks(&file, 3, 3);
  put_totals(&file, 4, 2);
  put_marks(&file, 5, 5);
  put_totals(&file, 6, 7);
  read_it(&file);
  assert_int_equal(c.bads, 1);
  assert_int_equal(c.bad[0].reason, LJP_BAD_TOTALS);
  assert_int_equal(c.tally.swallowed[LJP_REC_MARK], 5);
  buf_free(&file);
}

static void a_later_segment_alone_has_lost_nothing(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0}, body = {0};
  struct ljp_block_head head = test_head(100);
  head.epoch = 7;
  head.flags = LJP_BLOCK_KEY;
  put_u(&body, 3);
  put_u(&body, LJP_EPOCH_SEGMENT);
  put_u(&body, 1);
  put_record(&payload, LJP_REC_EPOCH, &body);
  put_u(&body, 1);
  put_u(&body, LJP_REC_MARK);
  put_u(&body, 5000);
  put_record(&payload, LJP_REC_TOTALS, &body);
  put_block_head(&file, head, &payload);
  put_s(&body, 1);
  put_u(&body, 4);
  put_record(&payload, LJP_REC_SEGMENT_END, &body);
  head.seq++;
  head.flags = 0;
  put_block_head(&file, head, &payload);
  read_it(&file);
  assert_int_equal(c.gaps, 0);
  assert_int_equal(c.tally.before[LJP_REC_MARK], 5000);
  assert_int_equal(c.tally.swallowed[LJP_REC_MARK], 0);
  assert_true(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_SEGMENT);

  /* Without the first block, nobody knows how many blocks are missing. */
  size_t first = LJP_BLOCK_HEAD_BYTES + ljp_get_u32(file.data + 40);
  collect(&c, file.data + first, file.len - first);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].reason, LJP_GAP_MISSING);
  assert_false(c.gap[0].missing_known);
  assert_false(c.finish.missing_known);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
}

static void the_latest_loss_of_each_key_counts(void **state)
{
  (void)state;
  static struct ljp_reader reader;
  struct buf file = {0}, payload = {0}, body = {0};
  const struct ljp_item *e;
  for (uint64_t i = 0; i < 300; i++) {
    put_s(&body, 1);
    put_u(&body, i % 100 + 1); /* producer */
    put_u(&body, LJP_LOSS_RING_FULL);
    put_u(&body, i * 7);
    put_record(&payload, LJP_REC_LOSS, &body);
  }
  put_s(&body, 1);
  put_u(&body, 1);
  put_u(&body, 13);
  put_record(&payload, LJP_REC_OVERRUN, &body);
  put_block(&file, 0, &payload);
  assert_int_equal(ljp_reader_memory(&reader, file.data, file.len), LJP_OK);
  do
    assert_int_equal(ljp_reader_next(&reader, &e), LJP_OK);
  while (e->what != LJP_ITEM_FINISH);
  assert_int_equal(reader.tally.loss_count, 101);
  uint64_t sum = 0;
  for (size_t i = 0; i < 100; i++)
    sum += reader.tally.losses[i].count;
  assert_int_equal(sum, 7 * (200 + 299) * 50);
  assert_true(reader.tally.losses[100].overrun);
  assert_int_equal(reader.tally.losses[100].count, 13);
  ljp_reader_fini(&reader);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(totals_tell_how_many_events_a_gap_swallowed),
      cmocka_unit_test(totals_that_no_gap_explains_are_malformed),
      cmocka_unit_test(a_gap_explains_only_what_it_swallowed),
      cmocka_unit_test(a_later_segment_alone_has_lost_nothing),
      cmocka_unit_test(the_latest_loss_of_each_key_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
