/*
** The collector's time by allocation site, on a stream made by hand, where all of
** it is known: RFC 6 has the model.
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

enum { STEP = 100 }; /* Nanoseconds between two events. */
enum { OURS = 4 };   /* The stack of the profiler's own work. */

static struct ljp_reader reader;
static struct buf stream, payload, body;
static uint64_t now; /* The time of the newest event, since the start. */
static uint64_t vm;  /* Of the next event. */
static int64_t sample_stack;

static uint64_t block_weight; /* Of the next block; 0: it is not sampled. */

static void mem(unsigned op, uint64_t address, uint64_t size, uint64_t stack)
{
  put_u8(&body, op | LJP_MEM_SIZE | LJP_MEM_STACK | LJP_MEM_STATE |
                    (block_weight ? LJP_MEM_WEIGHT : 0));
  put_s(&body, (int64_t)(now += STEP));
  put_s(&body, (int64_t)ljp_rotate_address(address));
  put_u(&body, size);
  put_s(&body, (int64_t)stack);
  put_u8(&body, LJP_VMSTATE_INTERP);
  put_u(&body, vm);
  if (block_weight)
    put_u(&body, block_weight);
  put_record(&payload, LJP_REC_MEM, &body);
}

/* Returns a time within the phase. */
static uint64_t gc(unsigned phase, uint64_t heap, uint64_t cycle)
{
  put_s(&body, (int64_t)(now += STEP));
  put_u(&body, vm);
  put_u(&body, phase);
  put_u(&body, heap);
  put_u(&body, cycle);
  put_record(&payload, LJP_REC_GC, &body);
  return now + STEP / 2;
}

static void producer(uint64_t id, unsigned kind)
{
  put_u(&body, id);
  put_u(&body, kind);
  put_u(&body, 1);
  put_u(&body, 0);
  put_record(&payload, LJP_REC_PRODUCER, &body);
}

static void begin(void)
{
  char name[16];
  stream.len = payload.len = body.len = 0;
  now = 0;
  vm = 1;
  producer(1, LJP_PRODUCER_MEMORY);
  producer(2, LJP_PRODUCER_CPU);
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
  put_s(&body, OURS);
  put_u(&body, 1); /* Above the third site. */
  put_u8(&body, LJP_FRAME_PROFILER << 4);
  put_u(&body, 0);
  put_record(&payload, LJP_REC_NODES, &body);
  sample_stack = 3;
}

/* Puts a block with one sample: blocks may come in any order of their times. */
static void sample(uint64_t seq, uint64_t time, unsigned state, uint64_t weight)
{
  put_u8(&body, LJP_SAMPLE_STACK | LJP_SAMPLE_STATE | LJP_SAMPLE_VM |
                    LJP_SAMPLE_WEIGHT);
  put_s(&body, (int64_t)time);
  put_s(&body, sample_stack);
  put_u8(&body, state);
  put_u(&body, vm);
  put_u(&body, weight);
  put_record(&payload, LJP_REC_SAMPLES, &body);
  struct ljp_block_head head = test_head(seq);
  head.producer = 2;
  put_block_head(&stream, head, &payload);
}

static struct ljp_profile *finish(uint64_t seq)
{
  static const struct ljp_profile_options options = {.no_symbols = true,
                                                     .gc_cost = true};
  struct ljp_profile *p = ljp_profile_new(&options);
  put_end_block(&stream, seq);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  return p;
}

static uint64_t cost_of(const struct ljp_profile *p, const char *want)
{
  char name[64];
  uint64_t ns = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    ljp_frame_name(p, p->nodes[p->rows[i].node].frame, 0, name, sizeof name);
    if (strcmp(name, want) == 0)
      ns += p->memory[p->rows[i].memory].gc_ns;
  }
  return ns;
}

