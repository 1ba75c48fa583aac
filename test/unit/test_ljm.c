/*
** The writer of files that have Tarantool's format ljm from the start, driven by
** hand. Our reader of that format (which the tests of Tarantool's own files
** prove) says what is in them: each test compares the whole list of symbols and
** events.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "parsers/tarantool/reader.h"
#include "src/push/brief.h"
#include "src/push/event.h"
#include "test/stream/hand.h"

#define LUA(ref, line) ljp_frame_lua(LJP_FRAME_LUA, 0, ref, line)
#define INLINED(ref, line) ljp_frame_lua(LJP_FRAME_LUA_INLINED, 0, ref, line)
#define BUILTIN(ffid) ljp_frame(LJP_FRAME_BUILTIN, 0, ffid)
#define CFUNC(address) ljp_frame(LJP_FRAME_CFUNC, 0, address)
#define TRACE(id) ljp_frame(LJP_FRAME_TRACE, 0, id)

/* -- Files as text --------------------------------------------------------- */

static struct {
  char text[1 << 16];
  size_t len;
} shown;

static __attribute__((format(printf, 1, 2))) void show(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  shown.len += (size_t)vsnprintf(shown.text + shown.len,
                                 sizeof shown.text - shown.len, format, args);
  va_end(args);
  assert_true(shown.len < sizeof shown.text);
}

/* f1: Lua function, b1: builtin, others as they are. */
static void show_key(uint64_t key)
{
  if (key >= LJP_TARANTOOL_BUILTINS)
    show("b%d", (int)((key - LJP_TARANTOOL_BUILTINS) / LJP_TARANTOOL_STEP));
  else if (key >= LJP_TARANTOOL_FUNCTIONS)
    show("f%d", (int)((key - LJP_TARANTOOL_FUNCTIONS) / LJP_TARANTOOL_STEP));
  else
    show("%d", (int)key);
}

static void show_symbol(const struct ljp_tarantool_symbol *s)
{
  static const char *const kinds[] = {"lua ", "c ", "trace "};
  show("%s", kinds[s->kind]);
  show_key(s->key);
  if (s->kind == LJP_LJS_TRACE) {
    show(" ");
    show_key(s->proto);
  } else {
    show(" %.*s", (int)s->text.len, s->text.data);
  }
  if (s->kind != LJP_LJS_CFUNC)
    show(":%d", (int)s->line);
  show("\n");
}

static void show_memory(const struct ljp_tarantool_memory *m)
{
  static const char *const kinds[] = {"", "alloc ", "free ", "realloc "};
  show("%s", kinds[m->kind]);
  if (m->source == LJP_LJM_INTERNAL)
    show("-");
  else if (m->source == LJP_LJM_TRACE)
    show("T");
  if (m->source != LJP_LJM_INTERNAL)
    show_key(m->place);
  if (m->source == LJP_LJM_LFUNC)
    show(":%d", (int)m->line);
  if (m->kind == LJP_LJM_REALLOC)
    show(" %d %d", (int)m->old_address, (int)m->old_size);
  show(" %d %d\n", (int)m->address, (int)m->size);
}

/* What the file holds so far. */
static const char *show_file(bool *whole)
{
  struct ljp_tarantool_reader reader;
  const struct ljp_tarantool_event *e;
  shown.len = 0;
  shown.text[0] = '\0';
  assert_int_equal(ljp_tarantool_memory(&reader, hand_out.data, hand_out.len),
                   LJP_OK);
  do {
    assert_int_equal(ljp_tarantool_next(&reader, &e), LJP_OK);
    if (e->what == LJP_TARANTOOL_SYMBOL)
      show_symbol(&e->u.symbol);
    else if (e->what == LJP_TARANTOOL_MEMORY)
      show_memory(&e->u.memory);
  } while (e->what != LJP_TARANTOOL_FINISH);
  *whole = reader.whole;
  if (!*whole) /* Cut between two events, never within one. */
    assert_null(strstr(reader.error, "within"));
  ljp_tarantool_fini(&reader);
  return shown.text;
}

/* -- A writer -------------------------------------------------------------- */

static void begin(struct hand *h)
{
  hand_begin_with(h, LJP_PRODUCER_MEMORY,
                  (struct ljp_writer_options){.ljm = true});
}

