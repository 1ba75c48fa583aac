/* The writer driven by hand: references to prototypes that are used again. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "src/push/event.h"
#include "test/stream/hand.h"

/* What an owner of prototypes knows: the current id of each reference, and
** which references have gone. */
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
  hand_begin(h, kind);
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
  hand_drain(&h, 110);
  push_owned(&h, 120, 2, 0);
  owner.gone[owner.count++] = 2; /* Given at the end of this round. */
  hand_drain(&h, 130);
  assert_int_equal(owner.given, 1);
  owner.id[2] = 44;
  push_owned(&h, 140, 2, 0); /* The same words: no frame is pushed. */
  push_owned(&h, 150, 2, 0);
  hand_drain(&h, 160);
  owner.gone[owner.count++] = 2;
  hand_drain(&h, 170);
  owner.id[2] = 0; /* Nobody knows it, */
  push_owned(&h, 180, 2, 0);
  hand_drain(&h, 190);
  owner.id[2] = 55; /* until now. */
  push_owned(&h, 200, 2, 0);
  hand_drain(&h, 210);
  /* A new table: nothing is remembered. */
  assert_int_equal(ljp_writer_begin_epoch(h.w, LJP_EPOCH_TABLE), LJP_OK);
  push_owned(&h, 220, 2, 0);
  hand_drain(&h, 230);
  struct leaves seen = {.count = 0};
  unsigned rounds = owner.rounds;
  struct mini *m = hand_end(&h, see_leaf, &seen);
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
  hand_drain(&h, 110);
  owner.id[2] = 44;
  push_owned(&h, 120, 0, LJP_MEM_SWEPT); /* It has no stack. */
  push_owned(&h, 121, 2, 0);
  push_owned(&h, 122, 0, LJP_MEM_SWEPT);
  hand_drain(&h, 130);
  struct leaves seen = {.count = 0};
  struct mini *m = hand_end(&h, see_leaf, &seen);
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
  hand_begin(&h, LJP_PRODUCER_CPU);
  const uint64_t frame = ljp_frame(LJP_FRAME_TRACE, 0, 1);
  const struct ljp_sample s = {.time_ns = 100};
  assert_true(ljp_push_sample(h.p, &s, &frame, 1));
  hand_drain(&h, 110);
  assert_int_equal(ljp_writer_begin_epoch(h.w, LJP_EPOCH_TIME), LJP_OK);
  size_t at = hand_out.len;
  assert_true(ljp_push_sample(h.p, &s, &frame, 1));
  hand_drain(&h, 120);
  /* The prototype in known_trace(). */
  assert_non_null(
      memmem(hand_out.data + at, hand_out.len - at, "@app/file5.lua", 14));
  mini_free(hand_end(&h, NULL, NULL));
}

static void references_lose_their_numbers_one_by_one_or_all(void **state)
{
  (void)state;
  struct ljp_proto_numbers numbers;
  assert_int_equal(ljp_proto_numbers_init(&numbers), LJP_OK);
  const uint32_t far =
      LJP_PROTO_NUMBERS_PAGE * (LJP_PROTO_NUMBERS_PAGES - 1) + 7;
  assert_int_equal(ljp_proto_number_find(&numbers, 5), 0);
  assert_int_equal(ljp_proto_number_give(&numbers, 5), 1);
  assert_int_equal(ljp_proto_number_give(&numbers, far), 2);
  assert_int_equal(ljp_proto_number_give(&numbers, LJP_PROTO_NUMBERS_PAGE *
                                                       LJP_PROTO_NUMBERS_PAGES),
                   0);
  assert_int_equal(ljp_proto_number_find(&numbers, UINT32_MAX), 0);
  uint32_t before = numbers.generation;
  ljp_proto_number_forget(&numbers, 6); /* It has none. */
  ljp_proto_number_forget(&numbers, UINT32_MAX);
  assert_int_equal(numbers.generation, before);
  ljp_proto_number_forget(&numbers, 5);
  assert_int_not_equal(numbers.generation, before);
  assert_int_equal(ljp_proto_number_find(&numbers, 5), 0);
  assert_int_equal(ljp_proto_number_find(&numbers, far), 2);
  assert_int_equal(ljp_proto_number_give(&numbers, 5), 3);
  ljp_proto_numbers_clear(&numbers);
  assert_int_equal(ljp_proto_number_find(&numbers, far), 0);
  assert_int_equal(ljp_proto_number_give(&numbers, far), 4);
  ljp_proto_numbers_fini(&numbers);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_reference_that_is_used_again_is_another_function),
      cmocka_unit_test(what_is_swept_takes_no_stack_from_those_that_came_since),
      cmocka_unit_test(a_trace_brings_its_function_into_each_epoch),
      cmocka_unit_test(references_lose_their_numbers_one_by_one_or_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
