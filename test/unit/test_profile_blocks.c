/*
** The profile of memory events, on streams made by hand: blocks from their
** allocation to their free, the peak, marks and cycles, estimates, notices.
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

static struct ljp_reader reader;
static struct buf stream, payload, body;
static uint64_t next_block;
static uint64_t vm; /* of the next events */
static bool moved;  /* The next events are halves of reallocations. */

/* Puts a MEM record of one event. old and old_size: 0 unless a realloc. */
static void mem(unsigned op, uint64_t address, uint64_t size, uint64_t old,
                uint64_t old_size, uint64_t stack, uint64_t weight)
{
  put_u8(&body, op | LJP_MEM_SIZE | LJP_MEM_STACK | LJP_MEM_STATE |
                    (weight ? LJP_MEM_WEIGHT : 0) | (moved ? LJP_MEM_WHAT : 0));
  put_s(&body, 1);
  put_s(&body, (int64_t)ljp_rotate_address(address));
  put_u(&body, size);
  if (op == LJP_MEM_REALLOC) {
    put_s(&body,
          (int64_t)(ljp_rotate_address(old) - ljp_rotate_address(address)));
    put_u(&body, old_size);
  }
  put_s(&body, (int64_t)stack);
  put_u8(&body, LJP_VMSTATE_INTERP);
  put_u(&body, vm);
  if (weight)
    put_u(&body, weight);
  if (moved)
    put_u8(&body, LJP_MEM_MOVED);
  put_record(&payload, LJP_REC_MEM, &body);
}

static void gc(unsigned phase, uint64_t heap, uint64_t cycle)
{
  put_s(&body, 1);
  put_u(&body, vm);
  put_u(&body, phase);
  put_u(&body, heap);
  put_u(&body, cycle);
  put_record(&payload, LJP_REC_GC, &body);
}

static void mark(const char *text)
{
  put_s(&body, 2);
  put_u(&body, 1);
  put_u(&body, 1);
  put_s(&body, 0);
  put_str(&body, text);
  put_record(&payload, LJP_REC_MARK, &body);
}

/* Begins the stream. Stack n has one frame, the builtin n. */
static void begin(void)
{
  char name[16];
  stream.len = payload.len = body.len = 0;
  next_block = 0;
  vm = 1;
  put_u(&body, 1);
  put_u(&body, LJP_PRODUCER_MEMORY);
  put_u(&body, 1);
  put_u(&body, 0);
  put_record(&payload, LJP_REC_PRODUCER, &body);
  for (uint64_t i = 1; i <= 3; i++) {
    put_u(&body, i);
    snprintf(name, sizeof name, "site%d", (int)i);
    put_str(&body, name);
    put_record(&payload, LJP_REC_BUILTIN, &body);
    put_s(&body, (int64_t)i);
    put_u(&body, i);
    put_u8(&body, LJP_FRAME_BUILTIN << 4);
    put_u(&body, i);
    put_record(&payload, LJP_REC_NODES, &body);
  }
}

static struct ljp_profile *finish(const struct ljp_profile_options *options)
{
  struct ljp_profile *p = ljp_profile_new(options);
  put_block(&stream, next_block++, &payload);
  put_end_block(&stream, next_block++);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  return p;
}

/* The memory of the row whose leaf has this name; all 0 if there is none. */
static struct ljp_profile_memory at(const struct ljp_profile *p,
                                    const char *want)
{
  char name[64];
  for (uint32_t i = 0; i < p->row_count; i++) {
    ljp_frame_name(p, p->nodes[p->rows[i].node].frame, 0, name, sizeof name);
    if (strcmp(name, want) == 0)
      return p->memory[p->rows[i].memory];
  }
  return p->memory[0];
}

static const struct ljp_profile_options plain = {.no_symbols = true};

