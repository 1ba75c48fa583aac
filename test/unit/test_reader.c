/* The reader: versions, compression, input that is no stream, and malformed
** records. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include <zstd.h>

#include "test/support/collect.h"
#include "test/support/encode.h"
#include "test/support/samples.h"

static struct collect c;

static void read_it(const struct buf *file)
{
  collect(&c, file->data, file->len);
}

/* -- Versions, compression ----------------------------------------------- */

static void a_newer_major_is_refused_by_name(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0};
  struct ljp_block_head head = test_head(0);
  head.major = 2;
  put_block_head(&file, head, &payload);
  read_it(&file);
  assert_int_equal(c.status, LJP_ERR_VERSION);
  assert_string_equal(c.error, "the stream has format version 2, this program "
                               "reads up to 1.x");
  buf_free(&file);
}

static void a_newer_major_among_ours_is_a_gap(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0};
  put_marks(&file, 0, 0);
  struct ljp_block_head head = test_head(1);
  head.major = 2;
  put_block_head(&file, head, &payload);
  put_end_block(&file, 2);
  read_it(&file);
  assert_int_equal(c.status, LJP_OK);
  assert_int_equal(c.gap[0].reason, LJP_GAP_VERSION);
  assert_int_equal(c.blocks, 2);
  buf_free(&file);
}

static void a_newer_minor_is_read(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0}, body = {0};
  struct ljp_block_head head = test_head(0);
  head.minor = 9;
  put_bytes(&body, "from the future", 15);
  put_record(&payload, 777, &body);
  put_record(&payload, 33333333333, &body);
  put_block_head(&file, head, &payload);
  put_end_block(&file, 1);
  read_it(&file);
  assert_int_equal(c.gaps, 0);
  assert_int_equal(c.bads, 0);
  assert_int_equal(c.unknown, 2);
  assert_int_equal(c.finish.unknown_records, 2);
  assert_true(c.finish.clean);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
}

/* Replaces payload by one zstd frame of it. */
static uint32_t compress(struct buf *payload)
{
  struct buf packed = {0};
  uint32_t raw = (uint32_t)payload->len;
  size_t room = ZSTD_compressBound(raw);
  size_t n =
      ZSTD_compress(buf_more(&packed, room), room, payload->data, raw, 3);
  assert_false(ZSTD_isError(n));
  packed.len = n;
  buf_free(payload);
  *payload = packed;
  return raw;
}

static void put_zstd(struct buf *file, uint64_t seq, int raw_off, int twice)
{
  struct buf payload = {0}, body = {0};
  memset(buf_more(&body, 3000), 'z', 3000);
  put_record(&payload, 500, &body);
  uint32_t raw = compress(&payload);
  if (twice) { /* Two frames, the second of which is empty. */
    struct buf empty = {0};
    put_bytes(&empty, "", 0);
    compress(&empty);
    put_bytes(&payload, empty.data, empty.len);
    buf_free(&empty);
  }
  struct ljp_block_head head = test_head(seq);
  head.flags |= LJP_BLOCK_ZSTD;
  head.raw_len = (uint32_t)((int)raw + raw_off);
  put_block_head(file, head, &payload);
  buf_free(&payload);
  buf_free(&body);
}

static void compressed_blocks_are_read(void **state)
{
  (void)state;
  struct buf file = {0};
  put_zstd(&file, 0, 0, 0);
  put_mark_block(&file, 1);
  put_zstd(&file, 2, 0, 0);
  put_end_block(&file, 3);
  read_it(&file);
  assert_int_equal(c.gaps, 0);
  assert_int_equal(c.unknown, 2);
  assert_int_equal(c.marks, 1);
  assert_true(c.finish.clean);
  buf_free(&file);
}

static void a_frame_that_is_not_of_the_raw_length_is_a_gap(void **state)
{
  (void)state;
  for (int off = -1; off <= 1; off++) {
    struct buf file = {0};
    put_mark_block(&file, 0);
    put_zstd(&file, 1, off, off == 0);
    put_end_block(&file, 2);
    read_it(&file);
    assert_int_equal(c.gaps, 1);
    assert_int_equal(c.gap[0].reason, LJP_GAP_ZSTD);
    assert_int_equal(c.gap[0].missing, 1);
    assert_int_equal(c.blocks, 2);
    buf_free(&file);
  }
}

