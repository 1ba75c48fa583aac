/* Each record type comes back field by field, and says so when it is broken. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/bulk.h"
#include "test/support/encode.h"

enum { BLOCK_TIME = 1000003 };

static const uint64_t flat[] = {
#define LJP_X(tag, member) LJP_REC_##tag,
    LJP_FLAT_LIST(LJP_X)
#undef LJP_X
};
enum { FLAT = sizeof flat / sizeof *flat };

static void all_but_three_records_are_flat(void **state)
{
  (void)state;
  unsigned all = 0, count;
#define LJP_X(name, number, text, event) all++;
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  assert_int_equal(FLAT + 3, all);
  for (int i = 0; i < FLAT; i++)
    assert_non_null(ljp_record_fields(flat[i], &count));
  assert_null(ljp_record_fields(LJP_REC_SAMPLES, &count));
  assert_null(ljp_record_fields(0, &count));
  assert_null(ljp_record_fields(UINT64_MAX, &count));
}

/* The value of a field: no two of a record are alike. */
static uint64_t value_of(unsigned field, unsigned type)
{
  static const uint64_t primes[] = {
      3, 10007,  1000003,   5,  4294967291, 127,   128, 99991,
      7, 524287, 600000007, 11, 131,        65537, 13,  2097143};
  uint64_t v = primes[field];
  return type == LJP_FIELD_S ? (uint64_t) - (int64_t)v : v;
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
      put_str(body, text);
      break;
    case LJP_FIELD_PAIRS:
      put_u(body, 2);
      for (int j = 0; j < 4; j++)
        put_u(body, 1009 + (unsigned)j);
      break;
    }
  }
}

static void check_fields(uint64_t tag, const struct ljp_event *event)
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
      assert_int_equal(string.len, 2);
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
    struct ljp_event event;
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
    struct ljp_event event;
    encode(&body, flat[i]);
    put_bytes(&body, "\xff\xff\xff", 3);
    assert_int_equal(ljp_record_decode(flat[i], body.data, body.data + body.len,
                                       BLOCK_TIME, &event),
                     LJP_BAD_NONE);
    check_fields(flat[i], &event);
    buf_free(&body);
  }
}

/* Exactly as many bytes as there are, so that a sanitizer sees one too far. */
static enum ljp_bad_reason decode_exactly(uint64_t tag, const uint8_t *data,
                                          size_t len)
{
  struct ljp_event event;
  uint8_t *copy = malloc(len + !len);
  if (len)
    memcpy(copy, data, len);
  enum ljp_bad_reason bad =
      ljp_record_decode(tag, copy, copy + len, BLOCK_TIME, &event);
  free(copy);
  return bad;
}

/* Do len bytes of a body of whole bytes end where a field begins that came
** later? These are the last ones, and all of them numbers. */
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
  struct ljp_event event;
  encode(&body, LJP_REC_TRACE);
  size_t whole = body.len;
  while (!ends_before_an_added_field(LJP_REC_TRACE, body.len, --whole))
    ;
  memset(&event, 0xff, sizeof event);
  assert_int_equal(ljp_record_decode(LJP_REC_TRACE, body.data,
                                     body.data + whole, BLOCK_TIME, &event),
                   LJP_BAD_NONE);
  assert_true(event.u.trace.marks == value_of(14, LJP_FIELD_U1));
  assert_true(event.u.trace.flags == 0);
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
  /* The limit itself is fine, one more is not, though the bytes are there. */
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
  body.len = 0; /* Enough bytes for the count, not for the numbers. */
  put_u(&body, 2);
  put_bytes(&body, "\x81\x01\x81\x01", 4);
  assert_int_equal(decode_exactly(LJP_REC_TOTALS, body.data, body.len),
                   LJP_BAD_SHORT);
  buf_free(&body);
}

/* -- Records of many events ---------------------------------------------- */

typedef enum ljp_bad_reason decoder(const uint8_t **, const uint8_t *,
                                    struct ljp_event *);

/* Decodes up to max events of body, which slack follows. */
static enum ljp_bad_reason decode_many(decoder *decode, struct buf *body,
                                       size_t len, struct ljp_event *events,
                                       unsigned max, unsigned *count)
{
  struct ljp_event event = {.time_ns = BLOCK_TIME};
  uint8_t *copy = malloc(len + LJP_BLOCK_SLACK);
  const uint8_t *p = copy;
  enum ljp_bad_reason bad = LJP_BAD_NONE;
  memcpy(copy, body->data, len);
  memset(copy + len, 0x81, LJP_BLOCK_SLACK);
  *count = 0;
  while (p < copy + len && *count < max) {
    if ((bad = decode(&p, copy + len, &event)))
      break;
    assert_true(p <= copy + len);
    events[(*count)++] = event;
  }
  free(copy);
  return bad;
}

