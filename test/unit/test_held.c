/*
** File segments that begin with held blocks. The mini reader reads each alone.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/push/event.h"
#include "test/stream/hand.h"

static char dir[] = "/tmp/ljp-held-XXXXXX";

struct segments {
  struct ljp_sink sink;
  struct ljp_writer *w;
  struct ljp_producer *p;
};

/* Prototypes below 100 have gone: nobody can describe them again. */
static bool gone;

static bool maybe_proto(void *ctx, uint32_t ref, struct ljp_proto_info *out)
{
  return !(gone && ref < 100) && known_proto(ctx, ref, out);
}

static void begin(struct segments *s, struct ljp_writer_options o)
{
  char path[600];
  snprintf(path, sizeof path, "%s/out", dir);
  gone = false;
  o.describe = known();
  o.describe.proto = maybe_proto;
  o.put_process = fixed_process;
  if (!o.segment_ns)
    o.segment_ns = UINT64_C(1) << 60;
  assert_int_equal(ljp_sink_init_file(&s->sink, path, false), LJP_OK);
  assert_int_equal(ljp_writer_new(&s->w, &s->sink, &o), LJP_OK);
  assert_int_equal(ljp_writer_start(s->w, 100), LJP_OK);
  s->p = source_new(1, 0, LJP_PRODUCER_MEMORY, 1 << 20);
  ljp_writer_begin(s->w, 100);
  ljp_writer_add_vm(s->w, 1, 0, "one");
  ljp_writer_add_vm(s->w, 2, 0, "two");
  ljp_writer_add_producer(s->w, s->p, 4096);
  ljp_writer_drain(s->w);
  assert_int_equal(ljp_writer_finish(s->w), LJP_OK);
}

static void drain(struct segments *s, uint64_t now)
{
  ljp_writer_begin(s->w, now);
  ljp_writer_drain(s->w);
  assert_int_equal(ljp_writer_finish(s->w), LJP_OK);
}

static void push(struct segments *s, uint64_t time_ns, unsigned op,
                 uint64_t address, uint32_t vm, uint64_t weight, uint32_t proto)
{
  const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, proto, 7),
                             ljp_frame_lua(LJP_FRAME_LUA, 0, 3, 9)};
  const struct ljp_mem m = {.time_ns = time_ns,
                            .address = address,
                            .size = 40 + vm,
                            .weight = weight,
                            .vm = vm,
                            .op = (uint8_t)op,
                            .vmstate = LJP_VMSTATE_INTERP,
                            .what =
                                op == LJP_MEM_ALLOC ? LJP_MEM_TYPE_TABLE : 0};
  assert_true(ljp_push_mem(s->p, &m, frames, proto ? 2 : 0));
}

struct seen {
  unsigned vms, left_out, closed, live, events, labels_only;
  uint64_t told, cycle[3];
  struct mini_event blocks[80];
  char leaf[80][24]; /* The name of the function that allocated it. */
};

static void see(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct seen *seen = ctx;
  const struct mini_node *stack[MINI_FRAMES];
  if (e->tag == LJP_REC_HELD) {
    seen->vms++;
    seen->left_out += !(e->state & LJP_HELD_KEPT);
    seen->closed += (e->state & LJP_HELD_CLOSED) != 0;
    seen->told += e->size;
    seen->cycle[e->vm] = e->weight;
  } else if (e->tag == LJP_REC_LIVE) {
    assert_int_equal(seen->events, 0); /* They come first. */
    assert_true(seen->live < 80);
    unsigned depth = mini_stack(m, e->stack, stack);
    seen->labels_only += depth == 1 && stack[0]->kind == LJP_FRAME_LABELS;
    if (depth)
      strcpy(seen->leaf[seen->live], m->proto_name[stack[0]->first % MINI_IDS]);
    seen->blocks[seen->live++] = *e;
  } else if (e->tag == LJP_REC_MEM) {
    seen->events++;
  }
}

/* Reads a file segment, on its own. */
static struct seen read_segment(const char *name)
{
  struct seen seen = {0};
  struct mini *m = mini_new();
  char path[600];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  m->on_event = see;
  m->ctx = &seen;
  if (!mini_read_file(m, path, NULL))
    fail_msg("%s: %s", name, m->error);
  mini_free(m);
  return seen;
}

