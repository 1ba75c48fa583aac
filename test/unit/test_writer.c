/* The writer driven by hand: sizes, and modules over time. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "src/push/event.h"
#include "src/writer/writer_impl.h"
#include "test/stream/mini_reader.h"
#include "test/stream/source.h"

static struct {
  uint8_t data[1 << 20];
  size_t len;
  size_t refuse_at; /* Refuses the block that begins beyond it, once. */
} out;

static size_t take(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  if (out.refuse_at && out.len > out.refuse_at) {
    out.refuse_at = 0;
    return 0;
  }
  assert_true(out.len + len <= sizeof out.data);
  memcpy(out.data + out.len, *data, len);
  out.len += len;
  return len;
}

struct hand {
  struct ljp_sink sink;
  struct ljp_writer *w;
  struct ljp_producer *p;
};

static void begin_with(struct hand *h, enum ljp_producer_kind kind,
                       struct ljp_writer_options o)
{
  o.describe = known();
  o.fixed_facts = true;
  out.len = out.refuse_at = 0;
  ljp_sink_init_callback(&h->sink, take, NULL);
  assert_int_equal(ljp_writer_new(&h->w, &h->sink, &o), LJP_OK);
  assert_int_equal(ljp_writer_start(h->w, 100), LJP_OK);
  h->p = source_new(1, 0, kind, 1 << 20);
  ljp_writer_begin(h->w, 100);
  ljp_writer_add_vm(h->w, 1, 0, "vm");
  ljp_writer_add_producer(h->w, h->p, 0);
  ljp_writer_drain(h->w);
  assert_int_equal(ljp_writer_finish(h->w), LJP_OK);
}

static void begin(struct hand *h, enum ljp_producer_kind kind)
{
  begin_with(h, kind, (struct ljp_writer_options){0});
}

static void drain(struct hand *h, uint64_t now)
{
  ljp_writer_begin(h->w, now);
  ljp_writer_drain(h->w);
  assert_int_equal(ljp_writer_finish(h->w), LJP_OK);
}

static struct mini *
end(struct hand *h,
    void (*each)(void *, struct mini *, const struct mini_event *), void *ctx)
{
  struct mini *m = mini_new();
  ljp_writer_end(h->w, LJP_OK, 0, "stopped");
  ljp_writer_free(h->w);
  ljp_sink_fini(&h->sink);
  source_free(h->p);
  m->on_event = each;
  m->ctx = ctx;
  if (!mini_read(m, out.data, out.len))
    fail_msg("%s", m->error);
  assert_int_equal(m->end_offset, out.len);
  return m;
}

static void a_sample_with_a_repeated_stack_takes_12_bytes_at_most(void **state)
{
  (void)state;
  struct hand h;
  uint64_t frames[60];
  for (uint64_t i = 0; i < 60; i++)
    frames[i] = ljp_frame_lua(LJP_FRAME_LUA, 0, (uint32_t)i + 1, 5);
  begin(&h, LJP_PRODUCER_CPU);
  size_t before = 0;
  for (uint64_t i = 0; i < 251; i++) {
    /* 1 kHz with jitter, a weight that is never the same, a VM state that
    ** changes each time. */
    const struct ljp_sample s = {.time_ns = 1000 + i * 1000003 + i * i % 7919,
                                 .weight = 1000003 + i * 37 % 1009,
                                 .vm = 1,
                                 .vmstate = (uint8_t)(i % 3)};
    assert_true(ljp_push_sample(h.p, &s, frames, 60));
    if (i == 0) {
      drain(&h, 1000);
      before = out.len;
    }
  }
  drain(&h, 2000);
  assert_in_range(out.len - before, 250, 250 * 12);
  struct mini *m = end(&h, NULL, NULL);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 251);
  mini_free(m);
}

static void a_memory_event_with_a_repeated_stack_takes_8_at_most(void **state)
{
  (void)state;
  struct hand h;
  const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 5)};
  begin(&h, LJP_PRODUCER_MEMORY);
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
      drain(&h, 1000);
      before = out.len;
    }
  }
  drain(&h, 2000);
  assert_in_range(out.len - before, 10006, 10006 * 8);
  struct mini *m = end(&h, NULL, NULL);
  assert_int_equal(m->events[LJP_REC_MEM], 10007);
  mini_free(m);
}