static void samples_come_back_and_absent_fields_stay(void **state)
{
  (void)state;
  struct ljp_event e[4];
  struct buf body = {0};
  unsigned n;
  put_u8(&body, LJP_SAMPLE_KNOWN);
  put_s(&body, 101);
  put_s(&body, 70001);
  put_u8(&body, LJP_VMSTATE_GC);
  put_u(&body, 3);
  put_u(&body, UINT64_MAX);
  put_u8(&body, LJP_CUT_DEPTH);
  put_u(&body, 2);
  put_bytes(&body, "??", 2);
  size_t first = body.len;
  put_u8(&body, 0);
  put_s(&body, -1);
  put_u8(&body, LJP_SAMPLE_STACK | LJP_SAMPLE_WEIGHT);
  put_s(&body, 10);
  put_s(&body, -69999);
  put_u(&body, 17);
  assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, e, 4, &n),
                   0);
  assert_int_equal(n, 3);
  assert_true(e[0].time_ns == BLOCK_TIME + 101);
  assert_true(e[0].u.sample.stack == 70001 && e[0].u.sample.vm == 3);
  assert_true(e[0].u.sample.weight == UINT64_MAX);
  assert_int_equal(e[0].u.sample.state, LJP_VMSTATE_GC);
  assert_int_equal(e[0].u.sample.cut, LJP_CUT_DEPTH);
  assert_true(e[1].time_ns == BLOCK_TIME + 100);
  assert_true(e[1].u.sample.stack == 70001 && e[1].u.sample.vm == 3);
  assert_int_equal(e[1].u.sample.state, LJP_VMSTATE_GC);
  assert_int_equal(e[1].u.sample.cut, 0);
  assert_true(e[2].u.sample.stack == 2 && e[2].u.sample.weight == 17);
  /* Cut within the first. */
  for (size_t len = 1; len < first; len++) {
    assert_int_equal(decode_many(ljp_sample_decode, &body, len, e, 4, &n),
                     LJP_BAD_SHORT);
    assert_int_equal(n, 0);
  }
  buf_free(&body);
}

static void a_sample_with_reserved_bits_is_malformed(void **state)
{
  (void)state;
  struct ljp_event e;
  unsigned n;
  for (unsigned bit = 0x20; bit <= 0x40; bit <<= 1) {
    struct buf body = {0};
    put_u8(&body, bit);
    put_s(&body, 1);
    assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, &e, 1, &n),
                     LJP_BAD_RESERVED);
    buf_free(&body);
  }
}

static void extra_fields_that_lie_about_their_length_are_malformed(void **state)
{
  (void)state;
  const uint64_t lies[] = {1, 100, LJP_BLOCK_SLACK, UINT64_C(1) << 63,
                           UINT64_MAX};
  struct ljp_event e;
  unsigned n;
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    struct buf body = {0};
    put_u8(&body, LJP_SAMPLE_EXTRA);
    put_s(&body, 1);
    put_u(&body, lies[i]);
    assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, &e, 1, &n),
                     LJP_BAD_SHORT);
    body.len = 0;
    put_u8(&body, LJP_MEM_EXTRA);
    put_s(&body, 1);
    put_s(&body, 1);
    put_u(&body, lies[i]);
    assert_int_equal(decode_many(ljp_mem_decode, &body, body.len, &e, 1, &n),
                     LJP_BAD_SHORT);
    buf_free(&body);
  }
}

/* The fast way to read numbers agrees with the plain one. */
static void numbers_of_every_length_and_padding_are_read_right(void **state)
{
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    uint64_t v = seed >> i % 64, want;
    struct buf body = {0};
    struct ljp_event e;
    unsigned n;
    put_u8(&body, LJP_SAMPLE_WEIGHT);
    put_s(&body, 0);
    size_t at = body.len;
    put_u(&body, v);
    if (i % 3 == 0 && body.len - at < LJP_VARINT_MAX_BYTES) { /* Pad it. */
      body.data[body.len - 1] |= 0x80;
      put_u8(&body, 0);
    }
    assert_non_null(
        ljp_get_varint(body.data + at, body.data + body.len, &want));
    assert_true(want == v);
    assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, &e, 1, &n),
                     0);
    assert_int_equal(n, 1);
    assert_true(e.u.sample.weight == v);
    buf_free(&body);
  }
  const uint8_t big[] = {
      LJP_SAMPLE_WEIGHT, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
  struct buf body = {0};
  struct ljp_event e;
  unsigned n;
  put_bytes(&body, big, sizeof big);
  assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, &e, 1, &n),
                   LJP_BAD_NUMBER);
  buf_free(&body);
}