static void end(struct segments *s)
{
  ljp_writer_end(s->w, LJP_OK, 0, "stopped");
  ljp_writer_free(s->w);
  ljp_sink_fini(&s->sink);
  source_free(s->p);
}

static const struct mini_event *block_at(const struct seen *seen,
                                         uint64_t address, const char **leaf)
{
  for (unsigned i = 0; i < seen->live; i++)
    if (seen->blocks[i].address == address) {
      *leaf = seen->leaf[i];
      return &seen->blocks[i];
    }
  return NULL;
}

static void a_segment_begins_with_what_is_alive(void **state)
{
  (void)state;
  struct segments s;
  const char *leaf;
  begin(&s, (struct ljp_writer_options){0});
  ljp_push_gc(s.p, 200, 1, LJP_GC_PAUSE, 1000, 5);
  push(&s, 210, LJP_MEM_ALLOC, 4096, 1, 500, 7);
  push(&s, 220, LJP_MEM_ALLOC, 8192, 1, 600, 8);
  push(&s, 230, LJP_MEM_ALLOC, 12288, 2, 700, 0);
  push(&s, 240, LJP_MEM_FREE, 8192, 1, 600, 7);
  push(&s, 250, LJP_MEM_FREE, 99 * 16, 1, 600, 7); /* not known */
  drain(&s, 300);
  ljp_push_gc(s.p, 310, 1, LJP_GC_PAUSE, 1000, 6);
  push(&s, 320, LJP_MEM_ALLOC, 16384, 1, 800, 8);
  drain(&s, 400);
  assert_true(ljp_writer_turn(s.w));
  push(&s, 420, LJP_MEM_FREE, 4096, 1, 500, 7);
  push(&s, 430, LJP_MEM_ALLOC, 4096, 1, 900, 9);
  drain(&s, 500);
  assert_true(ljp_writer_turn(s.w));
  ljp_push_gc(s.p, 510, 2, LJP_GC_CLOSED, 0, 0);
  drain(&s, 600);
  assert_true(ljp_writer_turn(s.w));
  ljp_writer_begin(s.w, 700);
  ljp_writer_end_vm(s.w, 2);
  assert_int_equal(ljp_writer_finish(s.w), LJP_OK);
  assert_true(ljp_writer_turn(s.w));
  end(&s);

  struct seen seen = read_segment("out");
  assert_int_equal(seen.vms + seen.live, 0);
  seen = read_segment("out.s1");
  assert_int_equal(seen.vms, 2);
  assert_int_equal(seen.left_out, 0);
  assert_int_equal(seen.told, 3);
  assert_int_equal(seen.live, 3);
  assert_int_equal(seen.events, 2);
  assert_int_equal(seen.cycle[1], 6);
  const struct mini_event *e = block_at(&seen, 4096, &leaf);
  assert_non_null(e);
  assert_int_equal(e->time_ns, 210);
  assert_int_equal(e->size, 41);
  assert_int_equal(e->weight, 500);
  assert_int_equal(e->vm, 1);
  assert_int_equal(e->producer, 1);
  assert_int_equal(e->what, LJP_MEM_TYPE_TABLE);
  assert_int_equal(e->old_size, 5); /* the cycle */
  assert_string_equal(leaf, "f7");
  e = block_at(&seen, 12288, &leaf);
  assert_non_null(e);
  assert_int_equal(e->stack, 0);
  assert_int_equal(e->vm, 2);
  e = block_at(&seen, 16384, &leaf);
  assert_non_null(e);
  assert_int_equal(e->old_size, 6);
  assert_string_equal(leaf, "f8");

  seen = read_segment("out.s2");
  assert_int_equal(seen.live, 3);
  e = block_at(&seen, 4096, &leaf);
  assert_int_equal(e->time_ns, 430);
  assert_string_equal(leaf, "f9");
  assert_int_equal(seen.closed, 0);
  seen = read_segment("out.s3"); /* Closed, and not gone yet. */
  assert_int_equal(seen.vms, 2);
  assert_int_equal(seen.closed, 1);
  assert_int_equal(seen.live, 2);
  assert_null(block_at(&seen, 12288, &leaf));
  seen = read_segment("out.s4");
  assert_int_equal(seen.vms, 1);
  assert_int_equal(seen.closed, 0);
  assert_int_equal(seen.live, 2);
}