static void a_frame_that_grows_beyond_the_limit_is_a_gap(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0};
  put_mark_block(&file, 0);
  memset(buf_more(&payload, 100 << 20), 0, 100 << 20);
  compress(&payload);
  assert_true(payload.len < LJP_BLOCK_MAX_BYTES);
  struct ljp_block_head head = test_head(1);
  head.flags |= LJP_BLOCK_ZSTD;
  head.raw_len = LJP_BLOCK_MAX_BYTES;
  put_block_head(&file, head, &payload);
  put_end_block(&file, 2);
  read_it(&file);
  assert_int_equal(c.gaps, 1);
  assert_int_equal(c.gap[0].reason, LJP_GAP_ZSTD);
  assert_int_equal(c.blocks, 2);
  buf_free(&file);
  buf_free(&payload);
}

/* -- No streams ------------------------------------------------------------ */

static void an_empty_file_is_refused(void **state)
{
  (void)state;
  collect(&c, "", 0);
  assert_int_equal(c.status, LJP_ERR_FORMAT);
  assert_string_equal(c.error, "not an ljprof stream: it is empty");
}

static void a_text_is_refused(void **state)
{
  (void)state;
  collect(&c, "print('hello')\n", 15);
  assert_int_equal(c.status, LJP_ERR_FORMAT);
  assert_string_equal(c.error, "not an ljprof stream: no whole block in 15 "
                               "bytes (no block begins here)");
}

static ssize_t endless_zeros(struct ljp_input *input, void *buf, size_t n)
{
  (void)input;
  memset(buf, 0, n);
  return (ssize_t)n;
}

static void endless_input_without_a_block_is_given_up(void **state)
{
  (void)state;
  static struct ljp_reader reader;
  const struct ljp_item *event;
  assert_int_equal(ljp_reader_memory(&reader, "", 0), LJP_OK);
  reader.input.read = endless_zeros;
  assert_int_equal(ljp_reader_next(&reader, &event), LJP_ERR_FORMAT);
  assert_int_equal(ljp_reader_next(&reader, &event), LJP_ERR_FORMAT);
  ljp_reader_fini(&reader);
}

static ssize_t failing(struct ljp_input *input, void *buf, size_t n)
{
  if (input->left == 0) {
    errno = EIO;
    return -1;
  }
  if (n > input->left)
    n = input->left;
  memcpy(buf, input->data, n);
  input->data += n;
  input->left -= n;
  return (ssize_t)n;
}

static void an_input_error_is_told_with_its_offset(void **state)
{
  (void)state;
  static struct ljp_reader reader;
  struct buf file = {0};
  put_marks(&file, 0, 2);
  assert_int_equal(ljp_reader_memory(&reader, file.data, file.len), LJP_OK);
  reader.input.read = failing;
  memset(&c, 0, sizeof c);
  collect_from(&c, &reader, file.len);
  assert_int_equal(c.status, LJP_ERR_IO);
  assert_int_equal(c.blocks, 3);
  char want[80];
  snprintf(want, sizeof want, "cannot read at offset %zu: Input/output error",
           file.len);
  assert_string_equal(c.error, want);
  ljp_reader_fini(&reader);
  buf_free(&file);
}

/* One byte at a time, as a slow pipe gives them. */
static ssize_t trickle(struct ljp_input *input, void *buf, size_t n)
{
  return n && input->left ? failing(input, buf, 1) : 0;
}

static void bytes_that_come_one_by_one_read_the_same(void **state)
{
  (void)state;
  static struct ljp_reader reader;
  struct buf file = {0};
  put_bytes(&file, "\x89LJP?", 5);
  put_marks(&file, 0, 2);
  put_bytes(&file, "\x89L", 2);
  put_end_block(&file, 4);
  assert_int_equal(ljp_reader_memory(&reader, file.data, file.len), LJP_OK);
  reader.input.read = trickle;
  memset(&c, 0, sizeof c);
  collect_from(&c, &reader, file.len);
  assert_int_equal(c.status, LJP_OK);
  assert_int_equal(c.blocks, 4);
  assert_int_equal(c.gaps, 2);
  assert_int_equal(c.gap[1].missing, 1);
  ljp_reader_fini(&reader);
  buf_free(&file);
}

/* -- Records --------------------------------------------------------------- */