/* A reader's bound on definitions rests on it. */
static void compression_does_not_make_an_epoch_longer(void **state)
{
  (void)state;
  struct hand h;
  enum { LIMIT = 128 << 10, EVENTS = 150001 };
  begin_with(
      &h, LJP_PRODUCER_MEMORY,
      (struct ljp_writer_options){.zstd_level = 3, .epoch_bytes = LIMIT});
  for (uint64_t i = 0; i < EVENTS; i++) {
    const struct ljp_mem e = {
        .op = LJP_MEM_ALLOC, .time_ns = 1000 + i * 100, .size = 24, .vm = 1};
    assert_true(ljp_push_mem(h.p, &e, NULL, 0));
    if (i % 1009 == 0)
      drain(&h, 1000 + i * 100);
  }
  drain(&h, EVENTS * 100);
  struct mini *m = end(&h, NULL, NULL);
  assert_int_equal(m->events[LJP_REC_MEM], EVENTS);
  assert_true(m->zstd_blocks > 3 && m->stored_bytes < LIMIT);
  assert_true(m->raw_bytes > 3 * LIMIT);
  /* Headers count, too, but not here. */
  assert_in_range(m->most_epoch_bytes, LIMIT - LIMIT / 8,
                  LIMIT + 3 * LJP_BLOCK_FILL_BYTES);
  mini_free(m);
}

/* All that was pushed is in the file or counted there. */
static void what_a_failed_write_loses_is_counted_in_the_end(void **state)
{
  (void)state;
  struct hand h;
  enum { EVENTS = 60013 };
  begin(&h, LJP_PRODUCER_CPU);
  out.refuse_at = 40009;
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
  struct mini *m = end(&h, NULL, NULL);
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

/* The same address thrice, without a new frame: before, between, after. */
static void a_repeated_stack_is_resolved_by_its_own_time(void **state)
{
  (void)state;
  struct hand h;
  begin(&h, LJP_PRODUCER_CPU);
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
  /* The old one was known before it went. */
  m->generation = 1;
  m->loaded = 2;
  m->list[1].gone_ns = 0;
  ljp_writer_look(h.w);
  m->loaded = 1;
  m->list[1].gone_ns = 300;
  m->generation = 2;
  const uint64_t frame = ljp_frame(LJP_FRAME_HOST, 0, 5000);
  const uint64_t times[] = {150, 250, 301};
  for (int i = 0; i < 3; i++) {
    const struct ljp_sample s = {.time_ns = times[i]};
    assert_true(ljp_push_sample(h.p, &s, &frame, 1));
  }
  drain(&h, 400);
  uint64_t modules[3] = {9, 9, 9}, *at = modules;
  struct mini *r = end(&h, note_module, &at);
  assert_int_equal(modules[0], 1);
  assert_int_equal(modules[1], 0);
  assert_int_equal(modules[2], 2);
  mini_free(r);
}

static void a_bad_record_is_counted_and_the_next_ones_hold(void **state)
{
  (void)state;
  struct hand h;
  begin(&h, LJP_PRODUCER_EVENTS);
  const uint64_t words[] = {1, 2, 3, 4};
  /* Too few words; not an event at all. */
  assert_true(ljp_push_event(h.p, LJP_REC_TRACE_EVENT, 1, words, 3, "", 0));
  assert_true(ljp_push_event(h.p, LJP_REC_PROCESS, 1, words, 3, "", 0));
  assert_true(ljp_push_event(h.p, LJP_REC_GC, 1, words, 4, "", 0));
  drain(&h, 10);
  struct mini *m = end(&h, NULL, NULL);
  assert_int_equal(m->lost[LJP_LOSS_BAD_RECORD], 2);
  assert_int_equal(m->events[LJP_REC_GC], 1);
  mini_free(m);
}

/* What each trace event of a stream stands at. */
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
  begin(&h, LJP_PRODUCER_EVENTS);
  assert_true(ljp_push_trace(h.p, &abort));
  assert_true(ljp_push_trace(h.p, &start));
  assert_true(ljp_push_trace(h.p, &abort)); /* the same: no frame is pushed */
  abort.frames = frames + 2;
  abort.depth = 3;
  assert_true(ljp_push_trace(h.p, &abort));
  drain(&h, 300);
  /* One that is lost takes no other stack with it. */
  abort.frames = frames;
  abort.depth = 5;
  h.p->ring.capacity = 64; /* nothing fits */
  assert_false(ljp_push_trace(h.p, &abort));
  h.p->ring.capacity = 1 << 20;
  abort.frames = frames + 1;
  abort.depth = 4;
  assert_true(ljp_push_trace(h.p, &abort));
  abort.depth = LJP_STACK_MAX_FRAMES + 1;
  assert_false(ljp_push_trace(h.p, &abort));
  drain(&h, 400);
  struct seen_stacks seen = {.count = 0};
  struct mini *m = end(&h, see_stack, &seen);
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

/* -- References that are used again -------------------------------------------
*/

/* What an owner of prototypes knows: each reference's id now; what has gone. */
static struct {
  uint64_t id[8];
  uint32_t gone[8];
  unsigned count, given, rounds, ends;
} owner;

static bool owned_proto(void *ctx, uint32_t ref, struct ljp_proto_info *info)
{
  (void)ctx;
  if (ref >= 8 || !owner.id[ref])
    return false;
  info->id = owner.id[ref];
  snprintf(info->chunk, sizeof info->chunk, "@c");
  snprintf(info->name, sizeof info->name, "f%d", (int)info->id);
  return true;
}

static void owned_round(void *ctx)
{
  (void)ctx;
  owner.rounds++;
}

static size_t owned_gone(void *ctx, uint32_t *refs, size_t room)
{
  (void)ctx;
  assert_true(room >= 8);
  size_t n = owner.count - owner.given;
  memcpy(refs, owner.gone + owner.given, n * sizeof *refs);
  owner.given = owner.count;
  return n;
}

static void owned_end(void *ctx)
{
  (void)ctx;
  owner.ends++;
}

static void begin_owned(struct hand *h, enum ljp_producer_kind kind)
{
  memset(&owner, 0, sizeof owner);
  begin(h, kind);
  struct ljp_describe *d = &h->w->options.describe;
  d->proto = owned_proto;
  d->round = owned_round;
  d->gone = owned_gone;
  d->end = owned_end;
}

static void push_owned(struct hand *h, uint64_t time_ns, uint32_t leaf,
                       uint8_t what)
{
  const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, leaf, 7),
                             ljp_frame_lua(LJP_FRAME_LUA, 0, 3, 9)};
  const struct ljp_sample s = {.time_ns = time_ns};
  const struct ljp_mem m = {.time_ns = time_ns,
                            .op = what & LJP_MEM_SWEPT ? LJP_MEM_FREE
                                                       : LJP_MEM_ALLOC,
                            .size = 16,
                            .address = 4096,
                            .what = what};
  if (h->p->kind == LJP_PRODUCER_CPU)
    assert_true(ljp_push_sample(h->p, &s, frames, 2));
  else if (what & LJP_MEM_SWEPT)
    assert_true(ljp_push_mem_same_wait(h->p, &m));
  else
    assert_true(ljp_push_mem(h->p, &m, frames, 2));
}

