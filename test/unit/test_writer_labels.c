/*
** Labels in the writer: whatever comes between, each event has the labels that its
** producer had when it was pushed, and its own stack.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "src/push/brief.h"
#include "src/push/event.h"
#include "test/stream/hand.h"

enum { EVENTS = 6000, DEPTH = 12 };

struct wanted {
  uint32_t labels;
  unsigned depth;
  uint64_t leaf;
};

struct seen {
  const struct wanted *wanted;
  unsigned count;
};

static uint32_t seed;

static unsigned any(unsigned n)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

static void see(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct seen *seen = ctx;
  const struct mini_node *stack[MINI_FRAMES];
  if (e->tag != LJP_REC_SAMPLES && e->tag != LJP_REC_MEM)
    return;
  const struct wanted *w = &seen->wanted[seen->count++];
  unsigned depth = e->stack ? mini_stack(m, e->stack, stack) : 0;
  if (depth && stack[depth - 1]->kind == LJP_FRAME_LABELS) {
    assert_int_equal(stack[depth - 1]->first, w->labels);
    depth--;
  } else {
    assert_int_equal(w->labels, 0);
  }
  assert_int_equal(depth, w->depth);
  if (depth)
    assert_int_equal(stack[0]->second, w->leaf);
}

/* A stack, root first, of which the caller takes some frames. */
static void make_stack(uint64_t *frames, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    frames[i] = ljp_frame_lua(LJP_FRAME_LUA, 0, i + 2, 100 + i * 10 + any(3));
}

static void check(struct hand *h, const struct wanted *wanted)
{
  hand_drain(h, 100000);
  struct seen seen = {.wanted = wanted};
  struct mini *m = hand_end(h, see, &seen);
  assert_int_equal(seen.count, EVENTS);
  assert_true(m->key_blocks > 3);
  mini_free(m);
}

static void samples_have_the_labels_of_their_push(void **state)
{
  (void)state;
  static struct wanted wanted[EVENTS];
  struct hand h;
  uint64_t frames[DEPTH];
  seed = 1;
  hand_begin_with(&h, LJP_PRODUCER_CPU,
                  (struct ljp_writer_options){.max_nodes = 64});
  for (unsigned i = 0; i < EVENTS; i++) {
    unsigned n = any(DEPTH);
    const struct ljp_sample s = {
        .time_ns = 1000 + i, .weight = 7, .vm = 1, .labels = any(4)};
    make_stack(frames, n);
    wanted[i] = (struct wanted){s.labels, n, n ? ljp_frame_line(frames[0]) : 0};
    assert_true(ljp_push_sample(h.p, &s, frames, n));
    if (i % 101 == 0)
      hand_drain(&h, 1000 + i);
  }
  check(&h, wanted);
}

static bool push_brief(struct ljp_producer *p, const struct ljp_mem *m,
                       unsigned number)
{
  const uint64_t kinds =
      ljp_brief_kinds(0, LJP_MEM_ALLOC, 0) | ljp_brief_number(number);
  ljp_brief_look(p);
  return ljp_push_mem_brief(p, m->time_ns, m->address, m->size, kinds);
}

static void memory_events_have_the_labels_of_their_push(void **state)
{
  (void)state;
  static struct wanted wanted[EVENTS];
  struct hand h;
  uint64_t frames[DEPTH], numbered[8][DEPTH];
  unsigned depths[8] = {0}, brief = 0;
  uint32_t labels = 0;
  struct wanted last = {0, 0, 0};
  seed = 2;
  hand_begin_with(&h, LJP_PRODUCER_MEMORY,
                  (struct ljp_writer_options){.max_nodes = 64});
  for (unsigned i = 0; i < EVENTS; i++) {
    struct ljp_mem m = {.time_ns = 1000 + i / 10,
                        .address = 4096 + i * 16,
                        .size = 16,
                        .vm = 1,
                        .op = LJP_MEM_ALLOC};
    unsigned how = any(4), k = 1 + any(7);
    if (any(3) == 0 && (labels = any(4)) != h.p->labels)
      assert_true(ljp_push_labels_wait(h.p, labels));
    labels = h.p->labels;
    if (how == 0 || !depths[k]) {
      unsigned n = 1 + any(DEPTH - 1);
      make_stack(frames, n);
      last = (struct wanted){labels, n, ljp_frame_line(frames[0])};
      assert_true(ljp_push_mem(h.p, &m, frames, n));
      wanted[i] = last;
      make_stack(numbered[k], n);
      depths[k] = n;
      assert_true(ljp_push_stack_wait(h.p, k, numbered[k], n));
    } else if (how == 1) {
      wanted[i] = last;
      assert_true(ljp_push_mem_same_wait(h.p, &m));
    } else {
      wanted[i] = (struct wanted){0, depths[k],
                                  ljp_frame_line(numbered[k][depths[k] - 1])};
      if (how == 3 && push_brief(h.p, &m, k))
        brief++;
      else
        assert_true(ljp_push_mem_number_wait(h.p, &m, k));
    }
    wanted[i].labels = labels;
    if (i % 101 == 0)
      hand_drain(&h, 1000 + i);
  }
  assert_true(brief > EVENTS / 10);
  check(&h, wanted);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_have_the_labels_of_their_push),
      cmocka_unit_test(memory_events_have_the_labels_of_their_push),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
