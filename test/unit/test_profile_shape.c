/*
** The tree that views see: a C function that Lua called is one frame, whether or
** not the host's frame of the same call was recorded.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/profile/frame_name.h"
#include "parsers/profile/profile.h"
#include "test/support/encode.h"

static struct buf stream, payload, body;
static uint64_t last_node, samples;

enum { SORT = 1, FLOOR, LIBVM = 1, LIBMINE };

/* Appends an embedded symbol. level 0 is the innermost. */
static void symbol(uint64_t module, uint64_t address, uint64_t level,
                   const char *function)
{
  put_u(&body, module);
  put_u(&body, address);
  put_u(&body, level);
  put_u(&body, 10 + level);
  put_str(&body, function);
  put_str(&body, "some.c");
  put_record(&payload, LJP_REC_SYMBOL, &body);
}

static void module(uint64_t id, const char *path)
{
  put_u(&body, id);
  put_u(&body, 0);
  put_u(&body, 0);
  put_u(&body, 0x10000);
  put_u(&body, 0);
  put_str(&body, "");
  put_str(&body, path);
  put_record(&payload, LJP_REC_MODULE, &body);
}

static void builtin(uint64_t ffid, const char *name)
{
  put_u(&body, ffid);
  put_str(&body, name);
  put_record(&payload, LJP_REC_BUILTIN, &body);
}

static void begin(void)
{
  stream.len = payload.len = body.len = 0;
  last_node = samples = 0;
  module(LIBVM, "/lib/libvm.so");
  module(LIBMINE, "/lib/mine.so");
  builtin(SORT, "table.sort");
  builtin(FLOOR, "math.floor");
}

/* Puts a node with this parent (0: none) and returns its id. */
static uint64_t frame(uint64_t below, unsigned kind, uint64_t ref,
                      uint64_t value)
{
  uint64_t id = ++last_node;
  put_s(&body, (int64_t)id);
  put_u(&body, below ? id - below : id);
  put_u8(&body, kind << 4);
  if (kind != LJP_FRAME_BUILTIN)
    put_u(&body, ref);
  put_u(&body, value);
  put_record(&payload, LJP_REC_NODES, &body);
  return id;
}

static void sample(uint64_t stack, uint64_t count)
{
  for (; count; count--) {
    put_u8(&body, LJP_SAMPLE_STACK | LJP_SAMPLE_WEIGHT);
    put_s(&body, 1);
    put_s(&body, (int64_t)stack);
    put_u(&body, 7);
    put_record(&payload, LJP_REC_SAMPLES, &body);
    samples++;
  }
}

static struct ljp_profile *finish(void)
{
  static struct ljp_reader reader;
  static const struct ljp_profile_options options = {.no_symbols = true};
  struct ljp_profile *p = ljp_profile_new(&options);
  put_block(&stream, 0, &payload);
  put_end_block(&stream, 1);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  assert_int_equal(p->totals.samples, samples);
  assert_int_equal(p->totals.cpu_ns, samples * 7);
  return p;
}

static size_t path_of(const struct ljp_profile *p, uint32_t node, char *out,
                      size_t room)
{
  size_t n = 0;
  if (p->nodes[node].parent) {
    n = path_of(p, p->nodes[node].parent, out, room);
    out[n++] = ';';
  }
  return n + ljp_frame_name(p, p->nodes[node].frame, 0, out + n, room - n);
}

/* The number of samples at the stack with these names. */
static uint64_t count_at(const struct ljp_profile *p, const char *path)
{
  char text[512];
  uint64_t count = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    path_of(p, p->rows[i].node, text, sizeof text);
    if (strcmp(text, path) == 0)
      count += p->rows[i].count;
  }
  return count;
}

