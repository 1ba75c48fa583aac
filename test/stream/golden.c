/*
** Writes the golden streams of test/data/: every record type, with fixed times
** and ids, so that the bytes are the same each time and on each machine.
** test_golden compares them with the files there. Usage: golden_streams DIR
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/push/event.h"
#include "src/writer/heap_writer.h"
#include "src/writer/writer_impl.h"
#include "test/stream/fixed_process.h"
#include "test/stream/source.h"

static uint64_t now = UINT64_C(1000000000000);

struct golden {
  struct ljp_sink sink;
  struct ljp_writer *w;
  struct ljp_producer *cpu, *mem, *events;
};

static void check(enum ljp_status status, const char *what)
{
  if (status) {
    fprintf(stderr, "golden_streams: %s: %s\n", what, ljp_status_text(status));
    exit(1);
  }
}

static void open_golden(struct golden *g, const char *dir, const char *name,
                        const struct ljp_writer_options *o)
{
  char path[4096];
  struct ljp_writer_options options = *o;
  options.describe = known();
  options.stream = 0x1234567800000001u;
  options.put_process = fixed_process;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  now = UINT64_C(1000000000000);
  check(ljp_sink_init_file(&g->sink, path, false), path);
  check(ljp_writer_new(&g->w, &g->sink, &options), path);
  check(ljp_writer_start(g->w, now), path);
  g->cpu = source_new(1, 1, LJP_PRODUCER_CPU, 1 << 20);
  g->mem = source_new(2, 1, LJP_PRODUCER_MEMORY, 1 << 20);
  g->events = source_new(3, 1, LJP_PRODUCER_EVENTS, 1 << 20);
  g->cpu->timer = LJP_TIMER_TICK;
  g->cpu->refused = 13;
}

static void define(struct golden *g)
{
  ljp_writer_begin(g->w, now);
  ljp_writer_add_info(g->w, "host.kernel", "Linux 6.1.0");
  ljp_writer_add_info(g->w, "luajit.version", "LuaJIT 2.1");
  ljp_writer_add_info(g->w, "option.interval_us", "1009");
  ljp_writer_add_thread(g->w, 1, 4242, "main");
  ljp_writer_add_thread(g->w, 2, 4243, "worker");
  ljp_writer_add_vm(g->w, 1, 1, "vm one");
  ljp_writer_add_vm(g->w, 2, 2, "vm two");
  ljp_writer_add_producer(g->w, g->cpu, 1009000);
  ljp_writer_add_producer(g->w, g->mem, 0);
  ljp_writer_add_producer(g->w, g->events, 0);
  ljp_writer_drain(g->w);
  ljp_writer_finish(g->w);
}

static void round_once(struct golden *g)
{
  now += 250000000;
  ljp_writer_begin(g->w, now);
  ljp_writer_drain(g->w);
  ljp_writer_finish(g->w);
}

static void close_golden(struct golden *g, bool end)
{
  if (end)
    ljp_writer_end(g->w, LJP_OK, 0, "stopped");
  ljp_writer_free(g->w);
  ljp_sink_fini(&g->sink);
  source_free(g->cpu);
  source_free(g->mem);
  source_free(g->events);
}

/* Two modules at the same place, one after the other, and one that stays
** loaded. */
static void set_modules(struct golden *g, bool second)
{
  struct ljp_modules *m = &g->w->modules;
  ljp_modules_fini(m);
  m->list = calloc(3, sizeof *m->list);
  m->count = second ? 3 : 2;
  m->loaded = 2;
  m->generation = second ? 2 : 1;
  m->list[0] = (struct ljp_module){.id = 1,
                                   .start = 0x400000,
                                   .end = 0x500000,
                                   .bias = 0,
                                   .flags = LJP_MODULE_MAIN,
                                   .build_id_len = 4,
                                   .build_id = {0xde, 0xad, 0xbe, 0xef},
                                   .path = strdup("/usr/bin/example")};
  struct ljp_module old = {.id = 2,
                           .start = 0x7f0000100000u,
                           .end = 0x7f0000200000u,
                           .bias = 0x7f0000100000u,
                           .path = strdup("/usr/lib/libold.so")};
  struct ljp_module new = old;
  if (second) {
    old.gone_ns = now;
    new.id = 3;
    new.path = strdup("/usr/lib/libnew.so");
    new.maybe_from_ns = now - 1;
    m->list[1] = new;
    m->list[2] = old;
  } else {
    m->list[1] = old;
  }
}