static void blocks_are_followed_from_birth_to_death(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 1009, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, 1, 0);
  mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, 2, 0);
  mem(LJP_MEM_FREE, 0x1000, 101, 0, 0, 3, 0);  /* Temporary. */
  mem(LJP_MEM_ALLOC, 0x1000, 307, 0, 0, 2, 0); /* The same address. */
  mem(LJP_MEM_REALLOC, 0x3000, 503, 0x2000, 211, 1, 0);
  gc(LJP_GC_PAUSE, 0, 1);
  mem(LJP_MEM_FREE, 0x1000, 307, 0, 0, 3, 0);         /* Outlived a cycle. */
  mem(LJP_MEM_FREE, 0x7000, 701, 0, 0, 3, 0);         /* Allocated before. */
  mem(LJP_MEM_REALLOC, 0x9000, 11, 0x8000, 13, 3, 0); /* Likewise. */
  gc(LJP_GC_PAUSE, 1009 + 503 - 701 + 11 - 13, 2);
  struct ljp_profile *p = finish(&plain);
  struct ljp_profile_memory one = at(p, "site1"), two = at(p, "site2"),
                            three = at(p, "site3"),
                            before = at(p, "(allocated before the session)");
  assert_int_equal(one.alloc_objects, LJP_OBJECT);
  assert_int_equal(one.alloc_bytes, 101 + 503);
  assert_int_equal(one.realloc_events, 1);
  assert_int_equal(one.free_events, 1);
  assert_int_equal(one.temporary_bytes, 101);
  assert_int_equal(one.live_objects, LJP_OBJECT);
  assert_int_equal(one.live_bytes, 503);
  assert_int_equal(two.alloc_bytes, 211 + 307);
  assert_int_equal(two.free_bytes, 211 + 307);
  assert_int_equal(two.free_events, 1);
  assert_int_equal(two.temporary_objects, 0);
  assert_int_equal(two.live_objects, 0);
  assert_int_equal(three.live_bytes, 11);
  assert_int_equal(before.free_bytes, 701 + 13);
  assert_int_equal(before.live_bytes, 0);
  assert_int_equal(p->totals.before_frees, 1);
  assert_int_equal(p->totals.before_reallocs, 1);
  assert_int_equal(p->totals.alloc_events, 3);
  assert_int_equal(p->totals.free_events, 3);
  assert_int_equal(p->totals.realloc_events, 2);
  assert_int_equal(p->totals.double_allocs, 0);
  assert_int_equal(p->totals.memory.alloc_bytes - p->totals.memory.free_bytes,
                   p->growth.counted);
  assert_true(p->growth.comparable);
  assert_int_equal(p->growth.unequal, 0);
  ljp_profile_free(p);
}

/* Each block is sampled with a chance of its own. So the samples of allocations,
** of frees and of live blocks are of different blocks, and only sums in which
** an object counts where it was last reallocated add up. */
static void estimates_of_objects_add_up(void **state)
{
  (void)state;
  const struct ljp_profile_options points = {.no_symbols = true,
                                             .points = true};
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 100, 0, 0, 1, 700); /* 7 objects ... */
  moved = true;
  mem(LJP_MEM_FREE, 0x1000, 100, 0, 0, 2, 0);    /* that go on elsewhere, */
  mem(LJP_MEM_ALLOC, 0x2000, 200, 0, 0, 2, 500); /* 2.5 that have grown, */
  mem(LJP_MEM_ALLOC, 0x3000, 200, 0, 0, 2, 500); /* and again. */
  moved = false;
  mem(LJP_MEM_FREE, 0x2000, 200, 0, 0, 3, 0);
  mem(LJP_MEM_ALLOC, 0x4000, 300, 0, 0, 1, 900); /* 3 */
  struct ljp_profile *p = finish(&points);
  const struct ljp_profile_memory *all = &p->totals.memory;
  assert_int_equal(at(p, "site1").alloc_objects, 3 * LJP_OBJECT);
  assert_int_equal(at(p, "site2").alloc_objects, 5 * LJP_OBJECT);
  assert_int_equal(all->alloc_objects, 8 * LJP_OBJECT);
  assert_int_equal(all->free_objects, 5 * LJP_OBJECT / 2);
  assert_int_equal(all->alloc_objects, all->free_objects + all->live_objects);
  assert_int_equal(all->moved_objects_in, 5 * LJP_OBJECT);
  assert_int_equal(all->alloc_bytes, all->free_bytes + all->live_bytes);
  assert_int_equal(p->totals.estimates.alloc.objects, 3);
  assert_int_equal(p->totals.estimates.alloc.samples, 4);
  uint64_t count = 0, weight = 0;
  for (uint32_t i = 0; i < p->point_count; i++)
    if (!p->points[i].live) {
      count += p->points[i].count;
      weight += p->points[i].weight;
    }
  assert_int_equal(count, all->alloc_objects);
  assert_int_equal(weight, all->alloc_bytes);
  ljp_profile_free(p);
}

