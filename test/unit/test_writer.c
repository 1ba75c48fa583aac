/* The writer driven by hand: sizes, modules over time, bad entries. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "src/push/event.h"
#include "test/stream/hand.h"

static void a_sample_with_a_repeated_stack_takes_12_bytes_at_most(void **state)
{
  (void)state;
  struct hand h;
  uint64_t frames[60];
  for (uint64_t i = 0; i < 60; i++)
    frames[i] = ljp_frame_lua(LJP_FRAME_LUA, 0, (uint32_t)i + 1, 5);
  hand_begin(&h, LJP_PRODUCER_CPU);
  size_t before = 0;
  for (uint64_t i = 0; i < 251; i++) {
    /* 1 kHz with jitter; the weight and the VM state change each time. */
    const struct ljp_sample s = {.time_ns = 1000 + i * 1000003 + i * i % 7919,
                                 .weight = 1000003 + i * 37 % 1009,
                                 .vm = 1,
                                 .vmstate = (uint8_t)(i % 3)};
    assert_true(ljp_push_sample(h.p, &s, frames, 60));
    if (i == 0) {
      hand_drain(&h, 1000);
      before = hand_out.len;
    }
  }
  hand_drain(&h, 2000);
  assert_in_range(hand_out.len - before, 250, 250 * 12);
  struct mini *m = hand_end(&h, NULL, NULL);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 251);
  mini_free(m);
}

static void a_memory_event_with_a_repeated_stack_takes_8_at_most(void **state)
{
  (void)state;
  struct hand h;
  const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 5)};
  hand_begin(&h, LJP_PRODUCER_MEMORY);
  size_t before = 0;
  for (uint64_t i = 0; i < 10007; i++) {
    const struct ljp_mem e = {.op = i % 2 ? LJP_MEM_ALLOC : LJP_MEM_FREE,
                              .time_ns = 1000 + i * 211,
                              .address = 0x7f0000000000u + i * 48 % 65521 * 16,
                              .size = 24 + i * 8 % 4096,
                              .vm = 1,
                              .vmstate = 1};
    assert_true(ljp_push_mem(h.p, &e, frames, 1));
    if (i == 0) {
      hand_drain(&h, 1000);
      before = hand_out.len;
    }
  }
  hand_drain(&h, 2000);
  assert_in_range(hand_out.len - before, 10006, 10006 * 8);
  struct mini *m = hand_end(&h, NULL, NULL);
  assert_int_equal(m->events[LJP_REC_MEM], 10007);
  mini_free(m);
}

/* The readers' bound on definitions depends on this. */
static void compression_does_not_make_an_epoch_longer(void **state)
{
  (void)state;
  struct hand h;
  enum { LIMIT = 128 << 10, EVENTS = 150001 };
  hand_begin_with(
      &h, LJP_PRODUCER_MEMORY,
      (struct ljp_writer_options){.zstd_level = 3, .epoch_bytes = LIMIT});
  for (uint64_t i = 0; i < EVENTS; i++) {
    const struct ljp_mem e = {
        .op = LJP_MEM_ALLOC, .time_ns = 1000 + i * 100, .size = 24, .vm = 1};
    assert_true(ljp_push_mem(h.p, &e, NULL, 0));
    if (i % 1009 == 0)
      hand_drain(&h, 1000 + i * 100);
  }
  hand_drain(&h, EVENTS * 100);
  struct mini *m = hand_end(&h, NULL, NULL);
  assert_int_equal(m->events[LJP_REC_MEM], EVENTS);
  assert_true(m->zstd_blocks > 3 && m->stored_bytes < LIMIT);
  assert_true(m->raw_bytes > 3 * LIMIT);
  /* The epoch's size includes headers, this figure does not. */
  assert_in_range(m->most_epoch_bytes, LIMIT - LIMIT / 8,
                  LIMIT + 3 * LJP_BLOCK_FILL_BYTES);
  mini_free(m);
}

