/*
** The golden streams, damaged in every way: whole blocks are still read; damage
** is reported with its place, size and reason; nothing else is reported.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/support/collect.h"
#include "test/support/encode.h"

static const char *const names[] = {"every-record.ljp", "every-record-zstd.ljp",
                                    "killed.ljp",       "rotated.ljp",
                                    "rotated.ljp.s1",   "rotated.ljp.s2",
                                    "small-table.ljp",  "vm-closed.ljp",
                                    "heap.ljp",         "held.ljp",
                                    "held.ljp.s1"};
enum { FILES = sizeof names / sizeof *names, BLOCKS = 64 };

static struct golden {
  uint8_t *data;
  size_t size;
  unsigned blocks;
  size_t at[BLOCKS + 1]; /* Where each block begins; last: the size. */
  uint32_t crc[BLOCKS];
  bool first_segment; /* Its first block has number 0. */
  bool closed;
} golden[FILES];

static struct collect c;

static int load(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    struct golden *g = &golden[i];
    char path[4096];
    snprintf(path, sizeof path, "%s/test/data/%s", LJP_SOURCE_DIR, names[i]);
    FILE *f = fopen(path, "rb");
    if (!f)
      return -1;
    g->data = malloc(1 << 20);
    g->size = fread(g->data, 1, 1 << 20, f);
    fclose(f);
    /* Find the blocks without the reader. */
    for (size_t at = 0; at < g->size;) {
      struct ljp_block_head head;
      if (g->blocks == BLOCKS || ljp_block_head_get(g->data + at, &head))
        return -1;
      if (g->blocks == 0)
        g->first_segment = head.seq == 0;
      g->at[g->blocks] = at;
      g->crc[g->blocks++] = head.payload_crc;
      at += LJP_BLOCK_HEAD_BYTES + head.stored_len;
      g->at[g->blocks] = at;
    }
    if (g->at[g->blocks] != g->size || g->blocks < 5)
      return -1;
    g->closed = i != 2;
  }
  return 0;
}

static int unload(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++)
    free(golden[i].data);
  return 0;
}

static size_t size_of(const struct golden *g, unsigned block)
{
  return g->at[block + 1] - g->at[block];
}

/* c has the blocks [0, n) of g in order, except skip (UINT32_MAX: none). */
static void check_blocks(const struct golden *g, unsigned n, unsigned skip)
{
  unsigned at = 0;
  for (unsigned i = 0; i < n; i++)
    if (i != skip) {
      assert_true(at < c.blocks);
      assert_int_equal(c.block[at].crc, g->crc[i]);
      at++;
    }
  assert_int_equal(c.blocks, at);
}

static void check_gap(unsigned i, uint64_t offset, uint64_t bytes,
                      enum ljp_gap_reason reason)
{
  assert_true(i < c.gaps);
  assert_int_equal(c.gap[i].offset, offset);
  assert_int_equal(c.gap[i].bytes, bytes);
  assert_int_equal(c.gap[i].reason, reason);
}

/* The gap in place of a lost block says that one block is missing. */
static void check_missing(const struct golden *g, unsigned gap, unsigned block)
{
  if (block == 0 && !g->first_segment) {
    assert_false(c.gap[gap].missing_known);
  } else {
    assert_true(c.gap[gap].missing_known);
    assert_int_equal(c.gap[gap].missing, 1);
  }
}

static void golden_streams_are_whole(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    collect(&c, g->data, g->size);
    assert_int_equal(c.status, LJP_OK);
    check_blocks(g, g->blocks, UINT32_MAX);
    assert_int_equal(c.gaps, 0);
    assert_int_equal(c.bads, 0);
    assert_int_equal(c.finish.clean, g->closed);
    assert_true(c.events[LJP_REC_SAMPLES] + c.events[LJP_REC_OBJECTS] +
                    c.events[LJP_REC_MEM] >
                10);
  }
}

static void cut_at_every_byte_all_whole_blocks_are_read(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    unsigned whole = 0;
    for (size_t n = 0; n < g->size; n++) {
      while (g->at[whole + 1] <= n)
        whole++;
      collect(&c, g->data, n);
      assert_int_equal(c.status, whole ? LJP_OK : LJP_ERR_FORMAT);
      check_blocks(g, whole, UINT32_MAX);
      assert_int_equal(c.bads, 0);
      size_t rest = n - g->at[whole];
      assert_int_equal(c.gaps, rest > 0);
      if (rest) {
        check_gap(0, g->at[whole], rest, LJP_GAP_CUT);
        assert_int_equal(c.gap[0].missing,
                         whole && rest >= LJP_BLOCK_HEAD_BYTES);
      }
      assert_false(c.finish.clean);
      assert_int_equal(c.finish.closed, LJP_CLOSED_NOT);
    }
  }
}

