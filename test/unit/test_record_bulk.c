/* Bulk records (samples, memory events, nodes): each decodes event by event;
** malformed ones are reported. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/stream/bulk.h"
#include "test/support/encode.h"
#include "test/support/random.h"

enum { BLOCK_TIME = 1000003 };

typedef enum ljp_bad_reason decoder(const uint8_t **, const uint8_t *,
                                    struct ljp_item *);

/* Decodes up to max events of body, with the slack after it. */
static enum ljp_bad_reason decode_many(decoder *decode, struct buf *body,
                                       size_t len, struct ljp_item *events,
                                       unsigned max, unsigned *count)
{
  struct ljp_item event = {.time_ns = BLOCK_TIME};
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
  struct ljp_item e[4];
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
  /* Cut within the first event. */
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
  struct ljp_item e;
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
  struct ljp_item e;
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

/* The fast decoder of numbers agrees with the simple one. */
static void numbers_of_every_length_and_padding_are_read_right(void **state)
{
  (void)state;
  uint64_t seed = RANDOM_SEED;
  for (int i = 0; i < 20000; i++) {
    random_next(&seed);
    uint64_t v = seed >> i % 64, want;
    struct buf body = {0};
    struct ljp_item e;
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
  struct ljp_item e;
  unsigned n;
  put_bytes(&body, big, sizeof big);
  assert_int_equal(decode_many(ljp_sample_decode, &body, body.len, &e, 1, &n),
                   LJP_BAD_NUMBER);
  buf_free(&body);
}

/* Encodes v in len bytes, or in as many as it needs if that is more. */
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
  uint64_t seed = RANDOM_SEED;
  for (size_t i = 0; i < 200 * 10 * 10; i++) {
    random_next(&seed);
    size_t first = i % 10 + 1, second = i / 10 % 10 + 1;
    unsigned spare = i / 100 % 4 == 0 ? seed % 60 : 0;
    uint64_t a = first < 10 ? seed & ((UINT64_C(1) << 7 * first) - 1) : seed;
    uint64_t b =
        second < 10 ? ~seed & ((UINT64_C(1) << 7 * second) - 1) : ~seed;
    struct buf body = {0};
    struct ljp_item e;
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
  struct ljp_item e[4];
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
  struct ljp_item e;
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
  struct ljp_item e[4];
  struct buf body = {0};
  unsigned n;
  put_node(&body, 100, 100, LJP_FRAME_HOST);
  put_node(&body, 1, 1, LJP_FRAME_LUA);
  put_node(&body, 5, 6, LJP_FRAME_BUILTIN);
  put_node(&body, -2, 3, 15); /* Unknown kind: one number. */
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

/* A parent that is the node itself, a later node, or outside the epoch. */
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
    struct ljp_item e;
    struct buf body = {0};
    unsigned n;
    put_node(&body, wrong[i].id, wrong[i].up, LJP_FRAME_LUA);
    assert_int_equal(decode_many(ljp_node_decode, &body, body.len, &e, 1, &n),
                     LJP_BAD_NODE_PARENT);
    buf_free(&body);
  }
}

static void labels_below_a_root_are_malformed(void **state)
{
  (void)state;
  struct ljp_item e;
  struct buf body = {0};
  unsigned n;
  put_node(&body, 100, 100, LJP_FRAME_LABELS);
  assert_int_equal(decode_many(ljp_node_decode, &body, body.len, &e, 1, &n), 0);
  assert_int_equal(e.u.node.up, 0);
  body.len = 0;
  put_node(&body, 100, 1, LJP_FRAME_LABELS);
  assert_int_equal(decode_many(ljp_node_decode, &body, body.len, &e, 1, &n),
                   LJP_BAD_LABELS_PARENT);
  buf_free(&body);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
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
      cmocka_unit_test(labels_below_a_root_are_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