static void close_hand(struct hand *h)
{
  ljp_writer_free(h->w);
  ljp_sink_fini(&h->sink);
  source_free(h->p);
}

static void end(struct hand *h, const char *wanted)
{
  bool whole;
  hand_drain(h, 1 << 20);
  assert_string_equal(show_file(&whole), wanted);
  assert_false(whole);
  assert_int_equal(ljp_writer_end(h->w, LJP_OK, 0, "stopped"), LJP_OK);
  assert_string_equal(show_file(&whole), wanted);
  assert_true(whole);
  close_hand(h);
}

/* The stack is leaf first. */
#define PUSH(h, mem, ...)                                                      \
  do {                                                                         \
    const uint64_t stack_[] = {__VA_ARGS__};                                   \
    const struct ljp_mem mem_ = mem;                                           \
    assert_true(                                                               \
        ljp_push_mem((h)->p, &mem_, stack_, sizeof stack_ / sizeof *stack_));  \
  } while (0)
#define MEM(kind, at, bytes, ...)                                              \
  ((struct ljp_mem){.op = LJP_MEM_##kind,                                      \
                    .time_ns = 1000,                                           \
                    .vm = 1,                                                   \
                    .address = (at),                                           \
                    .size = (bytes),                                           \
                    __VA_ARGS__})

static void a_file_is_whole_unless_its_recording_failed(void **state)
{
  (void)state;
  static const uint8_t head[] = "ljs\3\0\0\0\200ljm\3\0\0\0";
  struct hand h;
  begin(&h);
  assert_int_equal(hand_out.len, 15);
  assert_memory_equal(hand_out.data, head, 15);
  end(&h, "");
  assert_int_equal(hand_out.len, 16);
  begin(&h); /* The program has replaced its allocator, for example. */
  assert_true(ljp_push_note(h.p, 1009, LJP_NOTE_ERROR, "why"));
  hand_drain(&h, 1 << 20);
  assert_int_equal(ljp_writer_end(h.w, LJP_OK, 0, "stopped"), LJP_OK);
  assert_int_equal(hand_out.len, 15);
  close_hand(&h);
}

static void a_symbol_precedes_the_first_event_that_names_it(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  PUSH(&h, MEM(ALLOC, 4096, 31, .what = LJP_MEM_TYPE_TABLE), LUA(2, 23),
       LUA(3, 7));
  PUSH(&h, MEM(ALLOC, 8192, 37), LUA(3, 9), LUA(2, 24));
  PUSH(&h, MEM(REALLOC, 8192, 41, .old_address = 4096, .old_size = 31),
       LUA(2, 25), LUA(3, 7));
  PUSH(&h, MEM(FREE, 8192, 37), LUA(2, 25), LUA(3, 7));
  end(&h, "lua f1 @app/file2.lua:20\n"
          "alloc f1:23 4096 31\n"
          "lua f2 @app/file3.lua:30\n"
          "alloc f2:9 8192 37\n"
          "realloc f1:25 4096 31 8192 41\n"
          "free f1:25 8192 37\n");
}

static void what_the_vm_does_by_itself_is_internal(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  PUSH(&h, MEM(FREE, 4096, 31, .what = LJP_MEM_SWEPT), LUA(2, 23));
  PUSH(&h, MEM(FREE, 4096, 37, .vmstate = LJP_VMSTATE_GC), LUA(2, 23));
  PUSH(&h, MEM(ALLOC, 4096, 41, .what = LJP_MEM_TYPE_TRACE), LUA(2, 23));
  PUSH(&h,
       MEM(ALLOC, 4096, 43, .vmstate = LJP_VMSTATE_RECORD,
           .what = LJP_MEM_TYPE_BUFFER),
       LUA(2, 23));
  PUSH(&h,
       MEM(ALLOC, 4096, 47, .vmstate = LJP_VMSTATE_RECORD,
           .what = LJP_MEM_TYPE_STRING),
       LUA(2, 23));
  end(&h, "free - 4096 31\n"
          "free - 4096 37\n"
          "alloc - 4096 41\n"
          "alloc - 4096 43\n"
          "lua f1 @app/file2.lua:20\n"
          "alloc f1:23 4096 47\n");
}