/* Every event that was pushed is in the file or counted there. */
static void what_a_failed_write_loses_is_counted_in_the_end(void **state)
{
  (void)state;
  struct hand h;
  enum { EVENTS = 60013 };
  hand_begin(&h, LJP_PRODUCER_CPU);
  hand_out.refuse_at = 40009;
  for (uint64_t i = 0; i < EVENTS; i++) {
    const struct ljp_sample e = {.time_ns = 1000 + i * 100, .weight = i};
    assert_true(ljp_push_sample(h.p, &e, NULL, 0));
    if (i % 20011 == 0) {
      ljp_writer_begin(h.w, 1000 + i * 100);
      ljp_writer_drain(h.w);
      ljp_writer_finish(h.w);
    }
  }
  ljp_writer_begin(h.w, EVENTS * 100);
  ljp_writer_drain(h.w);
  h.p->lost[LJP_LOSS_NESTED] = 7;
  ljp_writer_retire(h.w, h.p);
  assert_int_equal(ljp_writer_finish(h.w), LJP_ERR_IO);
  struct mini *m = hand_end(&h, NULL, NULL);
  uint64_t written = m->events[LJP_REC_SAMPLES];
  assert_in_range(written, 1009, EVENTS - 1009);
  assert_int_equal(m->lost[LJP_LOSS_WRITE_ERROR], EVENTS - written);
  assert_int_equal(m->lost[LJP_LOSS_NESTED], 7);
  mini_free(m);
}

static void note_module(void *ctx, struct mini *m, const struct mini_event *e)
{
  uint64_t **at = ctx;
  if (e->tag == LJP_REC_SAMPLES)
    *(*at)++ = m->nodes[e->stack].first;
}

/* The same address three times, without a new frame: before, between, after. */
static void a_repeated_stack_is_resolved_by_its_own_time(void **state)
{
  (void)state;
  struct hand h;
  hand_begin(&h, LJP_PRODUCER_CPU);
  struct ljp_modules *m = &h.w->modules;
  m->list = calloc(2, sizeof *m->list);
  m->list[0] = (struct ljp_module){.id = 2,
                                   .start = 4096,
                                   .end = 8192,
                                   .maybe_from_ns = 200,
                                   .path = strdup("new")};
  m->list[1] = (struct ljp_module){.id = 1,
                                   .start = 4096,
                                   .end = 8192,
                                   .gone_ns = 300,
                                   .path = strdup("old")};
  m->loaded = 1;
  m->count = 2;
  /* The old module was known before it was unloaded. */
  m->generation = 1;
  m->loaded = 2;
  m->list[1].gone_ns = 0;
  ljp_writer_update_modules(h.w);
  m->loaded = 1;
  m->list[1].gone_ns = 300;
  m->generation = 2;
  const uint64_t frame = ljp_frame(LJP_FRAME_HOST, 0, 5000);
  const uint64_t times[] = {150, 250, 301};
  for (int i = 0; i < 3; i++) {
    const struct ljp_sample s = {.time_ns = times[i]};
    assert_true(ljp_push_sample(h.p, &s, &frame, 1));
  }
  hand_drain(&h, 400);
  uint64_t modules[3] = {9, 9, 9}, *at = modules;
  struct mini *r = hand_end(&h, note_module, &at);
  assert_int_equal(modules[0], 1);
  assert_int_equal(modules[1], 0);
  assert_int_equal(modules[2], 2);
  mini_free(r);
}

static void a_bad_record_is_counted_and_the_next_ones_hold(void **state)
{
  (void)state;
  struct hand h;
  hand_begin(&h, LJP_PRODUCER_EVENTS);
  const uint64_t words[] = {1, 2, 3, 4};
  /* Too few words; no event of a ring. */
  assert_true(ljp_push_event(h.p, LJP_REC_TRACE_EVENT, 1, words,
                             3 * sizeof *words, "", 0));
  assert_true(
      ljp_push_event(h.p, LJP_REC_PROCESS, 1, words, 3 * sizeof *words, "", 0));
  assert_true(ljp_push_event(h.p, LJP_REC_GC, 1, words, sizeof words, "", 0));
  hand_drain(&h, 10);
  struct mini *m = hand_end(&h, NULL, NULL);
  assert_int_equal(m->lost[LJP_LOSS_BAD_RECORD], 2);
  assert_int_equal(m->events[LJP_REC_GC], 1);
  mini_free(m);
}