/* v in len bytes, more than it needs where there is room. */
static void put_padded(struct buf *body, uint64_t v, size_t len)
{
  size_t at = body->len;
  put_u(body, v);
  while (body->len - at < len) {
    body->data[body->len - 1] |= 0x80;
    put_u8(body, 0);
  }
}

/* Two numbers in a row may be read by one load. */
static void two_numbers_of_all_lengths_are_read_right(void **state)
{
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (size_t i = 0; i < 200 * 10 * 10; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    size_t first = i % 10 + 1, second = i / 10 % 10 + 1;
    unsigned spare = i / 100 % 4 == 0 ? seed % 60 : 0;
    uint64_t a = first < 10 ? seed & ((UINT64_C(1) << 7 * first) - 1) : seed;
    uint64_t b =
        second < 10 ? ~seed & ((UINT64_C(1) << 7 * second) - 1) : ~seed;
    struct buf body = {0};
    struct ljp_event e;
    unsigned n;
    put_u8(&body, LJP_SAMPLE_STACK);
    put_padded(&body, a >> spare, first);
    put_padded(&body, b >> spare, second);
    assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, &e, 1, &n),
                     0);
    assert_true(e.time_ns == BLOCK_TIME + (uint64_t)ljp_unzigzag(a >> spare));
    assert_true(e.u.sample.stack == (uint64_t)ljp_unzigzag(b >> spare));
    for (size_t len = 1; len < body.len; len++)
      assert_int_equal(decode_many(ljp_sample_decode, &body, len, &e, 1, &n),
                       LJP_BAD_SHORT);
    buf_free(&body);
  }
}

static int64_t rotated_delta(uint64_t to, uint64_t from)
{
  return (int64_t)(ljp_rotate_address(to) - ljp_rotate_address(from));
}

static void memory_events_come_back(void **state)
{
  (void)state;
  const uint64_t a = 0x7f0000001008, b = 0x7f0000020010, c = 0x10;
  struct ljp_event e[4];
  struct buf body = {0};
  unsigned n;
  put_u8(&body, LJP_MEM_ALLOC | LJP_MEM_STACK | LJP_MEM_STATE | LJP_MEM_SIZE |
                    LJP_MEM_WEIGHT | LJP_MEM_WHAT);
  put_s(&body, 1);
  put_s(&body, rotated_delta(a, 0));
  put_u(&body, 41);
  put_s(&body, 5);
  put_u8(&body, LJP_VMSTATE_TRACE);
  put_u(&body, 2);
  put_u(&body, 524287);
  put_u8(&body, LJP_MEM_TYPE_HASH_PART | LJP_MEM_MOVED);
  put_u8(&body, LJP_MEM_REALLOC | LJP_MEM_SIZE | LJP_MEM_EXTRA);
  put_s(&body, 1);
  put_s(&body, rotated_delta(b, a));
  put_u(&body, 83);
  put_s(&body, rotated_delta(c, b));
  put_u(&body, 41);
  put_u(&body, 3);
  put_bytes(&body, "new", 3);
  size_t second = body.len;
  put_u8(&body, LJP_MEM_FREE);
  put_s(&body, 1);
  put_s(&body, rotated_delta(b, b));
  assert_int_equal(decode_many(ljp_mem_decode, &body, body.len, e, 4, &n), 0);
  assert_int_equal(n, 3);
  assert_int_equal(e[0].u.mem.op, LJP_MEM_ALLOC);
  assert_int_equal(e[0].u.mem.type, LJP_MEM_TYPE_HASH_PART);
  assert_int_equal(e[0].u.mem.flags, LJP_MEM_MOVED);
  assert_int_equal(e[1].u.mem.type, LJP_MEM_TYPE_HASH_PART);
  assert_true(e[0].u.mem.address == a && e[0].u.mem.size == 41);
  assert_true(e[0].u.mem.stack == 5 && e[0].u.mem.vm == 2);
  assert_true(e[0].u.mem.weight == 524287);
  assert_int_equal(e[0].u.mem.state, LJP_VMSTATE_TRACE);
  assert_int_equal(e[1].u.mem.op, LJP_MEM_REALLOC);
  assert_true(e[1].u.mem.address == b && e[1].u.mem.size == 83);
  assert_true(e[1].u.mem.old_address == c && e[1].u.mem.old_size == 41);
  assert_true(e[1].u.mem.stack == 5 && e[1].u.mem.weight == 524287);
  assert_int_equal(e[2].u.mem.op, LJP_MEM_FREE);
  assert_true(e[2].u.mem.address == b && e[2].u.mem.size == 83);
  assert_true(e[2].u.mem.old_address == 0 && e[2].u.mem.old_size == 0);
  assert_true(e[2].time_ns == BLOCK_TIME + 3);
  for (size_t len = 1; len < second; len++) {
    enum ljp_bad_reason bad = decode_many(ljp_mem_decode, &body, len, e, 4, &n);
    assert_true(bad == LJP_BAD_SHORT || (n == 1 && bad == LJP_BAD_NONE));
  }
  buf_free(&body);
}

