/* Blocks and gaps: which bytes of the file are in which, and what is missing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "test/support/collect.h"
#include "test/support/encode.h"

static struct collect c;

static void read_it(const struct buf *file)
{
  collect(&c, file->data, file->len);
}

static void a_whole_stream_has_no_gap_and_a_clean_end(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 4);
  put_end_block(&file, 5);
  read_it(&file);
  assert_int_equal(c.status, LJP_OK);
  assert_int_equal(c.gaps, 0);
  assert_int_equal(c.bads, 0);
  assert_int_equal(c.blocks, 6);
  assert_int_equal(c.marks, 5);
  for (int i = 0; i < 5; i++)
    assert_int_equal(c.mark[i], 1009 * i);
  assert_true(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_END);
  buf_free(&file);
}

static void a_missing_end_is_not_a_clean_end(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 2);
  read_it(&file);
  assert_int_equal(c.blocks, 3);
  assert_false(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_NOT);
  buf_free(&file);
}

static void a_removed_block_is_a_gap_of_no_bytes(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 1);
  size_t at = file.len;
  put_marks(&file, 5, 5);
  put_end_block(&file, 6);
  read_it(&file);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].offset, at);
  assert_int_equal(c.gap[0].bytes, 0);
  assert_int_equal(c.gap[0].missing, 3);
  assert_int_equal(c.gap[0].reason, LJP_GAP_MISSING);
  assert_int_equal(c.finish.missing_blocks, 3);
  assert_int_equal(c.marks, 3);
  buf_free(&file);
}

static void garbage_before_between_and_after_blocks_is_a_gap_each(void **state)
{
  (void)state;
  struct buf file = {0};
  put_bytes(&file, "garbage \x89LJ\x89LJP garbage", 23);
  size_t first = file.len;
  put_marks(&file, 0, 0);
  size_t second = file.len;
  put_bytes(&file, "\x89LJ", 3);
  put_end_block(&file, 1);
  size_t third = file.len;
  put_bytes(&file, "tail", 4);
  read_it(&file);
  assert_int_equal(c.blocks, 2);
  assert_int_equal(c.gaps, 3);
  assert_int_equal(c.gap[0].offset, 0);
  assert_int_equal(c.gap[0].bytes, first);
  assert_int_equal(c.gap[0].missing, 0);
  assert_int_equal(c.gap[1].offset, second);
  assert_int_equal(c.gap[1].bytes, 3);
  assert_int_equal(c.gap[2].offset, third);
  assert_int_equal(c.gap[2].bytes, 4);
  assert_int_equal(c.gap[2].reason, LJP_GAP_GARBAGE);
  assert_false(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_END);
  buf_free(&file);
}

static void a_repeated_or_late_block_is_not_delivered_again(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 2);
  put_marks(&file, 2, 2);
  put_marks(&file, 1, 1);
  put_marks(&file, 3, 3);
  put_end_block(&file, 4);
  read_it(&file);
  assert_int_equal(c.marks, 4);
  assert_int_equal(c.mark[3], 3 * 1009);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].reason, LJP_GAP_SEQ);
  assert_int_equal(c.gap[0].missing, 0);
  buf_free(&file);
}

static void a_late_block_leaves_its_place_missing(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 0);
  put_marks(&file, 2, 2);
  put_marks(&file, 1, 1);
  put_marks(&file, 3, 3);
  read_it(&file);
  assert_int_equal(c.marks, 3);
  assert_int_equal(c.gaps, 2);
  assert_int_equal(c.gap[0].reason, LJP_GAP_MISSING);
  assert_int_equal(c.gap[0].missing, 1);
  assert_int_equal(c.gap[1].reason, LJP_GAP_SEQ);
  assert_int_equal(c.finish.missing_blocks, 1);
  buf_free(&file);
}

static void another_session_s_blocks_are_a_gap(void **state)
{
  (void)state;
  struct buf file = {0}, other = {0}, payload = {0};
  put_marks(&file, 0, 1);
  size_t at = file.len;
  struct ljp_block_head head = test_head(0);
  head.stream ^= 1;
  put_block_head(&other, head, &payload);
  head.seq = 1;
  put_block_head(&other, head, &payload);
  put_bytes(&file, other.data, other.len);
  put_end_block(&file, 2);
  read_it(&file);
  assert_int_equal(c.blocks, 3);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].reason, LJP_GAP_FOREIGN);
  assert_int_equal(c.gap[0].offset, at);
  assert_int_equal(c.gap[0].bytes, other.len);
  assert_int_equal(c.gap[0].missing, 0);
  assert_true(c.finish.clean);
  buf_free(&file);
  buf_free(&other);
}

static void a_block_with_a_flag_that_must_be_known_is_a_gap(void **state)
{
  (void)state;
  for (unsigned bit = 0; bit < 16; bit++) {
    struct buf file = {0}, payload = {0};
    put_marks(&file, 0, 0);
    struct ljp_block_head head = test_head(1);
    head.flags = (uint16_t)(1u << bit);
    put_block_head(&file, head, &payload);
    put_end_block(&file, 2);
    read_it(&file);
    if (bit < 8) {
      assert_int_equal(c.gaps, 1);
      assert_int_equal(c.gap[0].reason,
                       bit == 0 ? LJP_GAP_ZSTD : LJP_GAP_FLAGS);
      assert_int_equal(c.gap[0].missing, 1);
    } else {
      assert_int_equal(c.gaps, 0);
      assert_int_equal(c.blocks, 3);
    }
    buf_free(&file);
  }
}

/* Bytes in a damaged payload are not taken for blocks if the header is valid and
** the stream continues where it says. */
static void a_block_inside_a_damaged_payload_is_not_believed(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0};
  put_marks(&file, 0, 0);
  size_t at = file.len;
  put_u(&payload, 99);
  put_mark_block(&payload, 77);
  put_block(&file, 1, &payload);
  size_t end = file.len;
  file.data[at + LJP_BLOCK_HEAD_BYTES] ^= 1;
  put_marks(&file, 2, 2);
  read_it(&file);
  assert_int_equal(c.blocks, 2);
  assert_int_equal(c.mark[1], 2018);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].reason, LJP_GAP_PAYLOAD_CRC);
  assert_int_equal(c.gap[0].bytes, end - at);
  assert_int_equal(c.gap[0].missing, 1);
  buf_free(&file);
  buf_free(&payload);
}