/* The stack of each trace event of a stream. */
struct seen_stacks {
  uint64_t stack[16];
  unsigned depth[16], count;
  uint64_t leaf[16];
};

static void see_stack(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct seen_stacks *seen = ctx;
  const struct mini_node *stack[MINI_FRAMES];
  if (e->tag != LJP_REC_TRACE_EVENT)
    return;
  unsigned i = seen->count++;
  seen->stack[i] = e->stack;
  seen->depth[i] = e->stack ? mini_stack(m, e->stack, stack) : 0;
  seen->leaf[i] = e->stack ? stack[0]->second : 0;
}

static void events_keep_their_stacks_whatever_comes_between(void **state)
{
  (void)state;
  struct hand h;
  uint64_t frames[5];
  for (unsigned i = 0; i < 5; i++)
    frames[i] = ljp_frame_lua(LJP_FRAME_LUA, 0, i + 2, 100 + i);
  struct ljp_trace_event abort = {.time_ns = 200,
                                  .vm = 1,
                                  .what = LJP_TRACE_ABORT,
                                  .text = "why",
                                  .frames = frames,
                                  .depth = 5};
  struct ljp_trace_event start = {
      .time_ns = 201, .vm = 1, .what = LJP_TRACE_START};
  hand_begin(&h, LJP_PRODUCER_EVENTS);
  assert_true(ljp_push_trace(h.p, &abort));
  assert_true(ljp_push_trace(h.p, &start));
  assert_true(
      ljp_push_trace(h.p, &abort)); /* The same stack: no frame is pushed. */
  abort.frames = frames + 2;
  abort.depth = 3;
  assert_true(ljp_push_trace(h.p, &abort));
  hand_drain(&h, 300);
  /* A lost event does not damage the stacks of others. */
  abort.frames = frames;
  abort.depth = 5;
  h.p->ring.capacity = 64; /* Nothing fits. */
  assert_false(ljp_push_trace(h.p, &abort));
  h.p->ring.capacity = 1 << 20;
  abort.frames = frames + 1;
  abort.depth = 4;
  assert_true(ljp_push_trace(h.p, &abort));
  abort.depth = LJP_STACK_MAX_FRAMES + 1;
  assert_false(ljp_push_trace(h.p, &abort));
  hand_drain(&h, 400);
  struct seen_stacks seen = {.count = 0};
  struct mini *m = hand_end(&h, see_stack, &seen);
  assert_int_equal(seen.count, 5);
  const unsigned depth[] = {5, 0, 5, 3, 4};
  const unsigned leaf[] = {100, 0, 100, 102, 101};
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal(seen.depth[i], depth[i]);
    assert_int_equal(seen.leaf[i], leaf[i]);
  }
  assert_true(seen.stack[0] == seen.stack[2]);
  assert_int_equal(m->lost[LJP_LOSS_TOO_BIG], 1);
  assert_int_equal(m->lost[LJP_LOSS_BAD_RECORD], 1);
  mini_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sample_with_a_repeated_stack_takes_12_bytes_at_most),
      cmocka_unit_test(a_memory_event_with_a_repeated_stack_takes_8_at_most),
      cmocka_unit_test(compression_does_not_make_an_epoch_longer),
      cmocka_unit_test(what_a_failed_write_loses_is_counted_in_the_end),
      cmocka_unit_test(a_repeated_stack_is_resolved_by_its_own_time),
      cmocka_unit_test(a_bad_record_is_counted_and_the_next_ones_hold),
      cmocka_unit_test(events_keep_their_stacks_whatever_comes_between),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