/* The table of stacks is cleared again and again, and what the functions were is
** no longer known by then. */
static void stacks_outlive_their_table(void **state)
{
  (void)state;
  struct segments s;
  const char *leaf, *name[] = {"f7", "f8"};
  begin(&s, (struct ljp_writer_options){.max_nodes = 64});
  for (uint32_t i = 0; i < 2; i++) {
    push(&s, 210 + i, LJP_MEM_ALLOC, 4096 * (i + 1), 1, 500, 7 + i);
    drain(&s, 300);
  }
  uint64_t epoch = s.w->out.epoch, base = s.w->nodes.base;
  gone = true;
  for (uint32_t i = 0; i < 300; i++) {
    const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, 200 + i, 7),
                               ljp_frame(LJP_FRAME_BUILTIN, 0, i)};
    const struct ljp_mem m = {
        .time_ns = 400 + i, .address = 16, .size = 8, .weight = 9, .vm = 1};
    assert_true(ljp_push_mem(s.p, &m, frames, 2));
  }
  drain(&s, 900);
  assert_true(s.w->out.epoch > epoch + 5);
  assert_true(s.w->nodes.base > base + 300);
  assert_true(ljp_writer_turn(s.w));
  end(&s);
  struct seen seen = read_segment("out.s1");
  assert_int_equal(seen.live, 3);
  for (uint32_t i = 0; i < 2; i++) {
    assert_non_null(block_at(&seen, 4096 * (i + 1), &leaf));
    assert_string_equal(leaf, name[i]);
  }
  assert_non_null(block_at(&seen, 16, &leaf));
  assert_string_equal(leaf, "f499");
}

/* What comes needs room: stacks of held blocks that fill the table are given up,
** but neither the blocks nor their labels. */
static void stacks_that_fill_the_table_are_dropped(void **state)
{
  (void)state;
  struct segments s;
  const char *leaf;
  begin(&s, (struct ljp_writer_options){.max_nodes = 64});
  for (uint32_t i = 0; i < 62; i++) {
    if (i % 31 == 30)
      assert_true(ljp_push_labels_wait(s.p, i == 30 ? 7 : 0));
    push(&s, 210 + i, LJP_MEM_ALLOC, 4096 * (i + 1), 1, 500, 7 + i);
  }
  drain(&s, 300);
  for (uint32_t i = 0; i < 3; i++)
    push(&s, 310 + i, LJP_MEM_ALLOC, 16 * (i + 1), 1, 500, 200 + 2 * i);
  drain(&s, 400);
  assert_true(ljp_writer_turn(s.w));
  end(&s);
  struct seen seen = read_segment("out.s1");
  assert_int_equal(seen.live, 65);
  unsigned without = 0;
  for (unsigned i = 0; i < seen.live; i++)
    without += !seen.blocks[i].stack;
  assert_true(without >= 25);
  assert_int_equal(seen.labels_only, 31);
  assert_non_null(block_at(&seen, 48, &leaf));
  assert_string_equal(leaf, "f204");
}

/* The next file segment fails when a part of what is held has been written. */
static void a_segment_that_fails_leaves_nothing_behind(void **state)
{
  (void)state;
  struct segments s;
  struct rlimit limit, before;
  const char *leaf;
  begin(&s, (struct ljp_writer_options){0});
  for (uint32_t i = 0; i < 60; i++)
    push(&s, 210 + i, LJP_MEM_ALLOC, 4096 * (i + 1), 1, 500, 7 + i);
  drain(&s, 300);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = s.sink.file.whole_bytes + 300; /* for a note */
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  assert_false(ljp_writer_turn(s.w));
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(s.w->out.status, LJP_OK);
  push(&s, 310, LJP_MEM_ALLOC, 16, 1, 500, 7);
  push(&s, 311, LJP_MEM_ALLOC, 32, 1, 500, 99);
  drain(&s, 400);
  assert_true(ljp_writer_turn(s.w));
  end(&s);
  assert_int_equal(read_segment("out").events, 62);
  struct seen seen = read_segment("out.s1");
  assert_int_equal(seen.live, 62);
  assert_non_null(block_at(&seen, 32, &leaf));
  assert_string_equal(leaf, "f99");
  assert_non_null(block_at(&seen, 4096 * 60, &leaf));
  assert_string_equal(leaf, "f66");
}

