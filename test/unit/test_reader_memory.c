/*
** The reader's memory: it never exceeds the limit, and the reader survives
** every failing allocation. The linker wraps malloc and its family, so that
** allocations are counted and can be made to fail (except zstd's own).
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "test/support/collect.h"
#include "test/support/encode.h"
#include "test/support/wrapped_alloc.h"

static struct ljp_reader reader;

static enum ljp_status read_all(const void *data, size_t size)
{
  const struct ljp_item *e;
  enum ljp_status status = ljp_reader_memory(&reader, data, size);
  if (status)
    return status;
  do
    status = ljp_reader_next(&reader, &e);
  while (!status && e->what != LJP_ITEM_FINISH);
  if (status) { /* The error stays. */
    assert_int_equal(ljp_reader_next(&reader, &e), status);
    assert_true(reader.error[0]);
  }
  ljp_reader_fini(&reader);
  return status;
}

static void each_allocation_that_fails_is_told_and_leaves_nothing(void **state)
{
  (void)state;
  static uint8_t data[1 << 20];
  FILE *f = fopen(LJP_SOURCE_DIR "/test/data/every-record-zstd.ljp", "rb");
  assert_non_null(f);
  size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
  assert_true(size > 1000);
  long n = 1;
  for (;; n++) {
    size_t before = alloc_live;
    alloc_fail_at = n;
    enum ljp_status status = read_all(data, size);
    bool failed = alloc_fail_at == 0;
    alloc_fail_at = 0;
    assert_int_equal(alloc_live, before);
    if (!failed) {
      assert_int_equal(status, LJP_OK);
      break;
    }
    assert_int_equal(status, LJP_ERR_MEM);
    assert_string_equal(reader.error, "out of memory");
  }
  assert_true(n > 8); /* The window, tables, pages ... */
}

/* -- Input that wants all the memory there is ------------------------------ */

/* Endless blocks full of definitions, each made when it is read. */
struct hog {
  struct buf block;
  size_t at;
  uint64_t seq, id, left, first_node;
  uint32_t epoch;
  unsigned per_epoch, kind;
};

static struct hog hog;

static void hog_block(void)
{
  static char text[60000];
  struct buf payload = {0}, body = {0};
  hog.block.len = hog.at = 0;
  if (hog.seq % hog.per_epoch == 0)
    hog.epoch++;
  while (payload.len < 900000) {
    hog.id++;
    if (hog.kind == 0) { /* Long names. */
      put_u(&body, hog.id);
      put_u(&body, 1);
      put_u(&body, 2);
      put_u(&body, 0);
      put_u(&body, sizeof text);
      put_bytes(&body, text, sizeof text);
      put_str(&body, "");
      put_record(&payload, LJP_REC_PROTO, &body);
    } else if (hog.kind == 1) { /* As many keys as bytes allow. */
      put_u(&body, hog.id);
      put_u(&body, hog.id);
      put_str(&body, "");
      put_record(&payload, LJP_REC_VM, &body);
    } else if (hog.kind == 2) { /* Nodes with ids all over the range. */
      put_s(&body, (int64_t)(hog.id * UINT64_C(0x9e3779b97f4a7c15)));
      put_u(&body, 1);
      put_u8(&body, LJP_FRAME_KERNEL << 4);
      put_u(&body, hog.id);
      put_record(&payload, LJP_REC_NODES, &body);
    } else { /* Losses of more and more producers. */
      put_s(&body, 0);
      put_u(&body, hog.id);
      put_u(&body, 1);
      put_u(&body, 1);
      put_record(&payload, LJP_REC_LOSS, &body);
    }
  }
  struct ljp_block_head head = test_head(hog.seq++);
  head.epoch = hog.epoch;
  put_block_head(&hog.block, head, &payload);
  buf_free(&payload);
  buf_free(&body);
}

static ssize_t hog_read(struct ljp_input *input, void *to, size_t n)
{
  (void)input;
  if (hog.at == hog.block.len) {
    if (!hog.left--)
      return 0;
    hog_block();
  }
  if (n > hog.block.len - hog.at)
    n = hog.block.len - hog.at;
  memcpy(to, hog.block.data + hog.at, n);
  hog.at += n;
  return (ssize_t)n;
}

static void input_of_definitions_only_stays_within_the_bound(void **state)
{
  (void)state;
  const size_t epoch_mb = LJP_MODEL_EPOCH_BYTES >> 20;
  for (unsigned kind = 0; kind < 4; kind++) {
    const struct ljp_item *e;
    uint64_t refused = 0;
    size_t before = alloc_live;
    buf_free(&hog.block);
    alloc_bytes = alloc_peak = 0;
    hog = (struct hog){.kind = kind, .per_epoch = (unsigned)(epoch_mb * 5 / 4)};
    if (kind == 1)
      hog.per_epoch = (unsigned)(epoch_mb / 8);
    hog.left = kind >= 2 ? 12 : hog.per_epoch * 2 + hog.per_epoch / 4;
    assert_int_equal(ljp_reader_memory(&reader, "", 0), LJP_OK);
    reader.input.read = hog_read;
    do {
      if (ljp_reader_next(&reader, &e))
        fail_msg("%s", reader.error);
      if (e->what == LJP_ITEM_BAD) {
        assert_int_equal(e->u.bad.reason,
                         kind == 2 ? LJP_BAD_NODE_PARENT : LJP_BAD_TABLE);
        refused++;
      }
    } while (e->what != LJP_ITEM_FINISH);
    /* The blocks that make the input take memory, too. */
    assert_true(alloc_peak < LJP_READER_MAX_BYTES + (8u << 20));
    if (kind < 2)
      assert_true(alloc_peak > LJP_MODEL_EPOCH_BYTES);
    if (kind != 2)
      assert_true(refused > 0);
    ljp_reader_fini(&reader);
    buf_free(&hog.block);
    assert_int_equal(alloc_live, before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_allocation_that_fails_is_told_and_leaves_nothing),
      cmocka_unit_test(input_of_definitions_only_stays_within_the_bound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