static void a_failed_allocation_is_no_event(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  PUSH(&h, MEM(ALLOC, 0, 31, .what = LJP_MEM_FAILED), LUA(2, 23));
  end(&h, "");
}

static void builtins_belong_to_the_line_that_calls_them(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  PUSH(&h, MEM(ALLOC, 4096, 31), BUILTIN(77), LUA(2, 23));
  PUSH(&h, MEM(ALLOC, 4096, 37), BUILTIN(77), CFUNC(500), LUA(2, 23));
  PUSH(&h, MEM(ALLOC, 4096, 41), BUILTIN(77));
  end(&h, "lua f1 @app/file2.lua:20\n"
          "alloc f1:23 4096 31\n"
          "c b77 lib.fn77\n"
          "alloc b77 4096 37\n"
          "alloc b77 4096 41\n");
}

static void c_functions_are_named_by_address(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  struct ljp_modules *m = &h.w->modules;
  m->list = calloc(1, sizeof *m->list);
  m->list[0] = (struct ljp_module){.id = 1,
                                   .start = 4096,
                                   .end = 8192,
                                   .bias = 4000,
                                   .path = strdup("/no/such/module.so")};
  m->loaded = m->count = 1;
  m->generation = 1;
  PUSH(&h, MEM(ALLOC, 4096, 31), CFUNC(5000), LUA(2, 23));
  PUSH(&h, MEM(ALLOC, 4096, 37), CFUNC(5000), LUA(2, 23));
  PUSH(&h, MEM(ALLOC, 4096, 41), CFUNC(9000), LUA(2, 23));
  end(&h, "c 5000 module.so+0x3e8\n"
          "alloc 5000 4096 31\n"
          "alloc 5000 4096 37\n"
          "c 9000 0x2328\n"
          "alloc 9000 4096 41\n");
}

/* The test itself is a module: its own functions have names. */
static void c_functions_of_loaded_files_have_names(void **state)
{
  (void)state;
  char wanted[128];
  struct hand h;
  begin(&h);
  const uint64_t address = (uintptr_t)c_functions_of_loaded_files_have_names;
  assert_int_equal(ljp_modules_look(&h.w->modules, 200), LJP_OK);
  PUSH(&h, MEM(ALLOC, 4096, 31), CFUNC(address));
  hand_drain(&h, 2000);
  snprintf(wanted, sizeof wanted, "c %d %s\nalloc %d 4096 31\n", (int)address,
           __func__, (int)address);
  end(&h, wanted);
}

static void traces_have_numbers_and_starts(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  /* All known traces start at line 53 of function 5. */
  PUSH(&h, MEM(ALLOC, 4096, 31, .vmstate = LJP_VMSTATE_TRACE), INLINED(2, 23),
       TRACE(7), LUA(3, 9));
  PUSH(&h, MEM(ALLOC, 4096, 37, .vmstate = LJP_VMSTATE_TRACE), BUILTIN(77),
       INLINED(2, 23), TRACE(107), LUA(3, 9));
  /* Line 9 is where the interpreter was, the trace is what runs. */
  PUSH(&h, MEM(ALLOC, 4096, 41, .vmstate = LJP_VMSTATE_TRACE), LUA(3, 9),
       TRACE(7));
  /* A stack that has lost its trace still has its line. */
  PUSH(&h, MEM(ALLOC, 4096, 43, .vmstate = LJP_VMSTATE_TRACE), LUA(3, 9));
  end(&h, "lua f1 @app/file5.lua:50\n"
          "trace 7 f1:53\n"
          "alloc T7 4096 31\n"
          "alloc T7 4096 37\n"
          "alloc T7 4096 41\n"
          "lua f2 @app/file3.lua:30\n"
          "alloc f2:9 4096 43\n");
}

static uint64_t moved_line;
static bool moved_trace(void *ctx, uint64_t id, struct ljp_trace_info *out)
{
  known_trace(ctx, id, out);
  out->place = LUA(5, (uint32_t)moved_line);
  return id != 13;
}

