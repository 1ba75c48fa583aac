/* Births: what was alive at the moment of a heap snapshot, with its allocation. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/heap/graph_births.h"
#include "parsers/profile/profile.h"
#include "test/support/encode.h"

static struct ljp_reader reader;
static struct buf stream, payload, body;
static uint64_t vm = 1;

static void mem(unsigned op, uint64_t address, uint64_t size, uint64_t stack,
                uint64_t weight)
{
  put_u8(&body, op | LJP_MEM_SIZE | LJP_MEM_STACK | LJP_MEM_STATE |
                    (weight ? LJP_MEM_WEIGHT : 0));
  put_s(&body, 1);
  put_s(&body, (int64_t)ljp_rotate_address(address));
  put_u(&body, size);
  put_s(&body, (int64_t)stack);
  put_u8(&body, LJP_VMSTATE_INTERP);
  put_u(&body, vm);
  if (weight)
    put_u(&body, weight);
  put_record(&payload, LJP_REC_MEM, &body);
}

static void gc(uint64_t cycle)
{
  put_s(&body, 1);
  put_u(&body, vm);
  put_u(&body, LJP_GC_PAUSE);
  put_u(&body, 0);
  put_u(&body, cycle);
  put_record(&payload, LJP_REC_GC, &body);
}

static void moment(uint64_t snapshot)
{
  put_s(&body, 7);
  put_u(&body, snapshot);
  put_u(&body, vm);
  put_u(&body, 65537);
  put_record(&payload, LJP_REC_HEAP_MOMENT, &body);
}

static void begin(void)
{
  stream.len = payload.len = body.len = 0;
  vm = 1;
  put_u(&body, 1);
  put_u(&body, LJP_PRODUCER_MEMORY);
  put_u(&body, 1);
  put_u(&body, 0);
  put_record(&payload, LJP_REC_PRODUCER, &body);
  for (uint64_t i = 1; i <= 3; i++) {
    put_u(&body, i);
    put_str(&body, i == 1 ? "one" : i == 2 ? "two" : "three");
    put_record(&payload, LJP_REC_BUILTIN, &body);
    put_s(&body, (int64_t)i);
    put_u(&body, i);
    put_u8(&body, LJP_FRAME_BUILTIN << 4);
    put_u(&body, i);
    put_record(&payload, LJP_REC_NODES, &body);
  }
}

static struct ljp_profile *load(uint64_t snapshot)
{
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .births = snapshot};
  struct ljp_profile *p = ljp_profile_new(&options);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  return p;
}

static void two_snapshots(void)
{
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 101, 1, 0); /* Event 1. */
  mem(LJP_MEM_ALLOC, 0x2000, 211, 2, 0);
  gc(5);
  mem(LJP_MEM_ALLOC, 0x3000, 307, 3, 0);
  vm = 2;
  mem(LJP_MEM_ALLOC, 0x9000, 11, 1, 0); /* Of another VM. */
  vm = 1;
  moment(1);
  mem(LJP_MEM_FREE, 0x1000, 101, 0, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 503, 2, 0); /* Event 5: the same address. */
  gc(6);
  moment(2);
  mem(LJP_MEM_ALLOC, 0x4000, 601, 1, 0); /* After both. */
  put_block(&stream, 0, &payload);
  put_end_block(&stream, 1);
}

/* The number of the builtin that allocated the block. */
static uint64_t site(const struct ljp_profile *p, const struct ljp_birth *b)
{
  assert_non_null(b);
  assert_true(b->row < p->row_count);
  return p->frames[p->nodes[p->rows[b->row].node].frame].offset;
}