static void with_any_header_bit_flipped_all_other_blocks_are_read(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    for (unsigned b = 0; b < g->blocks; b++)
      for (unsigned bit = 0; bit < LJP_BLOCK_HEAD_BYTES * 8; bit++) {
        uint8_t *p = &g->data[g->at[b] + bit / 8];
        *p ^= (uint8_t)(1u << bit % 8);
        collect(&c, g->data, g->size);
        *p ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(c.status, LJP_OK);
        check_blocks(g, g->blocks, b);
        assert_int_equal(c.gaps, 1);
        check_gap(0, g->at[b], size_of(g, b),
                  bit < 32 ? LJP_GAP_GARBAGE : LJP_GAP_HEAD_CRC);
        if (b + 1 < g->blocks)
          check_missing(g, 0, b);
        assert_int_equal(c.bads, 0);
        assert_int_equal(c.finish.clean, g->closed && b + 1 < g->blocks);
      }
  }
}

static void
with_a_bit_of_any_payload_byte_flipped_all_others_are_read(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    for (unsigned b = 0; b < g->blocks; b++)
      for (size_t at = g->at[b] + LJP_BLOCK_HEAD_BYTES; at < g->at[b + 1];
           at++) {
        g->data[at] ^= (uint8_t)(1u << at % 8);
        collect(&c, g->data, g->size);
        g->data[at] ^= (uint8_t)(1u << at % 8);
        assert_int_equal(c.status, LJP_OK);
        check_blocks(g, g->blocks, b);
        assert_int_equal(c.gaps, 1);
        check_gap(0, g->at[b], size_of(g, b), LJP_GAP_PAYLOAD_CRC);
        check_missing(g, 0, b);
        assert_int_equal(c.bads, 0);
      }
  }
}

static void put_golden_block(struct buf *file, const struct golden *g,
                             unsigned block)
{
  put_bytes(file, g->data + g->at[block], size_of(g, block));
}

static void a_deleted_block_is_reported_where_it_was(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    for (unsigned b = 0; b < g->blocks; b++) {
      struct buf file = {0};
      for (unsigned k = 0; k < g->blocks; k++)
        if (k != b)
          put_golden_block(&file, g, k);
      collect(&c, file.data, file.len);
      check_blocks(g, g->blocks, b);
      bool last = b + 1 == g->blocks;
      assert_int_equal(c.gaps, !last);
      if (!last) {
        check_gap(0, g->at[b], 0, LJP_GAP_MISSING);
        check_missing(g, 0, b);
      }
      assert_int_equal(c.finish.clean, g->closed && !last);
      buf_free(&file);
    }
  }
}

static void a_doubled_block_is_delivered_once(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    for (unsigned b = 0; b < g->blocks; b++) {
      struct buf file = {0};
      for (unsigned k = 0; k < g->blocks; k++) {
        put_golden_block(&file, g, k);
        if (k == b)
          put_golden_block(&file, g, k);
      }
      collect(&c, file.data, file.len);
      check_blocks(g, g->blocks, UINT32_MAX);
      assert_int_equal(c.gaps, 1);
      check_gap(0, g->at[b + 1], size_of(g, b), LJP_GAP_SEQ);
      assert_int_equal(c.finish.missing_blocks, 0);
      buf_free(&file);
    }
  }
}

static void of_two_swapped_blocks_the_later_one_is_read(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    for (unsigned b = 0; b + 1 < g->blocks; b++) {
      struct buf file = {0};
      for (unsigned k = 0; k < g->blocks; k++)
        put_golden_block(&file, g, k == b ? b + 1 : k == b + 1 ? b : k);
      collect(&c, file.data, file.len);
      check_blocks(g, g->blocks, b);
      assert_int_equal(c.gaps, 2);
      check_gap(0, g->at[b], 0, LJP_GAP_MISSING);
      check_missing(g, 0, b);
      check_gap(1, g->at[b] + size_of(g, b + 1), size_of(g, b), LJP_GAP_SEQ);
      buf_free(&file);
    }
  }
}

