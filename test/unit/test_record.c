/* Flat records: each decodes field by field; malformed ones are reported. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/stream/bulk.h"
#include "test/support/encode.h"

enum { BLOCK_TIME = 1000003 };

static const uint64_t flat[] = {
#define LJP_X(tag, member) LJP_REC_##tag,
    LJP_FLAT_LIST(LJP_X)
#undef LJP_X
};
enum { FLAT = sizeof flat / sizeof *flat };

static void all_but_four_records_are_flat(void **state)
{
  (void)state;
  unsigned all = 0, count;
#define LJP_X(name, number, text, event) all++;
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  assert_int_equal(FLAT + 4, all);
  for (int i = 0; i < FLAT; i++)
    assert_non_null(ljp_record_fields(flat[i], &count));
  assert_null(ljp_record_fields(LJP_REC_SAMPLES, &count));
  assert_null(ljp_record_fields(LJP_REC_OBJECTS, &count));
  assert_null(ljp_record_fields(0, &count));
  assert_null(ljp_record_fields(UINT64_MAX, &count));
}

/* The value of a field, different for all fields of a record. */
static uint64_t value_of(unsigned field, unsigned type)
{
  static const uint64_t primes[] = {
      3,      10007,     1000003, 5,   4294967291, 127, 128,     99991, 7,
      524287, 600000007, 11,      131, 65537,      13,  2097143, 8191};
  assert_true(field < sizeof primes / sizeof *primes);
  uint64_t v = primes[field];
  return type == LJP_FIELD_S ? (uint64_t) - (int64_t)v : v;
}

static unsigned string_bytes(uint64_t tag)
{
  return tag == LJP_REC_LABELS ? 3 : 2;
}

/* Fills body with a record whose fields have value_of(); strings hold "sN". */
static void encode(struct buf *body, uint64_t tag)
{
  unsigned count;
  const struct ljp_field *fields = ljp_record_fields(tag, &count);
  for (unsigned i = 0; i < count; i++) {
    char text[] = {'s', (char)('a' + i), 0};
    switch (fields[i].type) {
    case LJP_FIELD_U:
    case LJP_FIELD_U1:
      put_u(body, value_of(i, LJP_FIELD_U));
      break;
    case LJP_FIELD_S:
    case LJP_FIELD_T:
      put_s(body, (int64_t)value_of(i, fields[i].type));
      break;
    case LJP_FIELD_STR:
      if (tag == LJP_REC_LABELS) /* A key with an empty value. */
        text[1] = 0;
      put_u(body, string_bytes(tag));
      put_bytes(body, text, string_bytes(tag));
      break;
    case LJP_FIELD_PAIRS:
      put_u(body, 2);
      for (int j = 0; j < 4; j++)
        put_u(body, 1009 + (unsigned)j);
      break;
    }
  }
}

static void check_fields(uint64_t tag, const struct ljp_item *event)
{
  unsigned count;
  const struct ljp_field *fields = ljp_record_fields(tag, &count);
  for (unsigned i = 0; i < count; i++) {
    const char *member = (const char *)&event->u + fields[i].offset;
    struct ljp_str string;
    struct ljp_pairs pairs;
    uint64_t number, a, b;
    switch (fields[i].type) {
    case LJP_FIELD_STR:
      memcpy(&string, member, sizeof string);
      assert_int_equal(string.len, string_bytes(tag));
      if (tag != LJP_REC_LABELS)
        assert_int_equal(string.data[1], 'a' + (int)i);
      break;
    case LJP_FIELD_PAIRS:
      memcpy(&pairs, member, sizeof pairs);
      assert_int_equal(pairs.count, 2);
      assert_true(ljp_pairs_next(&pairs, &a, &b));
      assert_true(a == 1009 && b == 1010);
      assert_true(ljp_pairs_next(&pairs, &a, &b));
      assert_true(a == 1011 && b == 1012);
      assert_false(ljp_pairs_next(&pairs, &a, &b));
      break;
    default:
      memcpy(&number, member, sizeof number);
      if (fields[i].type == LJP_FIELD_T) {
        assert_true(number == BLOCK_TIME + value_of(i, LJP_FIELD_T));
        assert_true(event->time_ns == number);
      } else {
        assert_true(number == value_of(i, fields[i].type));
      }
    }
  }
}

