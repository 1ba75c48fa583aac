/*
** The profile of the golden streams, against a naive count of the same streams
** by the reader alone. Streams made by hand: test_profile_blocks.c,
** test_profile_shape.c.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/profile/profile.h"

static struct ljp_reader reader;

static struct ljp_profile *load(const char *name,
                                const struct ljp_profile_options *options)
{
  char path[600], error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_profile *p;
  snprintf(path, sizeof path, "%s/test/data/%s", LJP_SOURCE_DIR, name);
  if (ljp_profile_load(path, options, &p, error))
    fail_msg("%s: %s", name, error);
  return p;
}

/* What the reader alone counts. */
struct naive {
  uint64_t samples, ns, no_stack, alloc, alloc_bytes, frees, reallocs;
  uint64_t frames; /* Of the stacks of all samples together. */
  uint64_t builtin_leaf, by_state[16];
};

static struct naive naive_count(const char *name)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  const struct ljp_item *e;
  struct naive n = {0};
  char path[600];
  unsigned count;
  snprintf(path, sizeof path, "%s/test/data/%s", LJP_SOURCE_DIR, name);
  assert_int_equal(ljp_reader_open(&reader, path), LJP_OK);
  while (!ljp_reader_next(&reader, &e) && e->what != LJP_ITEM_FINISH) {
    const struct ljp_rec_mem *m = &e->u.mem;
    if (e->what == LJP_REC_SAMPLES) {
      n.samples++;
      n.ns += e->u.sample.weight;
      n.no_stack += !e->u.sample.stack;
      n.by_state[e->u.sample.state % 16]++;
      ljp_model_stack(&reader.model, e->u.sample.stack, frames, &count);
      /* Labels are no frame. */
      n.frames +=
          count - (count && frames[count - 1]->kind == LJP_FRAME_LABELS);
      n.builtin_leaf += count && frames[0]->kind == LJP_FRAME_BUILTIN;
    } else if (e->what == LJP_REC_MEM) {
      bool moved = m->flags & LJP_MEM_MOVED;
      if (m->flags & LJP_MEM_FAILED)
        continue;
      n.alloc += m->op == LJP_MEM_ALLOC && !moved;
      n.frees += m->op == LJP_MEM_FREE && !moved;
      n.reallocs +=
          m->op == LJP_MEM_REALLOC || (m->op == LJP_MEM_ALLOC && moved);
      if (m->op != LJP_MEM_FREE)
        n.alloc_bytes += m->weight ? m->weight : m->size;
    }
  }
  ljp_reader_fini(&reader);
  return n;
}

static uint64_t depth(const struct ljp_profile *p, uint32_t node)
{
  uint64_t n = 0;
  for (; node; node = p->nodes[node].parent) {
    assert_true(p->nodes[node].parent < node);
    n += p->frames[p->nodes[node].frame].kind < LJP_FRAME_NO_STACK;
  }
  return n;
}

static void rows_add_up_to_what_the_reader_counts(void **state)
{
  static const char *const names[] = {
      "every-record.ljp", "every-record-zstd.ljp", "killed.ljp",
      "rotated.ljp",      "small-table.ljp",       "vm-closed.ljp"};
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .points = true};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct naive want = naive_count(names[i]), got = {0};
    struct ljp_profile *p = load(names[i], &options);
    uint64_t points = 0, point_ns = 0;
    for (uint32_t r = 0; r < p->row_count; r++) {
      const struct ljp_profile_row *row = &p->rows[r];
      const struct ljp_profile_context *c = &p->contexts[row->context];
      const struct ljp_profile_frame *f = &p->frames[p->nodes[row->node].frame];
      if (c->kind == LJP_PRODUCER_MEMORY) {
        got.alloc += row->count;
        got.alloc_bytes += row->weight;
        got.frees += p->memory[row->memory].free_events;
        got.reallocs += p->memory[row->memory].realloc_events;
        continue;
      }
      got.samples += row->count;
      got.ns += row->weight;
      got.frames += row->count * depth(p, row->node);
      got.by_state[c->state % 16] += row->count;
      if (f->kind == LJP_FRAME_NO_STACK)
        got.no_stack += row->count;
      if (f->kind == LJP_FRAME_BUILTIN)
        got.builtin_leaf += row->count;
    }
    for (uint32_t k = 0; k < p->point_count; k++) {
      const struct ljp_profile_point *point = &p->points[k];
      const struct ljp_profile_row *row = &p->rows[point->row];
      if (k)
        assert_true(p->points[k - 1].tick <= point->tick);
      if (p->contexts[row->context].kind != LJP_PRODUCER_MEMORY) {
        points += point->count;
        point_ns += point->weight;
      }
    }
    assert_true(want.samples > 0);
    assert_int_equal(got.samples, want.samples);
    assert_int_equal(got.samples, p->totals.samples + p->totals.wall_samples);
    assert_int_equal(got.ns, want.ns);
    assert_int_equal(got.ns, p->totals.cpu_ns + p->totals.wall_ns);
    assert_int_equal(points, want.samples);
    assert_int_equal(point_ns, want.ns);
    assert_int_equal(got.frames, want.frames);
    assert_int_equal(got.no_stack, want.no_stack);
    assert_int_equal(got.builtin_leaf, want.builtin_leaf);
    assert_memory_equal(got.by_state, want.by_state, sizeof want.by_state);
    assert_int_equal(got.alloc, want.alloc);
    assert_int_equal(got.alloc_bytes, want.alloc_bytes);
    assert_int_equal(got.frees, want.frees);
    assert_int_equal(got.reallocs, want.reallocs);
    assert_int_equal(got.alloc, p->totals.alloc_events);
    assert_int_equal(got.frees, p->totals.free_events);
    ljp_profile_free(p);
  }
}