static void a_builtin_and_its_c_code_are_one_frame(void **state)
{
  (void)state;
  begin();
  uint64_t sort = frame(0, LJP_FRAME_BUILTIN, 0, SORT);
  uint64_t code = frame(sort, LJP_FRAME_HOST, LIBVM, 0x100);
  uint64_t aux = frame(code, LJP_FRAME_HOST, LIBVM, 0x200);
  uint64_t inlined = frame(sort, LJP_FRAME_HOST, LIBVM, 0x110);
  uint64_t floor_ = frame(0, LJP_FRAME_BUILTIN, 0, FLOOR);
  uint64_t assembly = frame(floor_, LJP_FRAME_VM, LIBVM, 0x300);
  uint64_t other = frame(floor_, LJP_FRAME_HOST, LIBVM, 0x400);
  symbol(LIBVM, 0x100, 0, "lj_cf_table_sort");
  symbol(LIBVM, 0xff, 0, "lj_cf_table_sort");
  symbol(LIBVM, 0x200, 0, "auxsort");
  symbol(LIBVM, 0x110, 0, "set2");
  symbol(LIBVM, 0x110, 1, "lj_cf_table_sort");
  symbol(LIBVM, 0x300, 0, "lj_ff_math_floor");
  symbol(LIBVM, 0x400, 0, "lj_str_new");
  sample(sort, 2);
  sample(code, 3);
  sample(aux, 5);
  sample(inlined, 7);
  sample(assembly, 11);
  sample(other, 13);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "table.sort"), 5);
  assert_int_equal(count_at(p, "table.sort;auxsort"), 5);
  assert_int_equal(count_at(p, "table.sort;set2"), 7);
  assert_int_equal(count_at(p, "math.floor"), 11);
  assert_int_equal(count_at(p, "math.floor;lj_str_new"), 13);
  ljp_profile_free(p);
}

static void a_c_function_is_one_frame_with_its_address(void **state)
{
  (void)state;
  begin();
  uint64_t guest = frame(0, LJP_FRAME_CFUNC, LIBMINE, 0x100);
  uint64_t host = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x140);
  uint64_t again = frame(host, LJP_FRAME_HOST, LIBMINE, 0x150);
  symbol(LIBMINE, 0x100, 0, "mine_work");
  symbol(LIBMINE, 0x140, 0, "mine_work");
  symbol(LIBMINE, 0x13f, 0, "mine_work");
  symbol(LIBMINE, 0x150, 0, "mine_work");
  sample(host, 3);
  sample(again, 5);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "mine_work"), 3);
  assert_int_equal(count_at(p, "mine_work;mine_work"), 5); /* A recursion. */
  unsigned seen = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_node *node = &p->nodes[p->rows[i].node];
    if (node->parent)
      continue;
    assert_int_equal(p->frames[node->frame].kind, LJP_FRAME_CFUNC);
    assert_int_equal(p->frames[node->frame].offset, 0x140);
    assert_int_equal(p->frames[node->frame].line, 10);
    seen++;
  }
  assert_int_equal(seen, 1);
  /* The guest's own frame is no longer used. */
  for (uint32_t i = 0; i < p->node_count; i++)
    assert_true(p->frames[p->nodes[i].frame].offset != 0x100);
  ljp_profile_free(p);
}

static void other_neighbours_stay_two_frames(void **state)
{
  (void)state;
  begin();
  uint64_t guest = frame(0, LJP_FRAME_CFUNC, LIBMINE, 0x100);
  uint64_t tail = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x240);
  uint64_t far = frame(guest, LJP_FRAME_HOST, LIBVM, 0x140);
  uint64_t before = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x90);
  uint64_t nameless = frame(guest, LJP_FRAME_HOST, LIBMINE, 0x150);
  uint64_t host = frame(0, LJP_FRAME_HOST, LIBVM, 0x500);
  uint64_t above = frame(host, LJP_FRAME_HOST, LIBVM, 0x100);
  symbol(LIBMINE, 0x100, 0, "mine_work");
  symbol(LIBMINE, 0x240, 0, "mine_tail");
  symbol(LIBMINE, 0x90, 0, "mine_work");
  symbol(LIBVM, 0x140, 0, "mine_work");
  symbol(LIBVM, 0x100, 0, "lj_cf_table_sort");
  symbol(LIBVM, 0x4ff, 0, "lj_cf_table_sort");
  sample(guest, 2);
  sample(tail, 3);
  sample(far, 5);
  sample(before, 7);
  sample(nameless, 11);
  sample(above, 13);
  struct ljp_profile *p = finish();
  assert_int_equal(count_at(p, "mine_work"), 2);
  assert_int_equal(count_at(p, "mine_work;mine_tail"), 3);
  assert_int_equal(count_at(p, "mine_work;mine_work"), 5 + 7);
  assert_int_equal(count_at(p, "mine_work;mine.so+0x150"), 11);
  assert_int_equal(count_at(p, "lj_cf_table_sort;lj_cf_table_sort"), 13);
  ljp_profile_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_builtin_and_its_c_code_are_one_frame),
      cmocka_unit_test(a_c_function_is_one_frame_with_its_address),
      cmocka_unit_test(other_neighbours_stay_two_frames),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  buf_free(&stream);
  buf_free(&payload);
  buf_free(&body);
  return failed;
}