struct leaves {
  uint64_t proto[16], stack[16];
  unsigned count;
};

static void see_leaf(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct leaves *seen = ctx;
  const struct mini_node *stack[MINI_FRAMES];
  if (e->tag != LJP_REC_SAMPLES && e->tag != LJP_REC_MEM)
    return;
  seen->stack[seen->count] = e->stack;
  if (e->stack) {
    assert_int_equal(mini_stack(m, e->stack, stack), 2);
    seen->proto[seen->count] = stack[0]->first;
    assert_int_equal(stack[1]->first, 33);
  }
  seen->count++;
}

static void a_reference_that_is_used_again_is_another_function(void **state)
{
  (void)state;
  struct hand h;
  begin_owned(&h, LJP_PRODUCER_CPU);
  owner.id[2] = 22;
  owner.id[3] = 33;
  push_owned(&h, 100, 2, 0);
  drain(&h, 110);
  push_owned(&h, 120, 2, 0);
  owner.gone[owner.count++] = 2; /* to be told at the end of this round */
  drain(&h, 130);
  assert_int_equal(owner.given, 1);
  owner.id[2] = 44;
  push_owned(&h, 140, 2, 0); /* the same words: no frame is pushed */
  push_owned(&h, 150, 2, 0);
  drain(&h, 160);
  owner.gone[owner.count++] = 2;
  drain(&h, 170);
  owner.id[2] = 0; /* nobody knows it */
  push_owned(&h, 180, 2, 0);
  drain(&h, 190);
  owner.id[2] = 55; /* but from now on */
  push_owned(&h, 200, 2, 0);
  drain(&h, 210);
  /* From the parent's table: nothing is remembered of any. */
  assert_int_equal(ljp_writer_epoch(h.w, LJP_EPOCH_TABLE), LJP_OK);
  push_owned(&h, 220, 2, 0);
  drain(&h, 230);
  struct leaves seen = {.count = 0};
  unsigned rounds = owner.rounds;
  struct mini *m = end(&h, see_leaf, &seen);
  const uint64_t proto[] = {22, 22, 44, 44, 0, 55, 55};
  assert_int_equal(seen.count, 7);
  for (int i = 0; i < 7; i++)
    assert_int_equal(seen.proto[i], proto[i]);
  assert_int_equal(rounds, 7);
  assert_int_equal(owner.ends, 1);
  mini_free(m);
}

