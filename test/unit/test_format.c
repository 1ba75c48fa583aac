/* format.h and RFC 1 have the same numbers; CRC, varints and frame words work.
** */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/base/block.h"

static char *rfc;

static int load_rfc(void **state)
{
  (void)state;
  FILE *f = fopen(LJP_SOURCE_DIR "/doc/rfc/0001-stream.md", "rb");
  if (!f)
    return -1;
  rfc = calloc(1, 1 << 18);
  size_t n = fread(rfc, 1, (1 << 18) - 1, f);
  fclose(f);
  return n > 1000 ? 0 : -1;
}

static int free_rfc(void **state)
{
  (void)state;
  free(rfc);
  return 0;
}

static void must_have(const char *text)
{
  if (!strstr(rfc, text))
    fail_msg("the RFC lacks: %s", text);
}

static unsigned rows_with(const char *third_column)
{
  unsigned n = 0;
  for (const char *p = rfc; (p = strstr(p, third_column)); p++)
    n++;
  return n;
}

static void each_record_has_its_row_in_the_rfc(void **state)
{
  (void)state;
  char row[100];
  unsigned count = 0;
#define LJP_X(name, number, text, event)                                       \
  snprintf(row, sizeof row, "| `%s` | %d | %s", #name, number,                 \
           event ? "event |" : "");                                            \
  must_have(row);                                                              \
  count++;
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  assert_int_equal(
      count, rows_with(" | definition | ") + rows_with(" | event | ") +
                 rows_with(" | counter | ") + rows_with(" | structure | "));
}