static void marking_is_paid_by_survivors_and_sweeping_by_all(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 1000, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 100, 1);
  mem(LJP_MEM_ALLOC, 0x2000, 100, 1);
  mem(LJP_MEM_ALLOC, 0x3000, 50, 2);
  uint64_t mark = gc(LJP_GC_PROPAGATE, 1000, 0);
  gc(LJP_GC_ATOMIC, 1000, 0);
  gc(LJP_GC_SWEEPSTRING, 1000, 0);
  uint64_t sweep = gc(LJP_GC_SWEEP, 1000, 0);
  mem(LJP_MEM_FREE, 0x3000, 50, 3);
  gc(LJP_GC_PAUSE, 500, 1); /* 300 bytes are older than the session. */
  mem(LJP_MEM_ALLOC, 0x4000, 50, 2);
  gc(LJP_GC_PROPAGATE, 1000, 1);
  uint64_t atomic = gc(LJP_GC_ATOMIC, 1000, 1);
  uint64_t strings = gc(LJP_GC_SWEEPSTRING, 1000, 1);
  gc(LJP_GC_SWEEP, 1000, 1);
  mem(LJP_MEM_FREE, 0x4000, 50, 3);
  mem(LJP_MEM_FREE, 0x2000, 100, 3);
  gc(LJP_GC_PAUSE, 400, 2);
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(1, strings, LJP_VMSTATE_GC, 500);
  sample(2, atomic, LJP_VMSTATE_GC, 400);
  sample(3, sweep, LJP_VMSTATE_GC, 700);
  sample(4, mark, LJP_VMSTATE_GC, 500);
  sample(5, mark, LJP_VMSTATE_INTERP, 100003); /* Not the collector. */
  struct ljp_profile *p = finish(6);
  assert_int_equal(p->gc_cost.samples, 4);
  assert_int_equal(p->gc_cost.mark_ns, 900);
  assert_int_equal(p->gc_cost.sweep_ns, 1200);
  /* 900 bytes were marked: twice 100 and once 100 of site1, the others older.
  ** 12 blocks were swept: of site1 two, one and its free; of site2 two that were
  ** freed; six older ones. */
  assert_int_equal(cost_of(p, "site1"), 900 * 300 / 900 + 1200 * 4 / 12);
  assert_int_equal(cost_of(p, "site2"), 1200 * 2 / 12);
  assert_int_equal(p->gc_cost.before_ns, 900 * 600 / 900 + 1200 * 6 / 12);
  assert_int_equal(cost_of(p, "(allocated before the session)"),
                   p->gc_cost.before_ns);
  ljp_profile_free(p);
}

static void what_the_profiler_does_is_no_cost(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 1000, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 100, 1);
  uint64_t mark = gc(LJP_GC_PROPAGATE, 1000, 0);
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(1, mark, LJP_VMSTATE_GC, 70);
  sample_stack = OURS;
  sample(2, mark, LJP_VMSTATE_GC, 700);
  struct ljp_profile *p = finish(3);
  assert_int_equal(p->gc_cost.samples, 1);
  assert_int_equal(p->gc_cost.mark_ns, 70);
  assert_int_equal(p->gc_cost.sweep_ns + p->gc_cost.unplaced_ns, 0);
  ljp_profile_free(p);
}

static void without_phases_nothing_is_guessed(void **state)
{
  (void)state;
  begin();
  mem(LJP_MEM_ALLOC, 0x1000, 100, 1);
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(1, 5, LJP_VMSTATE_GC, 700);
  struct ljp_profile *p = finish(2);
  assert_int_equal(p->gc_cost.mark_ns, 0);
  assert_int_equal(p->gc_cost.sweep_ns, 0);
  assert_int_equal(p->gc_cost.before_ns, 0);
  assert_int_equal(p->gc_cost.unplaced_ns, 700);
  assert_int_equal(cost_of(p, "(memory that is not recorded)"), 700);
  ljp_profile_free(p);
}

static void without_memory_nobody_pays(void **state)
{
  (void)state;
  begin();
  payload.len = 0; /* Without a producer of memory events. */
  producer(2, LJP_PRODUCER_CPU);
  sample(0, 5, LJP_VMSTATE_GC, 700);
  struct ljp_profile *p = finish(1);
  assert_int_equal(p->gc_cost.samples, 1);
  assert_int_equal(p->gc_cost.unplaced_ns, 0);
  assert_int_equal(p->memory_count, 1);
  ljp_profile_free(p);
}

static void each_vm_pays_for_its_own_memory(void **state)
{
  (void)state;
  begin();
  for (vm = 1; vm <= 2; vm++) {
    gc(LJP_GC_PAUSE, 1000, 0);
    mem(LJP_MEM_ALLOC, 0x1000 * vm, 100, vm);
    gc(LJP_GC_PROPAGATE, 1000, 0);
    gc(LJP_GC_SWEEP, 1000, 0);
    gc(LJP_GC_PAUSE, 100, 1);
  }
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  vm = 2;
  sample(1, now - STEP - STEP / 2, LJP_VMSTATE_GC, 700);
  struct ljp_profile *p = finish(2);
  assert_int_equal(p->gc_cost.mark_ns, 700);
  assert_int_equal(cost_of(p, "site1"), 0);
  assert_int_equal(cost_of(p, "site2"), 700);
  ljp_profile_free(p);
}