static void each_flat_record_comes_back(void **state)
{
  (void)state;
  for (int i = 0; i < FLAT; i++) {
    struct buf body = {0};
    struct ljp_item event;
    encode(&body, flat[i]);
    assert_int_equal(ljp_record_decode(flat[i], body.data, body.data + body.len,
                                       BLOCK_TIME, &event),
                     LJP_BAD_NONE);
    check_fields(flat[i], &event);
    buf_free(&body);
  }
}

static void what_newer_versions_append_is_ignored(void **state)
{
  (void)state;
  for (int i = 0; i < FLAT; i++) {
    struct buf body = {0};
    struct ljp_item event;
    encode(&body, flat[i]);
    put_bytes(&body, "\xff\xff\xff", 3);
    assert_int_equal(ljp_record_decode(flat[i], body.data, body.data + body.len,
                                       BLOCK_TIME, &event),
                     LJP_BAD_NONE);
    check_fields(flat[i], &event);
    buf_free(&body);
  }
}

/* In memory of exactly that size, so that a sanitizer sees an overrun. */
static enum ljp_bad_reason decode_exactly(uint64_t tag, const uint8_t *data,
                                          size_t len)
{
  struct ljp_item event;
  uint8_t *copy = malloc(len + !len);
  if (len)
    memcpy(copy, data, len);
  enum ljp_bad_reason bad =
      ljp_record_decode(tag, copy, copy + len, BLOCK_TIME, &event);
  free(copy);
  return bad;
}

/* Whether the first len of a body's `whole` bytes end before a field that a
** minor version added. Such fields are numbers, at the end of the body. */
static bool ends_before_an_added_field(uint64_t tag, size_t whole, size_t len)
{
  unsigned count;
  const struct ljp_field *fields = ljp_record_fields(tag, &count);
  struct buf number = {0};
  bool ends = false;
  for (unsigned i = count; i-- && fields[i].type == LJP_FIELD_U1;) {
    number.len = 0;
    put_u(&number, value_of(i, LJP_FIELD_U1));
    whole -= number.len;
    ends |= whole == len;
  }
  buf_free(&number);
  return ends;
}

static void each_flat_record_cut_anywhere_is_malformed(void **state)
{
  (void)state;
  for (int i = 0; i < FLAT; i++) {
    struct buf body = {0};
    encode(&body, flat[i]);
    assert_int_equal(decode_exactly(flat[i], body.data, body.len), 0);
    for (size_t len = 0; len < body.len; len++) {
      enum ljp_bad_reason bad = decode_exactly(flat[i], body.data, len);
      if (ends_before_an_added_field(flat[i], body.len, len))
        assert_int_equal(bad, LJP_BAD_NONE);
      else
        assert_true(bad == LJP_BAD_SHORT || bad == LJP_BAD_STRING ||
                    bad == LJP_BAD_PAIRS);
    }
    buf_free(&body);
  }
}

static void what_an_older_version_did_not_write_is_0(void **state)
{
  (void)state;
  struct buf body = {0};
  struct ljp_item event;
  encode(&body, LJP_REC_TRACE);
  size_t whole = body.len;
  while (!ends_before_an_added_field(LJP_REC_TRACE, body.len, --whole))
    ;
  memset(&event, 0xff, sizeof event);
  assert_int_equal(ljp_record_decode(LJP_REC_TRACE, body.data,
                                     body.data + whole, BLOCK_TIME, &event),
                   LJP_BAD_NONE);
  assert_true(event.u.trace.marks == value_of(14, LJP_FIELD_U1));
  assert_true(event.u.trace.flags == value_of(15, LJP_FIELD_U1));
  assert_true(event.u.trace.marks_cut == 0);
  buf_free(&body);
}

static void a_number_of_more_than_64_bits_is_malformed(void **state)
{
  (void)state;
  uint8_t huge[16];
  memset(huge, 0xff, sizeof huge);
  for (int i = 0; i < FLAT; i++)
    assert_int_equal(decode_exactly(flat[i], huge, sizeof huge),
                     LJP_BAD_NUMBER);
}

