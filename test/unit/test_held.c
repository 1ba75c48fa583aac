/*
** Held blocks: the table against a plain model, and the file segments that begin
** with them, which the mini reader reads alone.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/push/event.h"
#include "test/stream/hand.h"

/* -- The table --------------------------------------------------------------- */

enum { ADDRESSES = 200 };

static struct ljp_held_block *find(const struct ljp_held *held,
                                   uint64_t address)
{
  for (uint32_t i = 0; held->slots && i <= held->mask; i++)
    if (held->slots[i].address == address)
      return &held->slots[i];
  return NULL;
}

static uint32_t blocks_of(const struct ljp_held *held, uint32_t vm)
{
  for (uint32_t i = 0; i < held->vm_count; i++)
    if (held->vms[i].vm == vm)
      return held->vms[i].blocks;
  return 0;
}

/* model[a]: the size of the block at an address; 0: none. Its VM is size % 3 + 1. */
static void compare(const struct ljp_held *held, const uint64_t *model)
{
  uint32_t count = 0, of[4] = {0};
  for (uint64_t a = 1; a < ADDRESSES; a++) {
    const struct ljp_held_block *block = find(held, a * 16);
    if (!model[a]) {
      assert_null(block);
      continue;
    }
    assert_non_null(block);
    assert_int_equal(block->size, model[a]);
    count++;
    of[block->vm]++;
  }
  assert_int_equal(held->count, count);
  for (uint32_t vm = 1; vm < 4; vm++)
    assert_int_equal(blocks_of(held, vm), of[vm]);
}

static void the_table_does_what_a_list_does(void **state)
{
  (void)state;
  struct ljp_held held = {.wanted = true};
  uint64_t model[ADDRESSES] = {0};
  uint32_t random = 4711;
  for (int i = 1; i < 20000; i++) {
    random = random * 1664525 + 1013904223;
    uint64_t a = 1 + (random >> 8) % (ADDRESSES - 1);
    uint32_t vm = (uint32_t)i % 3 + 1;
    if (random >> 30) {
      const struct ljp_held_block block = {
          .address = a * 16, .size = (uint64_t)i, .vm = vm};
      ljp_held_put(&held, &block);
      model[a] = (uint64_t)i;
    } else {
      ljp_held_take(&held, a * 16);
      model[a] = 0;
    }
    if (i % 997 == 0) {
      ljp_held_close_vm(&held, vm);
      for (a = 1; a < ADDRESSES; a++)
        model[a] = model[a] % 3 + 1 == vm ? 0 : model[a];
    }
    if (i % 97 == 0 || i % 997 == 0)
      compare(&held, model);
  }
  ljp_held_stop(&held);
  assert_int_equal(held.count, 0);
  assert_int_equal(blocks_of(&held, 1) + blocks_of(&held, 2), 0);
  ljp_held_take(&held, 16);
  ljp_held_fini(&held);
}

static void a_full_table_keeps_nothing(void **state)
{
  (void)state;
  struct ljp_held held = {.wanted = true};
  for (uint64_t i = 1; i <= LJP_HELD_MAX; i++)
    ljp_held_put(&held, &(struct ljp_held_block){.address = i * 8, .vm = 1});
  assert_true(ljp_held_is_kept(&held));
  assert_int_equal(held.count, LJP_HELD_MAX);
  ljp_held_take(&held, 8);
  assert_int_equal(held.count, LJP_HELD_MAX - 1);
  for (uint64_t i = 1; i <= 3; i++)
    ljp_held_put(&held, &(struct ljp_held_block){.address = i << 32, .vm = 1});
  assert_false(ljp_held_is_kept(&held));
  assert_int_equal(held.count, 0);
  assert_null(held.slots);
  ljp_held_put(&held, &(struct ljp_held_block){.address = 8, .vm = 1});
  assert_int_equal(held.count, 0);
  ljp_held_fini(&held);
}

/* So are too many VMs; one that is forgotten makes room. */
static void vms_come_and_go(void **state)
{
  (void)state;
  struct ljp_held held = {.wanted = true};
  for (uint32_t vm = 1; vm < 5 * LJP_HELD_VMS; vm++) {
    ljp_held_see_cycle(&held, vm, vm);
    ljp_held_put(&held, &(struct ljp_held_block){.address = 64, .vm = vm});
    assert_int_equal(find(&held, 64)->cycle, vm);
    ljp_held_forget_vm(&held, vm);
    assert_int_equal(held.vm_count, 0);
    assert_int_equal(held.count, 0);
  }
  assert_true(ljp_held_is_kept(&held));
  for (uint32_t vm = 1; vm <= LJP_HELD_VMS + 1; vm++)
    ljp_held_put(&held, &(struct ljp_held_block){.address = vm * 8, .vm = vm});
  assert_true(held.full);
  ljp_held_fini(&held);
}

/* -- File segments ------------------------------------------------------------ */

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
  unsigned vms, left_out, live, events;
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
    seen->told += e->size;
    seen->cycle[e->vm] = e->weight;
  } else if (e->tag == LJP_REC_LIVE) {
    assert_int_equal(seen->events, 0); /* They come first. */
    assert_true(seen->live < 80);
    if (mini_stack(m, e->stack, stack))
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
  seen = read_segment("out.s3");
  assert_int_equal(seen.vms, 1);
  assert_int_equal(seen.live, 2);
  assert_null(block_at(&seen, 12288, &leaf));
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
** but not the blocks. */
static void stacks_that_fill_the_table_are_dropped(void **state)
{
  (void)state;
  struct segments s;
  const char *leaf;
  begin(&s, (struct ljp_writer_options){.max_nodes = 64});
  for (uint32_t i = 0; i < 62; i++)
    push(&s, 210 + i, LJP_MEM_ALLOC, 4096 * (i + 1), 1, 500, 7 + i);
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
  assert_true(without >= 50);
  assert_non_null(block_at(&seen, 48, &leaf));
  assert_string_equal(leaf, "f204");
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
      cmocka_unit_test(the_table_does_what_a_list_does),
      cmocka_unit_test(a_full_table_keeps_nothing),
      cmocka_unit_test(vms_come_and_go),
      cmocka_unit_test(a_segment_begins_with_what_is_alive),
      cmocka_unit_test(stacks_outlive_their_table),
      cmocka_unit_test(stacks_that_fill_the_table_are_dropped),
      cmocka_unit_test(what_is_not_kept_is_said),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