static void push_samples(struct golden *g, int count, unsigned variety)
{
  uint64_t frames[64];
  for (int i = 0; i < count; i++) {
    unsigned n = 0, v = (unsigned)i % variety;
    if (v == 2)
      frames[n++] = ljp_frame(LJP_FRAME_PROFILER, 0, 0);
    frames[n++] = ljp_frame(LJP_FRAME_HOST, 0, 0x7f0000100000u + v * 16);
    frames[n++] = ljp_frame(LJP_FRAME_VM, 0, 0x401000 + v);
    frames[n++] = ljp_frame(LJP_FRAME_CFUNC, 0, 0x402000);
    frames[n++] = ljp_frame(LJP_FRAME_BUILTIN, 0, 17 + v % 3);
    frames[n++] = ljp_frame_lua(LJP_FRAME_LUA_INLINED, v % 3, 2 + v, 20 + v);
    frames[n++] = ljp_frame(LJP_FRAME_TRACE, LJP_EXACT_ROOT, 1 + v % 2);
    frames[n++] = ljp_frame_lua(LJP_FRAME_LUA, LJP_FRAME_TAIL, 999, 7);
    frames[n++] = ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 3);
    frames[n++] = ljp_frame(LJP_FRAME_HOST, 0, 0x10);
    if (v == 1)
      frames[n++] = ljp_frame(LJP_FRAME_CUT, 0, LJP_CUT_NO_TABLE);
    const struct ljp_sample s = {.time_ns = now + (uint64_t)i * 1009000,
                                 .weight = 1009000 + (i % 5 == 4 ? 13 : 0),
                                 .vm = 1 + (uint32_t)(i % 11 == 10),
                                 .labels =
                                     variety == 5 && i % 13 < 3 ? 1 + v % 2 : 0,
                                 .vmstate = (uint8_t)(i / 7 % 10),
                                 .cut = v == 1 ? LJP_CUT_NO_TABLE : 0};
    ljp_push_sample(g->cpu, &s, frames, i % 13 == 12 ? 0 : n);
  }
}

static void push_mem(struct golden *g, int count)
{
  const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, 11, 113),
                             ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 5),
                             ljp_frame(LJP_FRAME_KERNEL, 0, 0xfff000)};
  for (int i = 0; i < count; i++) {
    struct ljp_mem m = {.time_ns = now + (uint64_t)i * 211,
                        .address = 0x7f1100000000u + (uint64_t)(i % 89) * 48,
                        .size = 40 + (uint64_t)(i % 3) * 24,
                        .vm = 1,
                        .op = (uint8_t)(i % 3),
                        .vmstate = LJP_VMSTATE_INTERP};
    if (m.op == LJP_MEM_REALLOC) {
      m.old_address = m.address - 64;
      m.old_size = 17;
    }
    if (m.op != LJP_MEM_FREE)
      m.what = (uint8_t)(1 + i % LJP_MEM_TYPE_OTHER);
    else if (i % 2)
      m.what = LJP_MEM_SWEPT;
    if (i % 43 == 42) {
      m.what |= LJP_MEM_FAILED;
      m.address = m.op == LJP_MEM_REALLOC ? m.old_address : 0;
    }
    if (i % 31 == 30)
      m.weight = 524287;
    ljp_push_mem(g->mem, &m, frames, i % 37 == 36 ? 1 : 3);
  }
}

/* One event of each kind. */
static void push_traces(struct golden *g)
{
  uint64_t place = ljp_frame_lua(LJP_FRAME_LUA, 0, 6, 61);
  const uint64_t chain[] = {ljp_frame(LJP_FRAME_BUILTIN, 0, 19),
                            ljp_frame_lua(LJP_FRAME_LUA, 0, 13, 137),
                            ljp_frame_lua(LJP_FRAME_LUA, 0, 6, 67)};
  const struct ljp_trace_event events[] = {
      {.what = LJP_TRACE_EXISTS, .trace = 2, .place = place},
      {.what = LJP_TRACE_START, .parent = 2, .parent_exit = 5, .place = place},
      {.what = LJP_TRACE_STOP, .trace = 3, .place = place},
      {.what = LJP_TRACE_ABORT,
       .place = place,
       .reason = 7,
       .text = "NYI: bytecode 51",
       .frames = chain,
       .depth = 3},
      {.what = LJP_TRACE_BLACKLIST, .place = place},
      {.what = LJP_TRACE_FREE, .trace = 2},
      {.what = LJP_TRACE_FLUSH}};
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
    struct ljp_trace_event e = events[i];
    e.time_ns = now + 3;
    e.vm = 1;
    ljp_push_trace(g->events, &e);
  }
}

static void push_events(struct golden *g)
{
  const uint64_t counters[] = {0, 101, 211, 307};
  ljp_push_gc(g->events, now + 1, 1, LJP_GC_PROPAGATE, 100003, 1);
  ljp_push_gc(g->events, now + 2, 1, LJP_GC_PAUSE, 50021, 2);
  push_traces(g);
  ljp_push_vmstate(g->events, now + 7, 1, counters, 4);
  ljp_push_mark(g->events, now + 8, 1, 1, -17, "request \"a\"\n", 12);
  ljp_push_interval(g->events, now + 9, 2018000, LJP_INTERVAL_THROTTLE);
  ljp_push_interval(g->mem, now + 9, 1048576, LJP_INTERVAL_LIMIT);
  ljp_push_note(g->events, now + 10, LJP_NOTE_WARNING, "a note");
}