static void memory_events_that_cannot_be_are_malformed(void **state)
{
  (void)state;
  struct ljp_event e;
  unsigned n;
  struct buf body = {0};
  put_bytes(&body, "\3\0\0\0\0", 5);
  assert_int_equal(decode_many(ljp_mem_decode, &body, body.len, &e, 1, &n),
                   LJP_BAD_OPERATION);
  buf_free(&body);
}

static void put_node(struct buf *b, int64_t id, uint64_t up, unsigned kind)
{
  put_s(b, id);
  put_u(b, up);
  put_u8(b, kind << 4 | LJP_FRAME_TAIL);
  if (ljp_frame_shape(kind) != LJP_SHAPE_NUM)
    put_u(b, 31);
  put_u(b, 4099);
}

static void nodes_of_each_shape_come_back(void **state)
{
  (void)state;
  struct ljp_event e[4];
  struct buf body = {0};
  unsigned n;
  put_node(&body, 100, 100, LJP_FRAME_HOST);
  put_node(&body, 1, 1, LJP_FRAME_LUA);
  put_node(&body, 5, 6, LJP_FRAME_BUILTIN);
  put_node(&body, -2, 3, 15); /* Not known: one number. */
  assert_int_equal(decode_many(ljp_node_decode, &body, body.len, e, 4, &n), 0);
  assert_int_equal(n, 4);
  assert_true(e[0].u.node.id == 100 && e[0].u.node.up == 0);
  assert_true(e[0].u.node.ref == 31 && e[0].u.node.value == 4099);
  assert_int_equal(e[0].u.node.kind, LJP_FRAME_HOST);
  assert_int_equal(e[0].u.node.flags, LJP_FRAME_TAIL);
  assert_true(e[1].u.node.id == 101 && e[1].u.node.up == 1);
  assert_true(e[2].u.node.id == 106 && e[2].u.node.up == 6);
  assert_true(e[2].u.node.ref == 0 && e[2].u.node.value == 4099);
  assert_true(e[3].u.node.id == 104 && e[3].u.node.kind == 15);
  for (size_t len = 1; len < 5; len++)
    assert_int_equal(decode_many(ljp_node_decode, &body, len, e, 4, &n),
                     LJP_BAD_SHORT);
  buf_free(&body);
}

/* A parent that is the node itself, a later one, or beyond the epoch. */
static void
a_node_whose_parent_does_not_come_before_it_is_malformed(void **state)
{
  (void)state;
  const struct {
    int64_t id;
    uint64_t up;
  } wrong[] = {{100, 0}, {100, 101},     {100, UINT64_MAX},    {0, 0},
               {0, 1},   {-1, 1u << 20}, {INT64_MAX, 1u << 21}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct ljp_event e;
    struct buf body = {0};
    unsigned n;
    put_node(&body, wrong[i].id, wrong[i].up, LJP_FRAME_LUA);
    assert_int_equal(decode_many(ljp_node_decode, &body, body.len, &e, 1, &n),
                     LJP_BAD_NODE_PARENT);
    buf_free(&body);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_but_three_records_are_flat),
      cmocka_unit_test(each_flat_record_comes_back),
      cmocka_unit_test(what_newer_versions_append_is_ignored),
      cmocka_unit_test(each_flat_record_cut_anywhere_is_malformed),
      cmocka_unit_test(what_an_older_version_did_not_write_is_0),
      cmocka_unit_test(a_number_of_more_than_64_bits_is_malformed),
      cmocka_unit_test(
          a_string_longer_than_its_record_or_the_limit_is_malformed),
      cmocka_unit_test(a_count_larger_than_its_record_is_malformed),
      cmocka_unit_test(samples_come_back_and_absent_fields_stay),
      cmocka_unit_test(a_sample_with_reserved_bits_is_malformed),
      cmocka_unit_test(extra_fields_that_lie_about_their_length_are_malformed),
      cmocka_unit_test(numbers_of_every_length_and_padding_are_read_right),
      cmocka_unit_test(two_numbers_of_all_lengths_are_read_right),
      cmocka_unit_test(memory_events_come_back),
      cmocka_unit_test(memory_events_that_cannot_be_are_malformed),
      cmocka_unit_test(nodes_of_each_shape_come_back),
      cmocka_unit_test(
          a_node_whose_parent_does_not_come_before_it_is_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