/* What cannot be written has happened all the same. */
static void what_is_freed_while_nothing_can_be_written_is_not_held(void **state)
{
  (void)state;
  struct segments s;
  const char *leaf;
  begin(&s, (struct ljp_writer_options){0});
  for (uint32_t i = 0; i < 4; i++)
    push(&s, 210 + i, LJP_MEM_ALLOC, 4096 * (i + 1), 1 + i / 3, 500, 7 + i);
  drain(&s, 300);
  push(&s, 310, LJP_MEM_FREE, 4096, 1, 500, 7);
  push(&s, 311, LJP_MEM_ALLOC, 8192, 1, 600, 8);
  ljp_push_gc(s.p, 312, 2, LJP_GC_CLOSED, 0, 0);
  s.w->out.status = LJP_ERR_IO;
  ljp_writer_begin(s.w, 400);
  ljp_writer_drain(s.w);
  s.w->out.status = LJP_OK;
  assert_int_equal(ljp_writer_finish(s.w), LJP_OK);
  assert_true(ljp_writer_turn(s.w));
  end(&s);
  struct seen seen = read_segment("out.s1");
  assert_int_equal(seen.live, 1);
  assert_non_null(block_at(&seen, 3 * 4096, &leaf));
}

static void what_is_not_kept_is_said(void **state)
{
  (void)state;
  struct segments s;
  /* Every event: nothing is kept, but cycles are. */
  begin(&s, (struct ljp_writer_options){0});
  ljp_push_gc(s.p, 200, 1, LJP_GC_PAUSE, 1000, 5);
  push(&s, 210, LJP_MEM_ALLOC, 4096, 1, 0, 7);
  push(&s, 220, LJP_MEM_FREE, 4096, 1, 0, 7);
  drain(&s, 300);
  assert_true(ljp_writer_turn(s.w));
  end(&s);
  struct seen seen = read_segment("out.s1");
  assert_int_equal(seen.vms, 1);
  assert_int_equal(seen.left_out, 1);
  assert_int_equal(seen.live, 0);
  assert_int_equal(seen.cycle[1], 5);
  /* More than a quarter of a file segment. */
  begin(&s, (struct ljp_writer_options){.segment_bytes = 4096});
  for (uint32_t i = 0; i < 60; i++)
    push(&s, 210 + i, LJP_MEM_ALLOC, 4096 * (i + 1), 1, 500, 7);
  drain(&s, 300);
  assert_true(ljp_writer_turn(s.w));
  end(&s);
  seen = read_segment("out.s1");
  assert_int_equal(seen.vms, 1);
  assert_int_equal(seen.left_out, 1);
  assert_int_equal(seen.live, 0);
  /* A session that does not rotate pays for nothing. */
  struct hand h;
  hand_begin(&h, LJP_PRODUCER_MEMORY);
  const struct ljp_mem m = {
      .time_ns = 110, .address = 16, .size = 8, .weight = 9, .vm = 1};
  assert_true(ljp_push_mem(h.p, &m, NULL, 0));
  hand_drain(&h, 120);
  assert_null(h.w->held.slots);
  mini_free(hand_end(&h, NULL, NULL));
}

static int make_dir(void **state)
{
  (void)state;
  return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
  (void)state;
  char command[600];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_segment_begins_with_what_is_alive),
      cmocka_unit_test(stacks_outlive_their_table),
      cmocka_unit_test(stacks_that_fill_the_table_are_dropped),
      cmocka_unit_test(a_segment_that_fails_leaves_nothing_behind),
      cmocka_unit_test(what_is_freed_while_nothing_can_be_written_is_not_held),
      cmocka_unit_test(what_is_not_kept_is_said),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