/* A VM with a block of its own; site n. */
static void run_vm(uint64_t id, uint64_t site, uint64_t size, bool close)
{
  vm = id;
  gc(LJP_GC_PAUSE, 1000, 0);
  mem(LJP_MEM_ALLOC, 0x1000 * id, size, 0, 0, site, 0);
  gc(LJP_GC_PAUSE, 1000 + size, 3);
  if (close)
    gc(LJP_GC_CLOSED, 1000 + size, 3);
}

static void the_end_of_a_vm_frees_its_blocks(void **state)
{
  (void)state;
  begin();
  run_vm(1, 1, 101, true);
  run_vm(2, 2, 211, false);
  for (uint64_t id = 3; id < 40; id++)
    run_vm(id, 3, 307, true);
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(at(p, "site1").live_bytes, 0);
  assert_int_equal(at(p, "site1").free_bytes, 101);
  assert_int_equal(at(p, "site1").old_bytes, 0);
  assert_int_equal(at(p, "site2").live_bytes, 211);
  assert_int_equal(at(p, "site2").old_bytes, 211);
  assert_int_equal(at(p, "site3").live_bytes, 0);
  assert_int_equal(p->totals.peak_bytes, 211 + 307);
  assert_int_equal(p->totals.double_allocs, 0);
  assert_int_equal(p->growth.counted, 101 + 211 + 37 * 307);
  assert_int_equal(p->growth.events, p->growth.counted);
  assert_int_equal(p->growth.unequal, 0);
  assert_int_equal(p->growth.followed, 39);
  ljp_profile_free(p);
}

/* It is what the program had at its end. */
static void what_the_last_vm_has_at_its_end_stays_live(void **state)
{
  (void)state;
  begin();
  run_vm(1, 1, 101, true);
  run_vm(2, 2, 211, true);
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(at(p, "site1").live_bytes, 0);
  assert_int_equal(at(p, "site2").live_bytes, 211);
  assert_int_equal(at(p, "site2").old_bytes, 211);
  ljp_profile_free(p);
}

/* What is wrong in one VM is not hidden by the opposite in another. */
static void vms_that_do_not_balance_are_counted(void **state)
{
  (void)state;
  begin();
  run_vm(1, 1, 101, false);
  gc(LJP_GC_CLOSED, 1000 + 101 + 7, 4);
  run_vm(2, 2, 211, false);
  gc(LJP_GC_CLOSED, 1000 + 211 - 7, 4);
  run_vm(3, 3, 307, true);
  /* After the last figure there is nothing to be compared with. */
  run_vm(4, 3, 401, false);
  mem(LJP_MEM_ALLOC, 0x9000, 13, 0, 0, 1, 0);
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(p->growth.counted, p->growth.events);
  assert_int_equal(p->growth.unequal, 2);
  assert_int_equal(p->growth.first_unequal, 1);
  ljp_profile_free(p);
}

static void the_peak_is_what_lived_when_all_was_most(void **state)
{
  (void)state;
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, 1, 0);
  mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, 2, 0); /* 312 bytes live */
  mem(LJP_MEM_FREE, 0x1000, 101, 0, 0, 3, 0);
  mem(LJP_MEM_ALLOC, 0x3000, 307, 0, 0, 3, 0); /* 518: the peak */
  mem(LJP_MEM_FREE, 0x2000, 211, 0, 0, 3, 0);
  mem(LJP_MEM_FREE, 0x3000, 307, 0, 0, 3, 0);
  mem(LJP_MEM_ALLOC, 0x4000, 401, 0, 0, 1, 0); /* 401 */
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(p->totals.peak_bytes, 211 + 307);
  assert_int_equal(at(p, "site1").peak_bytes, 0);
  assert_int_equal(at(p, "site2").peak_bytes, 211);
  assert_int_equal(at(p, "site3").peak_bytes, 307);
  assert_int_equal(at(p, "site3").peak_objects, LJP_OBJECT);
  assert_int_equal(p->totals.memory.peak_bytes, p->totals.peak_bytes);
  ljp_profile_free(p);
}

