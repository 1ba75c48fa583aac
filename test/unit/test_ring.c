/* Ring and pushes: an event is whole in the ring or counted as lost, at every
** wrap; stacks are given as differences. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <pthread.h>
#include <cmocka.h>

#include "src/push/brief.h"
#include "src/push/event.h"
#include "test/stream/source.h"

static void each_record_survives_every_wrap(void **state)
{
  (void)state;
  struct ljp_ring ring;
  static uint64_t data[1024 / 8];
  ljp_ring_init(&ring, (uint8_t *)data, sizeof data);
  uint64_t pos = 0, written = 0, read = 0;
  for (unsigned i = 0; i < 10007; i++) {
    uint32_t size = 8 * (2 + i * 7 % 31);
    struct ljp_ring_entry *r;
    while (!(r = ljp_ring_reserve(&ring, size))) {
      const struct ljp_ring_entry *got =
          ljp_ring_next(&ring, &pos, ljp_ring_head(&ring));
      assert_non_null(got);
      const uint64_t *words = (const void *)got;
      assert_int_equal(got->size, 8 * (2 + read * 7 % 31));
      for (uint32_t k = 1; k < got->size / 8; k++)
        assert_int_equal(words[k], read * 1000 + k);
      read++;
      ljp_ring_release(&ring, pos);
    }
    r->type = 1;
    uint64_t *words = (void *)r;
    for (uint32_t k = 1; k < size / 8; k++)
      words[k] = written * 1000 + k;
    written++;
    ljp_ring_commit(&ring);
  }
  assert_true(read > 9000);
  while (ljp_ring_next(&ring, &pos, ljp_ring_head(&ring)))
    read++;
  assert_int_equal(read, written);
}

static void what_is_not_committed_is_not_there(void **state)
{
  (void)state;
  struct ljp_ring ring;
  uint64_t data[64], pos = 0;
  ljp_ring_init(&ring, (uint8_t *)data, sizeof data);
  assert_non_null(ljp_ring_reserve(&ring, 64));
  assert_null(ljp_ring_next(&ring, &pos, ljp_ring_head(&ring)));
}

static void full_ring_counts_each_drop(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 4096);
  uint64_t frame = ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 1);
  const struct ljp_sample s = {.time_ns = 1};
  unsigned in = 0;
  for (int i = 0; i < 1009; i++)
    in += ljp_push_sample(p, &s, &frame, 1);
  assert_true(in > 100);
  assert_int_equal(in + p->lost[LJP_LOSS_RING_FULL], 1009);
  /* The stack is forgotten: the next event must give it in full. */
  assert_int_equal(ljp_producer_depth(p), 0);
  uint64_t pos = 0;
  unsigned seen = 0;
  while (ljp_ring_next(&p->ring, &pos, ljp_ring_head(&p->ring)))
    seen++;
  assert_int_equal(seen, in);
  ljp_ring_release(&p->ring, pos);
  assert_true(ljp_push_sample(p, &s, &frame, 1));
  const struct ljp_sample_entry *r =
      (const void *)ljp_ring_next(&p->ring, &pos, ljp_ring_head(&p->ring));
  assert_int_equal(r->keep, 0);
  assert_int_equal(r->n, 1);
  source_free(p);
}

static void a_record_too_big_for_the_ring_is_counted_as_such(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 4096);
  static uint64_t frames[LJP_STACK_MAX_FRAMES + 1];
  const struct ljp_sample s = {.time_ns = 1};
  assert_false(ljp_push_sample(p, &s, frames, 300));
  assert_false(ljp_push_sample(p, &s, frames, LJP_STACK_MAX_FRAMES + 1));
  assert_int_equal(p->lost[LJP_LOSS_TOO_BIG], 2);
  source_free(p);
}