static void a_number_of_another_trace_is_another_number(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  h.w->options.describe.trace = moved_trace;
  for (unsigned i = 0; i < 4; i++) {
    moved_line = 50 + i / 2;
    PUSH(&h, MEM(ALLOC, 4096, 31 + i, .vmstate = LJP_VMSTATE_TRACE),
         TRACE(7 + 100 * i));
    hand_drain(&h, 2000 + i);
  }
  /* Nobody knows this one: its line is a place, too. */
  PUSH(&h, MEM(ALLOC, 4096, 41, .vmstate = LJP_VMSTATE_TRACE), TRACE(13));
  end(&h, "lua f1 @app/file5.lua:50\n"
          "trace 7 f1:50\n"
          "alloc T7 4096 31\n"
          "alloc T7 4096 32\n"
          "trace 65543 f1:51\n"
          "alloc T65543 4096 33\n"
          "alloc T65543 4096 34\n"
          "alloc - 4096 41\n");
}

static void unknown_functions_share_one_symbol(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  h.w->options.describe.proto = NULL;
  PUSH(&h, MEM(ALLOC, 4096, 31), LUA(2, 23));
  PUSH(&h, MEM(ALLOC, 4096, 37), LUA(3, 9));
  end(&h, "lua f0 (unknown Lua function):0\n"
          "alloc f0:23 4096 31\n"
          "alloc f0:9 4096 37\n");
}

static uint32_t gone_refs;
static size_t one_gone(void *ctx, uint32_t *refs, size_t room)
{
  (void)ctx;
  (void)room;
  if (!gone_refs)
    return 0;
  refs[0] = gone_refs;
  gone_refs = 0;
  return 1;
}

static void a_reference_that_is_used_again_is_another_function(void **state)
{
  (void)state;
  struct hand h;
  begin(&h);
  h.w->options.describe.gone = one_gone;
  PUSH(&h, MEM(ALLOC, 4096, 31), LUA(2, 23));
  gone_refs = 2;
  hand_drain(&h, 2000);
  PUSH(&h, MEM(ALLOC, 4096, 37), LUA(2, 24));
  end(&h, "lua f1 @app/file2.lua:20\n"
          "alloc f1:23 4096 31\n"
          "lua f2 @app/file2.lua:20\n"
          "alloc f2:24 4096 37\n");
}

static void brief_events_and_numbered_stacks_have_their_places(void **state)
{
  (void)state;
  struct hand h;
  const uint64_t numbered[] = {LUA(3, 9), LUA(2, 24)}; /* Root first. */
  begin(&h);
  PUSH(&h, MEM(ALLOC, 4096, 31), LUA(2, 23));
  assert_true(ljp_push_stack_wait(h.p, 5, numbered, 2));
  while (!ljp_push_mem_brief(
      h.p, 1000, 8192, 37,
      ljp_brief_kinds(LJP_VMSTATE_INTERP, LJP_MEM_ALLOC, 0)))
    assert_true(ljp_brief_look(h.p));
  assert_true(
      ljp_push_mem_brief(h.p, 1000, 8192, 41,
                         ljp_brief_kinds(LJP_VMSTATE_INTERP, LJP_MEM_ALLOC, 0) +
                             ljp_brief_number(5)));
  assert_true(ljp_push_mem_brief(
      h.p, 1000, 8192, 43,
      ljp_brief_kinds(LJP_VMSTATE_INTERP, LJP_MEM_FREE, LJP_MEM_SWEPT)));
  /* What is no memory event leaves no trace. */
  assert_true(ljp_push_gc(h.p, 1000, 1, LJP_GC_SWEEP, 12345, 1));
  const struct ljp_mem m =
      MEM(REALLOC, 8192, 47, .old_address = 4096, .old_size = 31);
  assert_true(ljp_push_mem_number_wait(h.p, &m, 5));
  end(&h, "lua f1 @app/file2.lua:20\n"
          "alloc f1:23 4096 31\n"
          "alloc f1:23 8192 37\n"
          "alloc f1:24 8192 41\n"
          "free - 8192 43\n"
          "realloc f1:24 4096 31 8192 47\n");
}