static void marks_and_cycles_tell_what_is_new_and_what_is_old(void **state)
{
  struct ljp_profile_options options = {.no_symbols = true, .since = "warm"};
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 0, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, 1, 0);
  mark("warm");
  mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, 2, 0);
  gc(LJP_GC_PAUSE, 0, 2);
  mem(LJP_MEM_ALLOC, 0x3000, 307, 0, 0, 3, 0);
  struct ljp_profile *p = finish(&options);
  assert_int_equal(at(p, "site1").recent_bytes, 0);
  assert_int_equal(at(p, "site2").recent_bytes, 211);
  assert_int_equal(at(p, "site3").recent_bytes, 307);
  assert_int_equal(at(p, "site1").old_bytes, 101);
  assert_int_equal(at(p, "site2").old_bytes, 211);
  assert_int_equal(at(p, "site3").old_bytes, 0);
  assert_int_equal(p->mark_count, 1);
  assert_int_equal(p->marks[0].live_bytes, 101);
  ljp_profile_free(p);
}

static void sampled_events_stand_for_more_than_themselves(void **state)
{
  (void)state;
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 100, 0, 0, 1, 1000); /* 10 objects. */
  mem(LJP_MEM_ALLOC, 0x2000, 200, 0, 0, 1, 1000); /* 5 objects. */
  mem(LJP_MEM_FREE, 0x1000, 100, 0, 0, 3, 1000);
  struct ljp_profile *p = finish(&plain);
  struct ljp_profile_memory one = at(p, "site1");
  assert_true(p->sampled_memory);
  assert_int_equal(one.alloc_objects, 15 * LJP_OBJECT);
  assert_int_equal(one.alloc_bytes, 2000);
  assert_int_equal(one.live_objects, 5 * LJP_OBJECT);
  assert_int_equal(one.live_bytes, 1000);
  struct ljp_profile_estimates e = p->totals.estimates;
  assert_int_equal(e.alloc.samples, 2);
  assert_int_equal(e.alloc.bytes, 300);
  assert_true(e.alloc.variance_bytes == 1000.0 * 900 + 1000.0 * 800);
  assert_true(e.alloc.variance_objects == 10.0 * 9 + 5.0 * 4);
  assert_int_equal(e.live.samples, 1);
  assert_true(e.live.variance_bytes == 1000.0 * 800);
  assert_int_equal(e.peak.samples, 2); /* Before the free. */
  assert_true(e.peak.variance_bytes == e.alloc.variance_bytes);
  assert_int_equal(p->sample_bytes, 900); /* No producer says the interval. */
  ljp_profile_free(p);
}

static void leaks_since_a_mark_have_outlived_collections(void **state)
{
  (void)state;
  for (int old = 0; old < 2; old++) {
    begin();
    gc(LJP_GC_PAUSE, 1009, 0);
    mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, 1, 0);
    mark("here");
    mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, 2, 0);
    gc(LJP_GC_PAUSE, 1009, 1);
    gc(LJP_GC_PAUSE, 1009, 2);
    mem(LJP_MEM_ALLOC, 0x3000, 307, 0, 0, 3, 0); /* Possibly garbage. */
    struct ljp_profile_options since = plain;
    since.since = "here";
    since.since_old = old;
    struct ljp_profile *p = finish(&since);
    assert_int_equal(p->totals.memory.old_bytes, 101 + 211);
    assert_int_equal(p->totals.memory.recent_bytes, old ? 211 : 211 + 307);
    assert_int_equal(at(p, "site1").slices == 0, old);
    assert_int_equal(at(p, "site2").slices == 0, 0);
    ljp_profile_free(p);
  }
}