static void each_frame_kind_has_its_row_in_the_rfc(void **state)
{
  (void)state;
  char row[100];
#define LJP_X(name, number, shape, text)                                       \
  snprintf(row, sizeof row, "| `%s` | %d | %s |", #name, number, #shape);      \
  must_have(row);
  LJP_FRAME_KIND_LIST(LJP_X)
#undef LJP_X
}

static void each_list_of_numbers_is_in_the_rfc(void **state)
{
  (void)state;
  char row[400];
  size_t n;
#define ADD(name, number, text)                                                \
  n += (size_t)snprintf(row + n, sizeof row - n, "%d %s, ", number, #name);
#define LIST(list, name)                                                       \
  n = (size_t)snprintf(row, sizeof row, "| `%s` | ", name);                    \
  list(ADD) snprintf(row + n - 2, sizeof row - n + 2, " |");                   \
  must_have(row);
  LIST(LJP_PRODUCER_LIST, "PRODUCER")
  LIST(LJP_VMSTATE_LIST, "VMSTATE")
  LIST(LJP_GC_PHASE_LIST, "GC_PHASE")
  LIST(LJP_TRACE_WHAT_LIST, "TRACE_WHAT")
  LIST(LJP_INTERVAL_WHY_LIST, "INTERVAL_WHY")
  LIST(LJP_EPOCH_WHY_LIST, "EPOCH_WHY")
  LIST(LJP_NOTE_LIST, "NOTE")
  LIST(LJP_LOSS_LIST, "LOSS")
  LIST(LJP_UNSAMPLED_LIST, "UNSAMPLED")
  LIST(LJP_TIMER_LIST, "TIMER")
  LIST(LJP_MEM_TYPE_LIST, "MEM_TYPE")
  LIST(LJP_CUT_LIST, "CUT")
#undef LIST
#undef ADD
}

static void each_flag_of_memory_events_is_in_the_rfc(void **state)
{
  (void)state;
  char row[40];
#define LJP_X(name, number, text)                                              \
  snprintf(row, sizeof row, "| 0x%02x | %s |", number, #name);                 \
  must_have(row);
  LJP_MEM_FLAG_LIST(LJP_X)
#undef LJP_X
}

static void crc32c_has_the_known_value_both_ways(void **state)
{
  (void)state;
  assert_int_equal(ljp_crc32c(0, "123456789", 9), 0xe3069283u);
  assert_int_equal(ljp_crc32c_table(0, "123456789", 9), 0xe3069283u);
  uint8_t buffer[1021];
  uint32_t seed = 7;
  for (size_t i = 0; i < sizeof buffer; i++)
    buffer[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
  for (size_t from = 0; from < 9; from++)
    for (size_t len = 0; len < sizeof buffer - from; len += 13)
      assert_int_equal(ljp_crc32c(0, buffer + from, len),
                       ljp_crc32c_table(0, buffer + from, len));
}

static void crc32c_continues_over_pieces(void **state)
{
  (void)state;
  uint32_t crc = ljp_crc32c(ljp_crc32c(0, "1234", 4), "56789", 5);
  assert_int_equal(crc, 0xe3069283u);
}

static void varints_come_back(void **state)
{
  (void)state;
  uint8_t buf[LJP_VARINT_MAX_BYTES];
  for (int bits = 0; bits <= 64; bits++) {
    uint64_t v = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - (bits & 1);
    uint64_t back;
    uint8_t *end = ljp_put_varint(buf, v);
    assert_ptr_equal(ljp_get_varint(buf, end, &back), end);
    assert_true(back == v);
    assert_null(ljp_get_varint(buf, end - 1, &back));
    assert_true(ljp_unzigzag(ljp_zigzag((int64_t)v)) == (int64_t)v);
    assert_true(ljp_unrotate_address(ljp_rotate_address(v)) == v);
  }
}

static void quick_varints_are_the_same_bytes(void **state)
{
  (void)state;
  for (unsigned shift = 0; shift < 64; shift++)
    for (int add = -1; add <= 1; add++) {
      const uint64_t v = (UINT64_C(1) << shift) + (uint64_t)add;
      uint8_t buf[10] = {0}, quick[10] = {0};
      const size_t n = (size_t)(ljp_put_varint(buf, v) - buf);
      assert_int_equal(ljp_put_varint_quick(quick, v) - quick, n);
      assert_memory_equal(quick, buf, n);
    }
}

static void a_varint_beyond_64_bits_is_refused_a_padded_one_read(void **state)
{
  (void)state;
  uint64_t v;
  const uint8_t big[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
  const uint8_t padded[] = {0x87, 0x80, 0x00};
  const uint8_t eleven[] = {128, 128, 128, 128, 128, 128,
                            128, 128, 128, 128, 0};
  assert_null(ljp_get_varint(big, big + sizeof big, &v));
  assert_null(ljp_get_varint(eleven, eleven + sizeof eleven, &v));
  assert_ptr_equal(ljp_get_varint(padded, padded + 3, &v), padded + 3);
  assert_int_equal(v, 7);
}

static void zigzag_keeps_small_numbers_small(void **state)
{
  (void)state;
  assert_int_equal(ljp_zigzag(0), 0);
  assert_int_equal(ljp_zigzag(-1), 1);
  assert_int_equal(ljp_zigzag(1), 2);
  assert_true(ljp_zigzag(INT64_MIN) == UINT64_MAX);
}

static void a_block_head_comes_back_and_a_flipped_bit_is_seen(void **state)
{
  (void)state;
  const struct ljp_block_head head = {.major = 1,
                                      .minor = 3,
                                      .flags = LJP_BLOCK_KEY,
                                      .stream = 0x1122334455667788u,
                                      .seq = 1009,
                                      .time_ns = 123456789012345u,
                                      .epoch = 7,
                                      .producer = 11,
                                      .stored_len = 4099,
                                      .raw_len = 4099,
                                      .payload_crc = 0xdeadbeefu};
  uint8_t buf[LJP_BLOCK_HEAD_BYTES];
  struct ljp_block_head back;
  memset(&back, 0, sizeof back);
  ljp_block_head_put(buf, &head);
  assert_memory_equal(buf, "\x89LJP", 4);
  assert_int_equal(ljp_block_head_get(buf, &back), LJP_OK);
  uint8_t again[LJP_BLOCK_HEAD_BYTES];
  ljp_block_head_put(again, &back);
  assert_memory_equal(again, buf, sizeof buf);
  assert_true(back.stream == head.stream && back.seq == 1009);
  assert_int_equal(back.payload_crc, 0xdeadbeefu);
  for (size_t bit = 0; bit < sizeof buf * 8; bit++) {
    buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_int_equal(ljp_block_head_get(buf, &back), LJP_ERR_FORMAT);
    buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
}

static void a_newer_major_is_told_apart_from_damage(void **state)
{
  (void)state;
  struct ljp_block_head head = {.major = 2, .stored_len = 5, .raw_len = 5};
  uint8_t buf[LJP_BLOCK_HEAD_BYTES];
  ljp_block_head_put(buf, &head);
  assert_int_equal(ljp_block_head_get(buf, &head), LJP_ERR_VERSION);
  head.major = 1;
  head.stored_len = head.raw_len = LJP_BLOCK_MAX_BYTES + 1;
  ljp_block_head_put(buf, &head);
  assert_int_equal(ljp_block_head_get(buf, &head), LJP_ERR_FORMAT);
}

static void a_frame_word_gives_back_its_parts(void **state)
{
  (void)state;
  uint64_t w =
      ljp_frame_lua(LJP_FRAME_LUA_INLINED, LJP_EXACT_ROOT, 0xfffffff1u, 65537);
  assert_int_equal(ljp_frame_kind(w), LJP_FRAME_LUA_INLINED);
  assert_int_equal(ljp_frame_flags(w), LJP_EXACT_ROOT);
  assert_int_equal(ljp_frame_proto_ref(w), 0xfffffff1u);
  assert_int_equal(ljp_frame_line(w), 65537);
  w = ljp_frame(LJP_FRAME_HOST, 0, 0x7ffff7abcdefu);
  assert_true(ljp_frame_payload(w) == 0x7ffff7abcdefu);
  assert_int_equal(ljp_frame_shape(15), LJP_SHAPE_NUM);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_record_has_its_row_in_the_rfc),
      cmocka_unit_test(each_frame_kind_has_its_row_in_the_rfc),
      cmocka_unit_test(each_list_of_numbers_is_in_the_rfc),
      cmocka_unit_test(each_flag_of_memory_events_is_in_the_rfc),
      cmocka_unit_test(crc32c_has_the_known_value_both_ways),
      cmocka_unit_test(crc32c_continues_over_pieces),
      cmocka_unit_test(varints_come_back),
      cmocka_unit_test(quick_varints_are_the_same_bytes),
      cmocka_unit_test(a_varint_beyond_64_bits_is_refused_a_padded_one_read),
      cmocka_unit_test(zigzag_keeps_small_numbers_small),
      cmocka_unit_test(a_block_head_comes_back_and_a_flipped_bit_is_seen),
      cmocka_unit_test(a_newer_major_is_told_apart_from_damage),
      cmocka_unit_test(a_frame_word_gives_back_its_parts),
  };
  return cmocka_run_group_tests(tests, load_rfc, free_rfc);
}