static void
a_string_longer_than_its_record_or_the_limit_is_malformed(void **state)
{
  (void)state;
  struct buf body = {0};
  const uint64_t lies[] = {5,          LJP_STRING_MAX_BYTES + 1,
                           UINT32_MAX, UINT64_C(1) << 63,
                           UINT64_MAX, UINT64_MAX - 8};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    body.len = 0;
    put_u(&body, lies[i]);
    put_bytes(&body, "four", 4);
    assert_int_equal(decode_exactly(LJP_REC_INFO, body.data, body.len),
                     LJP_BAD_STRING);
  }
  /* A string of the limit's length is read; a longer one is refused, although
  ** all its bytes are there. */
  for (uint32_t more = 0; more < 2; more++) {
    body.len = 0;
    put_str(&body, "key");
    put_u(&body, LJP_STRING_MAX_BYTES + more);
    memset(buf_more(&body, LJP_STRING_MAX_BYTES + 1), 'x',
           LJP_STRING_MAX_BYTES + 1);
    assert_int_equal(decode_exactly(LJP_REC_INFO, body.data, body.len),
                     more ? LJP_BAD_STRING : LJP_BAD_NONE);
  }
  buf_free(&body);
}

static void a_count_larger_than_its_record_is_malformed(void **state)
{
  (void)state;
  struct buf body = {0};
  const uint64_t lies[] = {3, 1000, UINT64_C(1) << 63, UINT64_MAX};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    body.len = 0;
    put_u(&body, lies[i]);
    put_bytes(&body, "\1\2\3\4\5", 5);
    assert_int_equal(decode_exactly(LJP_REC_TOTALS, body.data, body.len),
                     LJP_BAD_PAIRS);
  }
  body.len = 0; /* Enough bytes for the count, but not for the numbers. */
  put_u(&body, 2);
  put_bytes(&body, "\x81\x01\x81\x01", 4);
  assert_int_equal(decode_exactly(LJP_REC_TOTALS, body.data, body.len),
                   LJP_BAD_SHORT);
  buf_free(&body);
}

static enum ljp_bad_reason decode_labels(const char *set, size_t len)
{
  struct buf body = {0};
  struct ljp_item item;
  put_u(&body, 1);
  put_u(&body, len);
  put_bytes(&body, set, len);
  enum ljp_bad_reason bad = ljp_record_decode(LJP_REC_LABELS, body.data,
                                              body.data + body.len, 0, &item);
  buf_free(&body);
  return bad;
}

static void labels_that_are_not_sorted_pairs_are_malformed(void **state)
{
  (void)state;
#define LABELS(text) decode_labels(text, sizeof text - 1)
  assert_int_equal(LABELS(""), LJP_BAD_NONE);
  assert_int_equal(LABELS("a\0"
                          "1\0"),
                   LJP_BAD_NONE);
  assert_int_equal(LABELS("a\0"
                          "1\0"
                          "b\0"
                          "\0"),
                   LJP_BAD_NONE);
  assert_int_equal(LABELS("a\0"
                          "1"),
                   LJP_BAD_LABELS);
  assert_int_equal(LABELS("\0"
                          "1\0"),
                   LJP_BAD_LABELS);
  assert_int_equal(LABELS("a\0"), LJP_BAD_LABELS);
  assert_int_equal(LABELS("a"), LJP_BAD_LABELS);
  assert_int_equal(LABELS("a\0"
                          "1\0"
                          "b\0"),
                   LJP_BAD_LABELS);
  assert_int_equal(LABELS("b\0"
                          "1\0"
                          "a\0"
                          "1\0"),
                   LJP_BAD_LABELS);
  assert_int_equal(LABELS("a\0"
                          "1\0"
                          "a\0"
                          "2\0"),
                   LJP_BAD_LABELS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_but_four_records_are_flat),
      cmocka_unit_test(each_flat_record_comes_back),
      cmocka_unit_test(what_newer_versions_append_is_ignored),
      cmocka_unit_test(each_flat_record_cut_anywhere_is_malformed),
      cmocka_unit_test(what_an_older_version_did_not_write_is_0),
      cmocka_unit_test(a_number_of_more_than_64_bits_is_malformed),
      cmocka_unit_test(
          a_string_longer_than_its_record_or_the_limit_is_malformed),
      cmocka_unit_test(a_count_larger_than_its_record_is_malformed),
      cmocka_unit_test(labels_that_are_not_sorted_pairs_are_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