static void
what_is_swept_takes_no_stack_from_those_that_came_since(void **state)
{
  (void)state;
  struct hand h;
  begin_owned(&h, LJP_PRODUCER_MEMORY);
  owner.id[2] = 22;
  owner.id[3] = 33;
  push_owned(&h, 100, 2, 0);
  push_owned(&h, 101, 0, LJP_MEM_SWEPT);
  owner.gone[owner.count++] = 2;
  drain(&h, 110);
  owner.id[2] = 44;
  push_owned(&h, 120, 0, LJP_MEM_SWEPT); /* as it came: none of its own */
  push_owned(&h, 121, 2, 0);
  push_owned(&h, 122, 0, LJP_MEM_SWEPT);
  drain(&h, 130);
  struct leaves seen = {.count = 0};
  struct mini *m = end(&h, see_leaf, &seen);
  assert_int_equal(seen.count, 5);
  assert_int_equal(seen.proto[0], 22);
  assert_int_equal(seen.stack[1], seen.stack[0]);
  assert_int_equal(seen.stack[2], 0);
  assert_int_equal(seen.proto[3], 44);
  assert_int_equal(seen.stack[4], seen.stack[3]);
  mini_free(m);
}

static void a_trace_brings_its_function_into_each_epoch(void **state)
{
  (void)state;
  struct hand h;
  begin(&h, LJP_PRODUCER_CPU);
  const uint64_t frame = ljp_frame(LJP_FRAME_TRACE, 0, 1);
  const struct ljp_sample s = {.time_ns = 100};
  assert_true(ljp_push_sample(h.p, &s, &frame, 1));
  drain(&h, 110);
  assert_int_equal(ljp_writer_epoch(h.w, LJP_EPOCH_TIME), LJP_OK);
  size_t at = out.len;
  assert_true(ljp_push_sample(h.p, &s, &frame, 1));
  drain(&h, 120);
  /* That of known_trace(). */
  assert_non_null(memmem(out.data + at, out.len - at, "@app/file5.lua", 14));
  mini_free(end(&h, NULL, NULL));
}

static void references_lose_their_numbers_one_by_one_or_all(void **state)
{
  (void)state;
  struct ljp_refs refs;
  assert_int_equal(ljp_refs_init(&refs), LJP_OK);
  const uint32_t far = LJP_REFS_PAGE * (LJP_REFS_PAGES - 1) + 7;
  assert_int_equal(ljp_refs_number(&refs, 5), 0);
  assert_int_equal(ljp_refs_give(&refs, 5), 1);
  assert_int_equal(ljp_refs_give(&refs, far), 2);
  assert_int_equal(ljp_refs_give(&refs, LJP_REFS_PAGE * LJP_REFS_PAGES), 0);
  assert_int_equal(ljp_refs_number(&refs, UINT32_MAX), 0);
  uint32_t before = refs.generation;
  ljp_refs_forget(&refs, 6); /* has none */
  ljp_refs_forget(&refs, UINT32_MAX);
  assert_int_equal(refs.generation, before);
  ljp_refs_forget(&refs, 5);
  assert_int_not_equal(refs.generation, before);
  assert_int_equal(ljp_refs_number(&refs, 5), 0);
  assert_int_equal(ljp_refs_number(&refs, far), 2);
  assert_int_equal(ljp_refs_give(&refs, 5), 3);
  ljp_refs_clear(&refs);
  assert_int_equal(ljp_refs_number(&refs, far), 0);
  assert_int_equal(ljp_refs_give(&refs, far), 1);
  ljp_refs_fini(&refs);
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
      cmocka_unit_test(a_reference_that_is_used_again_is_another_function),
      cmocka_unit_test(what_is_swept_takes_no_stack_from_those_that_came_since),
      cmocka_unit_test(a_trace_brings_its_function_into_each_epoch),
      cmocka_unit_test(references_lose_their_numbers_one_by_one_or_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