/* Every record type, two epochs (the second begins by time), and END. */
static void every_record(const char *dir, const char *name, int zstd)
{
  struct golden g;
  const struct ljp_writer_options o = {.zstd_level = zstd,
                                       .epoch_ns = 700000000};
  open_golden(&g, dir, name, &o);
  set_modules(&g, false);
  define(&g);
  for (int i = 0; i < 4; i++) {
    push_samples(&g, 53, 5);
    push_mem(&g, 97);
    push_events(&g);
    round_once(&g);
    if (i == 1) {
      set_modules(&g, true);
      ljp_count_overrun(g.cpu, 19);
      ljp_count_loss(g.cpu, LJP_LOSS_THROTTLE, 23);
      ljp_count_loss(g.mem, LJP_LOSS_RING_FULL, 29);
    }
  }
  ljp_writer_begin(g.w, now);
  ljp_writer_retire(g.w, g.events);
  ljp_writer_put_unsampled(g.w, now - 37, 2, LJP_PRODUCER_CPU,
                           LJP_UNSAMPLED_BLOCKED, 127000001);
  ljp_writer_put_unsampled(g.w, now - 31, 0, LJP_PRODUCER_CPU,
                           LJP_UNSAMPLED_NOT_FOUND, 3000017);
  ljp_writer_put_unsampled(g.w, now - 31, 1, LJP_PRODUCER_CPU,
                           LJP_UNSAMPLED_LAST, 499979);
  ljp_writer_put_cpu_time(g.w, now - 29, 344408517);
  ljp_writer_put_elapsed(g.w, now - 23, 2, 1270013);
  ljp_writer_end_vm(g.w, 2);
  ljp_writer_end_thread(g.w, 2);
  ljp_writer_finish(g.w);
  close_golden(&g, true);
}

/* A killed program: no END, many small blocks. */
static void killed(const char *dir)
{
  struct golden g;
  const struct ljp_writer_options o = {0};
  open_golden(&g, dir, "killed.ljp", &o);
  set_modules(&g, false);
  define(&g);
  for (int i = 0; i < 7; i++) {
    push_samples(&g, 11, 3);
    round_once(&g);
  }
  close_golden(&g, false);
}

/* Three file segments, each readable alone. */
static void rotated(const char *dir)
{
  struct golden g;
  const struct ljp_writer_options o = {.segment_ns = 600000000};
  open_golden(&g, dir, "rotated.ljp", &o);
  set_modules(&g, false);
  define(&g);
  for (int i = 0; i < 7; i++) {
    push_samples(&g, 17, 3);
    push_mem(&g, 13);
    round_once(&g);
  }
  close_golden(&g, true);
}

/* Sampled memory, in two file segments: the second begins with what is alive. */
static void held(const char *dir)
{
  struct golden g;
  const struct ljp_writer_options o = {.segment_ns = 600000000};
  const uint64_t frames[] = {ljp_frame_lua(LJP_FRAME_LUA, 0, 11, 113),
                             ljp_frame_lua(LJP_FRAME_LUA, 0, 1, 5)};
  open_golden(&g, dir, "held.ljp", &o);
  define(&g);
  for (int round = 0; round < 5; round++) {
    ljp_push_gc(g.mem, now, 1, LJP_GC_PAUSE, 60013, 7 + (uint64_t)round);
    ljp_push_labels_wait(g.mem, (uint32_t)round % 3);
    for (int i = 0; i < 9; i++) {
      const struct ljp_mem m = {.time_ns = now + (uint64_t)i * 211,
                                .address = 0x7f1100000000u +
                                           (uint64_t)(i + round) * 48,
                                .size = 40 + (uint64_t)i * 24,
                                .weight = 524287 + (uint64_t)i,
                                .vm = 1,
                                .op = i % 4 == 3 ? LJP_MEM_FREE : LJP_MEM_ALLOC,
                                .what = i % 4 == 3 ? 0 : LJP_MEM_TYPE_TABLE,
                                .vmstate = LJP_VMSTATE_INTERP};
      ljp_push_mem(g.mem, &m, frames, i % 5 == 4 ? 0 : 2);
    }
    round_once(&g);
  }
  close_golden(&g, true);
}

/* A stack table so small that epochs follow each other. */
static void small_table(const char *dir)
{
  struct golden g;
  const struct ljp_writer_options o = {.max_nodes = 64};
  open_golden(&g, dir, "small-table.ljp", &o);
  set_modules(&g, false);
  define(&g);
  push_samples(&g, 97, 31);
  round_once(&g);
  close_golden(&g, true);
}