static void a_moment_keeps_what_was_alive(void **state)
{
  (void)state;
  two_snapshots();
  for (int fold = 0; fold < 2; fold++) {
    struct ljp_profile *p = load(1);
    if (fold)
      assert_int_equal(ljp_profile_fold(p, NULL), LJP_OK);
    const struct ljp_births *births = &p->births;
    assert_true(births->found);
    assert_int_equal(births->count, 3);
    assert_int_equal(births->heap_bytes, 65537);
    assert_int_equal(births->before, 4);
    assert_int_equal(births->cycle, 5);
    const struct ljp_birth *b = ljp_births_find(births, 0x1000);
    assert_int_equal(site(p, b), 1);
    assert_int_equal(b->event, 1);
    assert_int_equal(b->size, 101);
    assert_int_equal(b->cycle, 0);
    assert_int_equal(b->weight, 0);
    b = ljp_births_find(births, 0x3000);
    assert_int_equal(site(p, b), 3);
    assert_int_equal(b->event, 3);
    assert_int_equal(b->cycle, 5);
    assert_null(ljp_births_find(births, 0x9000));
    assert_null(ljp_births_find(births, 0x4000));
    assert_null(ljp_births_find(births, 0x1008));
    ljp_profile_free(p);
  }
}

static void an_identity_never_comes_again(void **state)
{
  (void)state;
  two_snapshots();
  struct ljp_profile *one = load(1), *two = load(2);
  const struct ljp_birth *b = ljp_births_find(&two->births, 0x1000);
  assert_int_equal(two->births.count, 3);
  assert_int_equal(site(two, b), 2);
  assert_int_equal(b->event, 5);
  assert_int_equal(b->size, 503);
  assert_int_equal(ljp_births_find(&one->births, 0x2000)->event,
                   ljp_births_find(&two->births, 0x2000)->event);
  ljp_profile_free(one);
  ljp_profile_free(two);
  struct ljp_profile *none = load(3);
  assert_false(none->births.found);
  assert_int_equal(none->births.count, 0);
  ljp_profile_free(none);
}

/* The order of the walk: a part of the VM, objects from the youngest to the
** oldest, strings. */
static void neighbours_bound_the_age_of_the_others(void **state)
{
  (void)state;
  enum { NODES = 9 };
  static uint64_t address[NODES] = {0, 8, 16, 0x3000, 32, 40, 0x1000, 56, 64};
  static uint8_t type[NODES] = {0,
                                LJP_MEM_TYPE_OTHER,
                                LJP_MEM_TYPE_TABLE,
                                LJP_MEM_TYPE_TABLE,
                                LJP_MEM_TYPE_FUNCTION,
                                LJP_MEM_TYPE_TABLE,
                                LJP_MEM_TYPE_TABLE,
                                LJP_MEM_TYPE_THREAD,
                                LJP_MEM_TYPE_STRING};
  const struct ljp_graph g = {.count = NODES, .address = address, .type = type};
  struct ljp_graph_births of;
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 101, 1, 4096);
  mem(LJP_MEM_ALLOC, 0x3000, 307, 3, 4096);
  moment(1);
  put_block(&stream, 0, &payload);
  put_end_block(&stream, 1);
  struct ljp_profile *p = load(1);
  assert_int_equal(ljp_graph_births_init(&of, &g, &p->births), LJP_OK);
  const uint32_t old = of.birth[6], young = of.birth[3];
  assert_true(old && young);
  assert_int_equal(ljp_graph_birth(&of, 6)->weight, 4096);
  assert_int_equal(ljp_graph_birth(&of, 6)->event, 1);
  assert_null(ljp_graph_birth(&of, 4));
  const uint32_t younger[NODES] = {0, 0, 0, 0, young, young, 0, old, 0};
  const uint32_t older[NODES] = {0, 0, young, 0, old, old, 0, 0, 0};
  for (uint32_t i = 0; i < NODES; i++) {
    assert_int_equal(of.younger[i], younger[i]);
    assert_int_equal(of.older[i], older[i]);
  }
  ljp_graph_births_fini(&of);
  ljp_profile_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_moment_keeps_what_was_alive),
      cmocka_unit_test(an_identity_never_comes_again),
      cmocka_unit_test(neighbours_bound_the_age_of_the_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