static void only_what_changed_is_pushed(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 4096);
  const struct ljp_sample s = {.time_ns = 7, .weight = 11, .vm = 3};
  uint64_t a[] = {30, 20, 10}, b[] = {41, 31, 20, 10}, pos = 0;
  ljp_push_sample(p, &s, a, 3);
  ljp_push_sample(p, &s, a, 3);
  ljp_push_sample(p, &s, b, 4);
  ljp_push_sample(p, &s, b + 2, 2);
  const unsigned keep[] = {0, 3, 2, 2}, n[] = {3, 0, 2, 0};
  for (int i = 0; i < 4; i++) {
    const struct ljp_sample_entry *r =
        (const void *)ljp_ring_next(&p->ring, &pos, ljp_ring_head(&p->ring));
    assert_int_equal(r->keep, keep[i]);
    assert_int_equal(r->n, n[i]);
    assert_int_equal(r->weight, 11);
    if (i == 0)
      assert_int_equal(r->frames[0], 10); /* Root first. */
    if (i == 2)
      assert_int_equal(r->frames[1], 41);
  }
  source_free(p);
}

static void keeping_more_than_there_is_is_refused(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_MEMORY, 4096);
  const struct ljp_mem m = {.op = LJP_MEM_ALLOC, .size = 5};
  unsigned depth = 77;
  uint64_t frame = 9;
  assert_true(ljp_push_mem_keep(p, &m, 0, &frame, 1, &depth));
  assert_int_equal(depth, 1);
  assert_false(ljp_push_mem_keep(p, &m, 2, NULL, 0, &depth));
  assert_int_equal(depth, 0);
  assert_int_equal(p->lost[LJP_LOSS_BAD_RECORD], 1);
  source_free(p);
}

/* The address in an entry of the ring. */
static uint64_t address_in(const struct ljp_ring_entry *entry)
{
  if (entry->type == LJP_ENTRY_BRIEF)
    return ljp_brief_address((const void *)entry);
  assert_int_equal(entry->type, LJP_ENTRY_MEM);
  return ((const struct ljp_mem_entry *)(const void *)entry)->address;
}

static bool push_brief(struct ljp_producer *p, uint64_t time_ns,
                       uint64_t address, uint64_t size, uint64_t kinds)
{
  return ljp_push_mem_brief(p, time_ns, address, size, kinds) ||
         (ljp_brief_look(p) &&
          ljp_push_mem_brief(p, time_ns, address, size, kinds));
}

static void
brief_events_never_leave_the_ring_or_overwrite_what_is_unread(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_MEMORY, 4096);
  struct ljp_mem m = {.op = LJP_MEM_ALLOC, .size = 5, .time_ns = 7};
  uint64_t pushed = 0, read = 0, pos = 0, random = 1, brief = 0, refused = 0;
  uint64_t frames[5] = {1, 2, 3, 4, 5};
  const uint64_t kinds = ljp_brief_kinds(3, LJP_MEM_ALLOC, 1);
  while (read < 100003) {
    random = random * 6364136223846793005 + 1442695040888963407;
    m.address = pushed + 1;
    /* Longer entries of all lengths in between, so that an entry begins at each
    ** place of the ring. */
    if (random >> 60 > 2) {
      bool done = push_brief(p, 7, m.address, 5, kinds);
      brief += done;
      pushed += done;
      refused += !done;
      if (done)
        continue;
    }
    frames[0] = random;
    if (ljp_push_mem(p, &m, frames, random >> 58 & 3)) {
      pushed++;
      continue;
    }
    /* Full: read some of it, sometimes all. */
    uint64_t end = ljp_ring_head(&p->ring), some = random >> 40 & 255;
    assert_true(end - ljp_ring_tail(&p->ring) <= 4096);
    const struct ljp_ring_entry *entry;
    while (some-- && (entry = ljp_ring_next(&p->ring, &pos, end))) {
      const uint8_t *at = (const void *)entry;
      assert_true(at - p->ring.data + entry->size <= 4096);
      assert_int_equal(address_in(entry), ++read);
    }
    ljp_ring_release(&p->ring, pos);
  }
  assert_true(brief > 50000 && refused > 100);
  source_free(p);
}

/* What a reader makes of an entry: stack[0 .. depth), root first. */
static unsigned read_stack(const struct ljp_ring_entry *entry, uint64_t *stack)
{
  const struct ljp_mem_entry *mem = (const void *)entry;
  assert_int_equal(entry->type, LJP_ENTRY_MEM);
  assert_int_equal(entry->size, 40 + 8 * mem->n);
  for (unsigned i = 0; i < mem->n; i++)
    stack[mem->keep + i] = mem->rest[i];
  return mem->keep + mem->n;
}