/* A VM that is closed while it is recorded: everything that it still has is
** freed then. */
static void vm_closed(const char *dir)
{
  struct golden g;
  const struct ljp_writer_options o = {0};
  open_golden(&g, dir, "vm-closed.ljp", &o);
  set_modules(&g, false);
  define(&g);
  push_samples(&g, 19, 3);
  push_mem(&g, 43);
  ljp_push_gc(g.events, now + 1, 1, LJP_GC_PAUSE, 60013, 3);
  ljp_push_gc(g.events, now + 5, 1, LJP_GC_CLOSED, 47017, 3);
  round_once(&g);
  ljp_writer_begin(g.w, now);
  ljp_writer_end_vm(g.w, 1);
  ljp_writer_finish(g.w);
  close_golden(&g, true);
}

/* -- A heap snapshot: each type of object, each kind of reference --------- */

static void put_refs(struct ljp_heap_out *out, uint64_t first)
{
#define LJP_X(name, how, shape, text)                                          \
  if (LJP_HEAP_SHAPE_##shape == LJP_HEAP_SHAPE_PAIR)                           \
    out->field(out, how | LJP_HEAP_WEAK_KEY, first + 8, first + 1000);         \
  else if (LJP_HEAP_SHAPE_##shape == LJP_HEAP_SHAPE_TEXT)                      \
    out->named(out, how, "name", 4, first + 1600);                             \
  else if (how)                                                                \
    out->ref(out, how | (how % 5 ? 0 : LJP_HEAP_WEAK),                         \
             LJP_HEAP_SHAPE_##shape == LJP_HEAP_SHAPE_PLAIN ? 0 : how * 3,     \
             first + how * 40);
  LJP_HEAP_HOW_LIST(LJP_X)
#undef LJP_X
  for (unsigned i = 0; i < 200; i++)
    out->ref(out, LJP_HEAP_HOW_ITEM, i, first + i % 50 * 40);
}

static void heap_snapshot(const char *dir)
{
  struct golden g;
  struct ljp_heap_writer *h;
  struct ljp_heap_sums sums;
  const struct ljp_writer_options o = {0};
  const struct ljp_heap_about about = {1, 1, LJP_HEAP_TAKEN_COPY, 16};
  const struct ljp_heap_head head = {98765, 8, 24, LJP_GC_SWEEP};
  const uint64_t first = UINT64_C(0x7f1234560000);
  open_golden(&g, dir, "heap.ljp", &o);
  define(&g);
  round_once(&g);
  ljp_writer_begin(g.w, now);
  ljp_writer_add_info(g.w, "option.strings", "16");
  ljp_writer_finish(g.w);
  const struct ljp_moment_fields moment = {
      .snapshot = 1, .vm = 1, .heap_bytes = 98765};
  ljp_push_moment_wait(g.mem, now, &moment);
  round_once(&g);
  check(ljp_heap_writer_new(&h, g.w), "heap");
  struct ljp_heap_out *out = ljp_heap_writer_begin(h, &about, &head, now);
  for (unsigned i = 1; i <= LJP_HEAP_CTYPE_CTYPE; i++) {
    const struct ljp_heap_ctype type = {
        .number = i, .kind = (uint8_t)i, .bytes = 24 * i, .of = i / 2};
    out->ctype(out, &type);
  }
  for (unsigned i = 0; i < 50; i++) {
    const struct ljp_heap_object object = {
        .address = first + i * 40,
        .bytes = 16 + i * 7,
        .type = (uint8_t)(1 + i % 19),
        .flags = (uint8_t)(i % 3 ? 0 : i * 5),
        .numbers = {i, i * 300, UINT64_C(1) << i % 48},
        .text = "contents of a string",
        .text_bytes = i % 20};
    out->object(out, &object);
    if (i % 19 + 1 == LJP_MEM_TYPE_TABLE)
      put_refs(out, first);
    out->object_end(out);
  }
  check(ljp_heap_writer_end(h, now + 1000, &sums), "heap");
  ljp_heap_writer_free(h);
  close_golden(&g, true);
}

int main(int argc, char **argv)
{
  if (argc != 2) {
    fprintf(stderr, "usage: golden_streams DIR\n");
    return 2;
  }
  mkdir(argv[1], 0777);
  every_record(argv[1], "every-record.ljp", 0);
#ifdef LJP_HAVE_ZSTD
  every_record(argv[1], "every-record-zstd.ljp", 3);
#endif
  killed(argv[1]);
  rotated(argv[1]);
  held(argv[1]);
  small_table(argv[1]);
  vm_closed(argv[1]);
  heap_snapshot(argv[1]);
  return 0;
}