/* If the stream does not continue there, the block was cut, and what follows is
** searched byte by byte. */
static void blocks_that_follow_a_cut_block_are_found(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0};
  put_marks(&file, 0, 0);
  size_t at = file.len;
  memset(buf_more(&payload, 5000), 'x', 5000);
  put_block(&file, 1, &payload);
  file.len -= 4000;
  size_t end = file.len;
  put_marks(&file, 2, 9);
  put_end_block(&file, 10);
  read_it(&file);
  assert_int_equal(c.blocks, 10);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].offset, at);
  assert_int_equal(c.gap[0].bytes, end - at);
  assert_int_equal(c.gap[0].missing, 1);
  buf_free(&file);
  buf_free(&payload);
}

static void a_cut_block_counts_as_missing_by_its_number(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 2);
  file.len -= 3;
  read_it(&file);
  assert_int_equal(c.blocks, 2);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].reason, LJP_GAP_CUT);
  assert_int_equal(c.gap[0].missing, 1);
  assert_false(c.finish.clean);
  buf_free(&file);
}

static void lengths_beyond_the_limit_are_not_believed(void **state)
{
  (void)state;
  const uint32_t lies[][2] = {{LJP_BLOCK_MAX_BYTES + 1, 0},
                              {UINT32_MAX, UINT32_MAX},
                              {4, 5},
                              {0, LJP_BLOCK_MAX_BYTES + 1}};
  for (size_t i = 0; i < 4; i++) {
    struct buf file = {0};
    uint8_t bytes[LJP_BLOCK_HEAD_BYTES];
    put_marks(&file, 0, 0);
    size_t at = file.len;
    struct ljp_block_head head = test_head(1);
    head.stored_len = lies[i][0];
    head.raw_len = lies[i][1] ? lies[i][1] : lies[i][0];
    ljp_block_head_put(bytes, &head);
    put_bytes(&file, bytes, sizeof bytes);
    put_bytes(&file, "abcd", 4);
    put_end_block(&file, 2);
    read_it(&file);
    assert_int_equal(c.blocks, 2);
    assert_int_equal(c.gaps, 1);
    assert_int_equal(c.gap[0].reason, LJP_GAP_HEAD_LIMIT);
    assert_int_equal(c.gap[0].offset, at);
    assert_int_equal(c.gap[0].bytes, LJP_BLOCK_HEAD_BYTES + 4);
    buf_free(&file);
  }
}

static void the_largest_block_is_read_and_an_empty_one_too(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0};
  put_block(&file, 0, &payload);
  for (uint64_t seq = 1; seq < 7; seq++) {
    put_u(&payload, 1000); /* One unknown record fills the block. */
    put_u(&payload, LJP_BLOCK_MAX_BYTES - 5);
    memset(buf_more(&payload, LJP_BLOCK_MAX_BYTES - 5), (int)seq,
           LJP_BLOCK_MAX_BYTES - 5);
    assert_int_equal(payload.len, LJP_BLOCK_MAX_BYTES);
    put_block(&file, seq, &payload);
  }
  put_end_block(&file, 7);
  read_it(&file);
  assert_int_equal(c.gaps, 0);
  assert_int_equal(c.blocks, 8);
  assert_int_equal(c.unknown, 6);
  assert_true(c.finish.clean);
  buf_free(&file);
  buf_free(&payload);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_whole_stream_has_no_gap_and_a_clean_end),
      cmocka_unit_test(a_missing_end_is_not_a_clean_end),
      cmocka_unit_test(a_removed_block_is_a_gap_of_no_bytes),
      cmocka_unit_test(garbage_before_between_and_after_blocks_is_a_gap_each),
      cmocka_unit_test(a_repeated_or_late_block_is_not_delivered_again),
      cmocka_unit_test(a_late_block_leaves_its_place_missing),
      cmocka_unit_test(another_session_s_blocks_are_a_gap),
      cmocka_unit_test(a_block_with_a_flag_that_must_be_known_is_a_gap),
      cmocka_unit_test(a_block_inside_a_damaged_payload_is_not_believed),
      cmocka_unit_test(blocks_that_follow_a_cut_block_are_found),
      cmocka_unit_test(a_cut_block_counts_as_missing_by_its_number),
      cmocka_unit_test(lengths_beyond_the_limit_are_not_believed),
      cmocka_unit_test(the_largest_block_is_read_and_an_empty_one_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