static void what_lives_pays_for_a_collection_that_has_not_ended(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 300, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 100, 1);
  uint64_t mark = gc(LJP_GC_PROPAGATE, 400, 0);
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(1, mark, LJP_VMSTATE_GC, 800);
  struct ljp_profile *p = finish(2);
  assert_int_equal(cost_of(p, "site1"), 200);
  assert_int_equal(cost_of(p, "(allocated before the session)"), 600);
  assert_int_equal(p->gc_cost.before_ns, 600);
  ljp_profile_free(p);
}

/* Three sites of equal size: no third is a whole number. */
static void parts_add_up_to_the_nanosecond(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 0, 0);
  for (uint64_t i = 1; i <= 3; i++)
    mem(LJP_MEM_ALLOC, 0x1000 * i, 100, i);
  uint64_t mark = gc(LJP_GC_PROPAGATE, 300, 0);
  uint64_t sweep = gc(LJP_GC_SWEEP, 300, 0);
  gc(LJP_GC_PAUSE, 300, 1);
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(1, mark, LJP_VMSTATE_GC, 100);
  sample(2, sweep, LJP_VMSTATE_GC, 1009);
  struct ljp_profile *p = finish(3);
  assert_int_equal(p->gc_cost.before_ns, 0);
  assert_int_equal(
      cost_of(p, "site1") + cost_of(p, "site2") + cost_of(p, "site3"), 1109);
  ljp_profile_free(p);
}

/* The heap has 700 bytes more than the sample says. No more than 50 of them can
** be from before the session. */
static void errors_of_estimates_are_not_from_before_the_session(void **state)
{
  (void)state;
  begin();
  gc(LJP_GC_PAUSE, 50, 0);
  block_weight = 300;
  mem(LJP_MEM_ALLOC, 0x1000, 100, 1);
  block_weight = 0;
  uint64_t mark = gc(LJP_GC_PROPAGATE, 1000, 0);
  gc(LJP_GC_SWEEP, 1000, 0);
  gc(LJP_GC_PAUSE, 1000, 1);
  struct ljp_block_head head = test_head(0);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(1, mark, LJP_VMSTATE_GC, 700);
  struct ljp_profile *p = finish(2);
  assert_int_equal(cost_of(p, "site1"), 600);
  assert_int_equal(p->gc_cost.before_ns, 100);
  ljp_profile_free(p);
}

#ifdef LJP_DEBUG /* Its limits are within reach. */
static void time_beyond_the_limits_is_divided_as_before(void **state)
{
  (void)state;
  enum { CYCLES = LJP_PROFILE_MAX_POINTS };
  uint64_t seq = 0;
  begin();
  gc(LJP_GC_PAUSE, 100, 0);
  mem(LJP_MEM_ALLOC, 0x1000, 100, 1);
  uint64_t mark = gc(LJP_GC_PROPAGATE, 100, 0);
  uint64_t sweep = gc(LJP_GC_SWEEP, 100, 0), late = 0;
  gc(LJP_GC_PAUSE, 100, 1);
  for (uint64_t i = 1; i < CYCLES; i++) {
    gc(LJP_GC_PROPAGATE, 100, i);
    late = gc(LJP_GC_SWEEP, 100, i);
    gc(LJP_GC_PAUSE, 100, i + 1);
  }
  struct ljp_block_head head = test_head(seq++);
  head.producer = 1;
  put_block_head(&stream, head, &payload);
  sample(seq++, mark, LJP_VMSTATE_GC, 300);
  sample(seq++, sweep, LJP_VMSTATE_GC, 100);
  sample(seq++, late, LJP_VMSTATE_GC, 4000);
  struct ljp_profile *p = finish(seq);
  assert_int_equal(p->gc_cost.mark_ns, 3300);
  assert_int_equal(p->gc_cost.sweep_ns, 1100);
  assert_int_equal(p->gc_cost.unplaced_ns, 0);
  assert_int_equal(cost_of(p, "site1"), 4400);
  ljp_profile_free(p);
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(marking_is_paid_by_survivors_and_sweeping_by_all),
      cmocka_unit_test(what_the_profiler_does_is_no_cost),
      cmocka_unit_test(without_phases_nothing_is_guessed),
      cmocka_unit_test(without_memory_nobody_pays),
      cmocka_unit_test(each_vm_pays_for_its_own_memory),
      cmocka_unit_test(what_lives_pays_for_a_collection_that_has_not_ended),
      cmocka_unit_test(parts_add_up_to_the_nanosecond),
      cmocka_unit_test(errors_of_estimates_are_not_from_before_the_session),
#ifdef LJP_DEBUG
      cmocka_unit_test(time_beyond_the_limits_is_divided_as_before),
#endif
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  buf_free(&stream);
  buf_free(&payload);
  buf_free(&body);
  return failed;
}