static void a_malformed_record_costs_itself_only(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0}, body = {0};
  put_marks(&file, 0, 0);
  put_bytes(&body, "\x80", 1);
  put_record(&payload, LJP_REC_GC, &body);
  put_s(&body, 1);
  put_u(&body, 3);
  put_record(&payload, LJP_REC_VM_CLOSE, &body);
  put_block(&file, 1, &payload);
  put_end_block(&file, 2);
  read_it(&file);
  assert_int_equal(c.bads, 1);
  assert_int_equal(c.bad[0].tag, LJP_REC_GC);
  assert_int_equal(c.bad[0].reason, LJP_BAD_SHORT);
  assert_int_equal(c.bad[0].payload_offset, 0);
  assert_int_equal(c.bad[0].bytes, 3);
  assert_int_equal(c.events[LJP_REC_VM_CLOSE], 1);
  assert_int_equal(c.finish.bad_records, 1);
  assert_true(c.finish.clean);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
}

static void
a_record_longer_than_its_block_costs_the_rest_of_the_block(void **state)
{
  (void)state;
  const uint64_t lies[] = {6, 1u << 20, UINT64_C(1) << 63, UINT64_MAX};
  for (size_t i = 0; i < 4; i++) {
    struct buf file = {0}, payload = {0};
    put_u(&payload, LJP_REC_MARK);
    put_u(&payload, lies[i]);
    put_bytes(&payload, "12345", 5);
    size_t len = payload.len;
    put_block(&file, 0, &payload);
    put_end_block(&file, 1);
    read_it(&file);
    assert_int_equal(c.bads, 1);
    assert_int_equal(c.bad[0].reason, LJP_BAD_FRAMING);
    assert_int_equal(c.bad[0].bytes, len);
    assert_int_equal(c.blocks, 2);
    buf_free(&file);
    buf_free(&payload);
  }
}

static void what_stands_before_the_malformed_part_is_delivered(void **state)
{
  (void)state;
  struct buf file = {0}, payload = {0}, body = {0};
  for (int i = 0; i < 7; i++) {
    put_u8(&body, 0);
    put_s(&body, 3);
  }
  put_u8(&body, 0x40);
  put_record(&payload, LJP_REC_SAMPLES, &body);
  put_block(&file, 0, &payload);
  read_it(&file);
  assert_int_equal(c.events[LJP_REC_SAMPLES], 7);
  assert_int_equal(c.bads, 1);
  assert_int_equal(c.bad[0].reason, LJP_BAD_RESERVED);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
}

/* Appends the last record of a session that ended for a reason. */
static void put_end(struct buf *file, uint64_t seq, uint64_t status, int error)
{
  struct buf payload = {0}, body = {0};
  put_s(&body, 11);
  put_u(&body, status);
  put_u(&body, (uint64_t)error);
  put_str(&body, "ended");
  put_record(&payload, LJP_REC_END, &body);
  put_block(file, seq, &payload);
  buf_free(&payload);
  buf_free(&body);
}

static void why_a_session_ended_is_told(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 0);
  put_end(&file, 1, LJP_ERR_IO, ENOSPC);
  read_it(&file);
  assert_true(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_END);
  assert_int_equal(c.finish.status, LJP_ERR_IO);
  assert_int_equal(c.finish.error, ENOSPC);
  buf_free(&file);
}

static void a_session_that_goes_on_after_its_end_has_no_end(void **state)
{
  (void)state;
  struct buf file = {0};
  put_marks(&file, 0, 0);
  put_end(&file, 1, LJP_ERR_IO, ENOSPC);
  put_marks(&file, 2, 2);
  read_it(&file);
  assert_false(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_NOT);
  assert_int_equal(c.finish.status, 0);
  assert_int_equal(c.finish.error, 0);
  buf_free(&file);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_newer_major_is_refused_by_name),
      cmocka_unit_test(a_newer_major_among_ours_is_a_gap),
      cmocka_unit_test(a_newer_minor_is_read),
      cmocka_unit_test(compressed_blocks_are_read),
      cmocka_unit_test(a_frame_that_is_not_of_the_raw_length_is_a_gap),
      cmocka_unit_test(a_frame_that_grows_beyond_the_limit_is_a_gap),
      cmocka_unit_test(an_empty_file_is_refused),
      cmocka_unit_test(a_text_is_refused),
      cmocka_unit_test(endless_input_without_a_block_is_given_up),
      cmocka_unit_test(an_input_error_is_told_with_its_offset),
      cmocka_unit_test(bytes_that_come_one_by_one_read_the_same),
      cmocka_unit_test(a_malformed_record_costs_itself_only),
      cmocka_unit_test(
          a_record_longer_than_its_block_costs_the_rest_of_the_block),
      cmocka_unit_test(what_stands_before_the_malformed_part_is_delivered),
      cmocka_unit_test(why_a_session_ended_is_told),
      cmocka_unit_test(a_session_that_goes_on_after_its_end_has_no_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