static bool push_top(struct ljp_producer *p, const struct ljp_mem *m,
                     const uint64_t *stack, unsigned n, unsigned same)
{
  return ljp_push_mem_top(p, m, stack, n, same) ||
         (ljp_brief_look(p) && ljp_push_mem_top(p, m, stack, n, same));
}

static void another_top_is_pushed_whole_or_not_at_all(void **state)
{
  (void)state;
  enum { PUSHES = 50021, DEPTH = 9 };
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_MEMORY, 4096);
  struct ljp_mem m = {.size = 5, .vm = 0xfedcba98, .vmstate = 3, .what = 7};
  uint64_t stack[DEPTH] = {0}, seen[DEPTH], random = 1, pos = 0;
  unsigned refused = 0, briefs = 0, depth = 0, n = 0, before = 0;
  while (m.address < PUSHES) {
    random = random * 6364136223846793005 + 1442695040888963407;
    unsigned keep = random >> 40 & 7;
    n = random >> 50 & 7;
    keep = keep < n ? keep : n;
    keep = keep < before ? keep : before;
    for (unsigned i = keep; i < n; i++)
      stack[i] = random >> 54 & 3; /* Some stay the same. */
    m.address++;
    m.time_ns = random >> 62;
    m.op = random >> 61 & 1 ? LJP_MEM_FREE : LJP_MEM_ALLOC;
    while (!push_top(p, &m, stack, n, keep)) {
      /* Nothing is lost, and no part of it is in the ring. */
      assert_int_equal(p->depth, before);
      ljp_ring_release(&p->ring, pos);
      refused++;
      bool full = false;
      if (!ljp_brief_look(p) && /* At the ring's end. */
          ljp_producer_put_mem(p, &m, 0, stack, n, true, &full))
        break;
    }
    const struct ljp_mem_entry *mem =
        (const void *)ljp_ring_next(&p->ring, &pos, ljp_ring_head(&p->ring));
    depth = read_stack(&mem->head, seen);
    assert_int_equal(depth, n);
    assert_memory_equal(seen, stack, n * sizeof *stack);
    assert_memory_equal(p->stack, stack, n * sizeof *stack);
    assert_true(mem->address == m.address && mem->time_ns == m.time_ns &&
                mem->vm == m.vm && mem->bytes == 5 && mem->vmstate == 3 &&
                mem->op == m.op && mem->what == 7);
    assert_true((const uint8_t *)mem + mem->size <= p->ring.data + 4096);
    assert_true(ljp_ring_head(&p->ring) - ljp_ring_tail(&p->ring) <= 4096);
    before = n;
    briefs += push_brief(p, m.time_ns, 1, 5, 0);
    while (ljp_ring_next(&p->ring, &pos, ljp_ring_head(&p->ring)))
      ;
  }
  assert_true(refused > 100 && briefs > PUSHES / 2);
  atomic_store(&p->busy, true);
  assert_false(push_top(p, &m, stack, 0, 0));
  source_free(p);
}

static void what_is_not_like_the_event_before_is_not_brief(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_MEMORY, 4096);
  const struct ljp_mem m = {.op = LJP_MEM_ALLOC, .size = 5, .time_ns = 7};
  assert_false(push_brief(p, 7, 1, 5, 0)); /* There is no event before. */
  assert_true(ljp_push_mem(p, &m, NULL, 0));
  assert_false(push_brief(p, 8, 1, 5, 0));
  assert_false(push_brief(p, 7, 1, 0x10000, 0));
  assert_false(push_brief(p, 7, UINT64_C(1) << 48, 5, 0));
  assert_true(push_brief(p, 7, (UINT64_C(1) << 48) - 1, 0xffff, 0));
  atomic_store(&p->busy, true);
  assert_false(push_brief(p, 7, 1, 5, 0));
  atomic_store(&p->busy, false);
  assert_int_equal(ljp_ring_head(&p->ring), 40 + 16);
  assert_false(
      ljp_push_mem_keep(p, &m, 2, NULL, 0, NULL)); /* This one is lost. */
  assert_false(push_brief(p, 7, 1, 5, 0));
  source_free(p);
}