/* After an error the file ends where it ended: no byte says that it is whole,
** even if the sink takes bytes again. What is missing is counted. */
static void a_failed_write_leaves_a_file_without_end(void **state)
{
  (void)state;
  enum { EVENTS = 20011 };
  struct hand h;
  bool whole;
  uint64_t written = 0;
  begin(&h);
  hand_out.refuse_at = 20011;
  for (uint64_t i = 0; i < EVENTS; i++)
    PUSH(&h, MEM(FREE, 4096 + i, 31, .what = LJP_MEM_SWEPT), LUA(2, 23));
  ljp_writer_begin(h.w, 1000);
  ljp_writer_drain(h.w);
  assert_int_equal(ljp_writer_finish(h.w), LJP_ERR_IO);
  const size_t len = hand_out.len;
  assert_int_equal(ljp_writer_end(h.w, LJP_ERR_IO, 0, "why"), LJP_ERR_IO);
  assert_int_equal(hand_out.len, len);
  struct ljp_tarantool_reader reader;
  const struct ljp_tarantool_event *e;
  assert_int_equal(ljp_tarantool_memory(&reader, hand_out.data, hand_out.len),
                   LJP_OK);
  do {
    assert_int_equal(ljp_tarantool_next(&reader, &e), LJP_OK);
    written += e->what == LJP_TARANTOOL_MEMORY;
  } while (e->what != LJP_TARANTOOL_FINISH);
  whole = reader.whole;
  ljp_tarantool_fini(&reader);
  assert_false(whole);
  assert_in_range(written, 1009, EVENTS - 1009);
  assert_int_equal(h.w->sources->lost[LJP_LOSS_WRITE_ERROR], EVENTS - written);
  close_hand(&h);
}

static void a_bad_entry_ends_the_file(void **state)
{
  (void)state;
  struct hand h;
  bool whole;
  begin(&h);
  PUSH(&h, MEM(ALLOC, 4096, 31), LUA(2, 23));
  const struct ljp_mem m = MEM(ALLOC, 4096, 37);
  assert_true(ljp_push_mem_number_wait(h.p, &m, 5)); /* No such stack. */
  ljp_writer_begin(h.w, 1000);
  ljp_writer_drain(h.w);
  assert_int_equal(ljp_writer_finish(h.w), LJP_ERR_MEM);
  assert_int_equal(ljp_writer_end(h.w, LJP_ERR_MEM, 0, "why"), LJP_ERR_MEM);
  assert_string_equal(show_file(&whole), "lua f1 @app/file2.lua:20\n"
                                         "alloc f1:23 4096 31\n");
  assert_false(whole);
  close_hand(&h);
}

/* All of Lua's lines and long names, over many flushes. */
static void many_functions_with_long_names_fit(void **state)
{
  (void)state;
  struct hand h;
  bool whole;
  begin(&h);
  for (uint32_t i = 1; i < 601; i++)
    PUSH(&h, MEM(ALLOC, 4096 + i, UINT64_C(1) << 40), LUA(i, 0xffffff),
         LUA(i, 3), LUA(i, 4));
  hand_drain(&h, 2000);
  assert_int_equal(ljp_writer_end(h.w, LJP_OK, 0, "stopped"), LJP_OK);
  const char *text = show_file(&whole);
  assert_true(whole);
  assert_non_null(strstr(text, "alloc f600:16777215 4696 0\n"));
  close_hand(&h);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_is_whole_unless_its_recording_failed),
      cmocka_unit_test(a_symbol_precedes_the_first_event_that_names_it),
      cmocka_unit_test(what_the_vm_does_by_itself_is_internal),
      cmocka_unit_test(a_failed_allocation_is_no_event),
      cmocka_unit_test(builtins_belong_to_the_line_that_calls_them),
      cmocka_unit_test(c_functions_are_named_by_address),
      cmocka_unit_test(c_functions_of_loaded_files_have_names),
      cmocka_unit_test(traces_have_numbers_and_starts),
      cmocka_unit_test(a_number_of_another_trace_is_another_number),
      cmocka_unit_test(unknown_functions_share_one_symbol),
      cmocka_unit_test(a_reference_that_is_used_again_is_another_function),
      cmocka_unit_test(brief_events_and_numbered_stacks_have_their_places),
      cmocka_unit_test(a_failed_write_leaves_a_file_without_end),
      cmocka_unit_test(a_bad_entry_ends_the_file),
      cmocka_unit_test(many_functions_with_long_names_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