static void assert_str(const struct ljp_profile *p, uint32_t string,
                       const char *text)
{
  struct ljp_str s = ljp_profile_str(p, string);
  assert_int_equal(s.len, strlen(text));
  assert_memory_equal(s.data, text, s.len);
}

static void traces_and_their_events_are_what_the_stream_says(void **state)
{
  (void)state;
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .trace_stacks = true};
  struct ljp_profile *p = load("every-record.ljp", &options);
  const struct ljp_profile_trace_event *start = NULL, *stop = NULL,
                                       *abort = NULL;
  unsigned seen[8] = {0};
  assert_int_equal(p->trace_event_count, 28);
  for (uint32_t i = 0; i < p->trace_event_count; i++) {
    const struct ljp_profile_trace_event *e = &p->trace_events[i];
    seen[e->what]++;
    start = e->what == LJP_TRACE_START ? e : start;
    stop = e->what == LJP_TRACE_STOP ? e : stop;
    abort = e->what == LJP_TRACE_ABORT ? e : abort;
    assert_int_equal(e->stack != 0, e->what == LJP_TRACE_ABORT);
  }
  for (int what = LJP_TRACE_START; what <= LJP_TRACE_EXISTS; what++)
    assert_int_equal(seen[what], 4);
  /* Three traces are defined; the samples refer to the first two. */
  assert_int_equal(p->trace_count, 4);
  const struct ljp_profile_trace *t = &p->traces[stop->trace];
  assert_true(t->known && t->id == 3 && t->number == 3 && t->truncated);
  assert_int_equal(p->traces[t->parent].id, 2);
  assert_int_equal(t->parent_exit, 3);
  assert_int_equal(p->traces[t->root].id, 1);
  assert_int_equal(t->link, stop->trace);
  assert_int_equal(t->line, 53);
  assert_int_equal(t->code_bytes, 487);
  assert_int_equal(t->ir_count, 101);
  assert_int_equal(t->snapshots, 11);
  assert_int_equal(t->marks, 23);
  assert_int_equal(t->marks_cut, 7);
  assert_str(p, t->name, "f5");
  assert_str(p, t->link_type, "loop");
  assert_int_equal(p->traces[start->parent].id, 2);
  assert_int_equal(start->parent_exit, 5);
  assert_int_equal(start->line, 61);
  assert_str(p, abort->reason, "NYI: bytecode 51");
  assert_int_equal(abort->reason_number, 7);
  const struct ljp_profile_node *leaf = &p->nodes[abort->stack];
  assert_int_equal(p->frames[leaf->frame].kind, LJP_FRAME_BUILTIN);
  assert_int_equal(p->frames[p->nodes[leaf->parent].frame].line, 137);
  assert_int_equal(depth(p, abort->stack), 3);
  for (uint32_t i = 0; i < p->frame_count; i++)
    assert_int_equal(p->frames[i].trace != 0,
                     p->frames[i].kind == LJP_FRAME_TRACE);
  ljp_profile_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_add_up_to_what_the_reader_counts),
      cmocka_unit_test(traces_and_their_events_are_what_the_stream_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