static void a_push_within_a_push_is_counted_not_mixed_in(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 4096);
  const struct ljp_sample s = {.time_ns = 1};
  atomic_store(&p->busy, true);
  assert_false(ljp_push_sample(p, &s, NULL, 0));
  assert_int_equal(p->lost[LJP_LOSS_NESTED], 1);
  assert_int_equal(ljp_ring_head(&p->ring), 0);
  source_free(p);
}

static void a_half_full_ring_asks_for_the_writer_once(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 4096);
  const struct ljp_sample s = {.time_ns = 1};
  atomic_store(&source_wake.word, 0);
  for (int i = 0; i < 64; i++)
    assert_true(ljp_push_sample(p, &s, NULL, 0));
  assert_int_equal(source_wake.word, 0);
  assert_true(ljp_push_sample(p, &s, NULL, 0));
  assert_int_equal(source_wake.word, 1);
  source_free(p);
}

enum { MANY = 200003 };

static void *push_many(void *arg)
{
  struct ljp_producer *p = arg;
  uint64_t frames[40];
  for (uint64_t i = 0; i < MANY; i++) {
    unsigned n = (unsigned)(i % 37);
    for (unsigned k = 0; k < n; k++)
      frames[n - 1 - k] = i / 8 % 5 + k * 100 + 1;
    const struct ljp_sample s = {.time_ns = i, .weight = ~i};
    ljp_push_sample(p, &s, frames, n);
  }
  return NULL;
}

static void a_reader_beside_sees_whole_records_in_order(void **state)
{
  (void)state;
  struct ljp_producer *p = source_new(1, 0, LJP_PRODUCER_CPU, 8192);
  pthread_t thread;
  uint64_t pos = 0, got = 0, next = 0, words[64];
  unsigned depth = 0;
  bool done = false;
  pthread_create(&thread, NULL, push_many, p);
  while (!done) {
    uint64_t lost = atomic_load(&p->lost[LJP_LOSS_RING_FULL]);
    uint64_t end = ljp_ring_head(&p->ring);
    const struct ljp_sample_entry *r;
    while ((r = (const void *)ljp_ring_next(&p->ring, &pos, end))) {
      assert_true(r->time_ns >= next);
      assert_int_equal(r->weight, ~r->time_ns);
      assert_true(r->keep <= depth);
      memcpy(words + r->keep, r->frames, 8u * r->n);
      depth = r->keep + r->n;
      assert_int_equal(depth, r->time_ns % 37);
      for (unsigned k = 0; k < depth; k++)
        assert_int_equal(words[k], r->time_ns / 8 % 5 + k * 100 + 1);
      next = r->time_ns + 1;
      got++;
      ljp_ring_release(&p->ring, pos);
    }
    done = got + lost == MANY;
  }
  pthread_join(thread, NULL);
  assert_int_equal(got + p->lost[LJP_LOSS_RING_FULL], MANY);
  assert_true(got > 100);
  source_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_record_survives_every_wrap),
      cmocka_unit_test(another_top_is_pushed_whole_or_not_at_all),
      cmocka_unit_test(what_is_not_committed_is_not_there),
      cmocka_unit_test(full_ring_counts_each_drop),
      cmocka_unit_test(a_record_too_big_for_the_ring_is_counted_as_such),
      cmocka_unit_test(only_what_changed_is_pushed),
      cmocka_unit_test(keeping_more_than_there_is_is_refused),
      cmocka_unit_test(
          brief_events_never_leave_the_ring_or_overwrite_what_is_unread),
      cmocka_unit_test(another_top_is_pushed_whole_or_not_at_all),
      cmocka_unit_test(what_is_not_like_the_event_before_is_not_brief),
      cmocka_unit_test(a_push_within_a_push_is_counted_not_mixed_in),
      cmocka_unit_test(a_half_full_ring_asks_for_the_writer_once),
      cmocka_unit_test(a_reader_beside_sees_whole_records_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