/* Exact blocks stay exact beside estimates, and estimates grow with the rows. */
static void estimates_and_exact_blocks_stand_side_by_side(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 1009, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, 1, 0);
  mem(LJP_MEM_ALLOC, 0x2000, 211, 0, 0, 2, 2110);
  mark("here");
  mem(LJP_MEM_ALLOC, 0x3000, 307, 0, 0, 3, 3070);
  gc(LJP_GC_PAUSE, 1009, 1);
  gc(LJP_GC_PAUSE, 1009, 2);
  gc(LJP_GC_PAUSE, 1009, 3);
  struct ljp_profile_options since = plain;
  since.since = "here";
  struct ljp_profile *p = finish(&since);
  struct ljp_profile_estimates e = p->totals.estimates;
  assert_int_equal(p->totals.memory.alloc_bytes, 101 + 2110 + 3070);
  assert_int_equal(e.alloc.samples, 2);
  assert_int_equal(e.recent.samples, 1);
  assert_int_equal(e.recent.bytes, 307);
  assert_int_equal(e.old.samples, 2);
  assert_int_equal(e.temporary.samples, 0);
  assert_int_equal(p->marks[0].estimate.samples, 1);
  assert_int_equal(p->marks[0].estimate.bytes, 211);
  struct ljp_bounds b =
      ljp_estimate_bytes(&p->estimates[p->rows[0].memory].alloc,
                         (double)p->memory[p->rows[0].memory].alloc_bytes, 0);
  assert_true(b.low == b.high);
  ljp_profile_free(p);
}

static void functions_without_a_name_are_said(void **state)
{
  (void)state;
  begin();
  put_str(&body, "functions.unnamed");
  put_str(&body, "10007 or so, and what is no number: 3");
  put_record(&payload, LJP_REC_INFO, &body);
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(p->totals.unnamed, 10007);
  assert_non_null(strstr(ljp_profile_notice(p, 0), "10007 functions without"));
  ljp_profile_free(p);
}

static void an_address_given_out_twice_is_said(void **state)
{
  (void)state;
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 101, 0, 0, 1, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 211, 0, 0, 2, 0);
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(p->totals.double_allocs, 1);
  assert_int_equal(at(p, "site1").live_bytes, 0);
  assert_int_equal(at(p, "site2").live_bytes, 211);
  assert_non_null(strstr(ljp_profile_notice(p, 0), "1 address given out"));
  ljp_profile_free(p);
}

static void many_blocks_come_and_go_in_any_order(void **state)
{
  enum { BLOCKS = 5003 };
  static uint64_t size[BLOCKS];
  uint64_t seed = 12345, live = 0, objects = 0;
  (void)state;
  begin();
  for (unsigned i = 0; i < 40000; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    unsigned n = (unsigned)(seed >> 33) % BLOCKS;
    if (size[n]) {
      mem(LJP_MEM_FREE, 0x10000 + n * 16, size[n], 0, 0, 3, 0);
      live -= size[n];
      objects--;
      size[n] = 0;
    } else {
      size[n] = 1 + (seed >> 50);
      mem(LJP_MEM_ALLOC, 0x10000 + n * 16, size[n], 0, 0, 1 + n % 2, 0);
      live += size[n];
      objects++;
    }
    if (payload.len > 60000)
      put_block(&stream, next_block++, &payload);
  }
  struct ljp_profile *p = finish(&plain);
  assert_int_equal(p->totals.double_allocs, 0);
  assert_int_equal(p->totals.before_frees, 0);
  assert_int_equal(p->totals.memory.live_bytes, live);
  assert_int_equal(p->totals.memory.live_objects, objects * LJP_OBJECT);
  ljp_profile_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_followed_from_birth_to_death),
      cmocka_unit_test(the_end_of_a_vm_frees_its_blocks),
      cmocka_unit_test(what_the_last_vm_has_at_its_end_stays_live),
      cmocka_unit_test(vms_that_do_not_balance_are_counted),
      cmocka_unit_test(the_peak_is_what_lived_when_all_was_most),
      cmocka_unit_test(marks_and_cycles_tell_what_is_new_and_what_is_old),
      cmocka_unit_test(sampled_events_stand_for_more_than_themselves),
      cmocka_unit_test(leaks_since_a_mark_have_outlived_collections),
      cmocka_unit_test(estimates_and_exact_blocks_stand_side_by_side),
      cmocka_unit_test(estimates_of_objects_add_up),
      cmocka_unit_test(functions_without_a_name_are_said),
      cmocka_unit_test(an_address_given_out_twice_is_said),
      cmocka_unit_test(many_blocks_come_and_go_in_any_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