static void segments_one_after_another_are_one_stream(void **state)
{
  (void)state;
  struct buf file = {0};
  unsigned blocks = 0;
  for (int i = 3; i <= 5; i++) {
    put_bytes(&file, golden[i].data, golden[i].size);
    blocks += golden[i].blocks;
  }
  collect(&c, file.data, file.len);
  assert_int_equal(c.blocks, blocks);
  assert_int_equal(c.gaps, 0);
  assert_int_equal(c.bads, 0);
  assert_true(c.finish.clean);
  assert_int_equal(c.finish.closed, LJP_CLOSED_END);
  /* Without the segment in the middle, its blocks are missing, and the number
  ** of events in them is known. */
  file.len = 0;
  put_bytes(&file, golden[3].data, golden[3].size);
  put_bytes(&file, golden[5].data, golden[5].size);
  collect(&c, golden[4].data, golden[4].size);
  uint64_t samples = c.events[LJP_REC_SAMPLES], mem = c.events[LJP_REC_MEM];
  assert_true(samples > 0 && mem > 0);
  collect(&c, file.data, file.len);
  assert_int_equal(c.gaps, 1);
  check_gap(0, golden[3].size, 0, LJP_GAP_MISSING);
  assert_int_equal(c.gap[0].missing, golden[4].blocks);
  assert_int_equal(c.bads, 0);
  assert_int_equal(c.tally.swallowed[LJP_REC_SAMPLES], samples);
  assert_int_equal(c.tally.swallowed[LJP_REC_MEM], mem);
  buf_free(&file);
}

static void another_session_behind_is_one_gap(void **state)
{
  (void)state;
  const struct golden *g = &golden[0];
  struct buf file = {0};
  put_bytes(&file, g->data, g->size);
  put_bytes(&file, g->data, g->size);
  for (unsigned b = 0; b < g->blocks; b++) {
    uint8_t *p = file.data + g->size + g->at[b];
    p[8] ^= 1; /* In the stream's id. */
    ljp_put_u32(p + 52, ljp_crc32c(0, p, 52));
  }
  collect(&c, file.data, file.len);
  check_blocks(g, g->blocks, UINT32_MAX);
  assert_int_equal(c.gaps, 1);
  check_gap(0, g->size, g->size, LJP_GAP_FOREIGN);
  assert_int_equal(c.finish.closed, LJP_CLOSED_END);
  assert_false(c.finish.clean);
  buf_free(&file);
}

static void garbage_in_front_is_a_gap(void **state)
{
  (void)state;
  uint32_t seed = 1;
  for (int i = 0; i < FILES; i++) {
    const struct golden *g = &golden[i];
    for (size_t n = 1; n < 200; n += 3) {
      struct buf file = {0};
      for (size_t k = 0; k < n; k++)
        put_u8(&file, (seed = seed * 1664525u + 1013904223u) >> 24);
      file.data[n / 2] = 0x89;
      put_bytes(&file, g->data, g->size);
      collect(&c, file.data, file.len);
      check_blocks(g, g->blocks, UINT32_MAX);
      assert_int_equal(c.gaps, 1);
      check_gap(0, 0, n, LJP_GAP_GARBAGE);
      assert_int_equal(c.finish.clean, g->closed);
      buf_free(&file);
    }
  }
}

/* A valid header every few bytes, each claiming 1 MiB of payload. If each
** checksum were computed anew, this would take minutes. */
static void a_swarm_of_false_headers_takes_linear_time(void **state)
{
  (void)state;
  struct buf file = {0};
  uint8_t bytes[LJP_BLOCK_HEAD_BYTES];
  struct ljp_block_head head = test_head(5);
  head.stored_len = head.raw_len = LJP_BLOCK_MAX_BYTES;
  ljp_block_head_put(bytes, &head);
  put_mark_block(&file, 0);
  size_t at = file.len;
  while (file.len < 4 << 20)
    put_bytes(&file, bytes, sizeof bytes);
  size_t end = file.len;
  put_end_block(&file, 1);
  alarm(60);
  collect(&c, file.data, file.len);
  alarm(0);
  assert_int_equal(c.blocks, 2);
  assert_int_equal(c.gaps, 1);
  check_gap(0, at, end - at, LJP_GAP_PAYLOAD_CRC);
  buf_free(&file);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_streams_are_whole),
      cmocka_unit_test(cut_at_every_byte_all_whole_blocks_are_read),
      cmocka_unit_test(with_any_header_bit_flipped_all_other_blocks_are_read),
      cmocka_unit_test(
          with_a_bit_of_any_payload_byte_flipped_all_others_are_read),
      cmocka_unit_test(a_deleted_block_is_reported_where_it_was),
      cmocka_unit_test(a_doubled_block_is_delivered_once),
      cmocka_unit_test(of_two_swapped_blocks_the_later_one_is_read),
      cmocka_unit_test(segments_one_after_another_are_one_stream),
      cmocka_unit_test(another_session_behind_is_one_gap),
      cmocka_unit_test(garbage_in_front_is_a_gap),
      cmocka_unit_test(a_swarm_of_false_headers_takes_linear_time),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
