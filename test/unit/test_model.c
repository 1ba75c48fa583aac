/* The model: stacks, definitions, and what is known after some were lost. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/stream/frame_text.h"
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"
#include "test/support/encode.h"

static struct ljp_model model;
static const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];

static int begin(void **state)
{
  (void)state;
  ljp_model_init(&model);
  ljp_model_epoch(&model, 1, true);
  return 0;
}

static int finish(void **state)
{
  (void)state;
  ljp_model_fini(&model);
  return 0;
}

static struct ljp_str str(const char *text)
{
  return (struct ljp_str){text, (uint32_t)strlen(text)};
}

static enum ljp_status node(uint64_t id, uint32_t up, unsigned kind,
                            uint64_t ref, uint64_t value)
{
  const struct ljp_rec_node n = {
      .id = id, .up = up, .kind = (uint8_t)kind, .ref = ref, .value = value};
  return ljp_model_define_node(&model, &n);
}

static void proto(uint64_t id, const char *chunk, const char *name,
                  uint64_t flags)
{
  struct ljp_item e = {.what = LJP_REC_PROTO};
  e.u.proto = (struct ljp_rec_proto){.id = id,
                                     .first_line = 10,
                                     .last_line = 19,
                                     .flags = flags,
                                     .chunk = str(chunk),
                                     .name = str(name)};
  assert_int_equal(ljp_model_define(&model, &e), LJP_OK);
}

static const char *text_of(uint64_t id)
{
  static char text[256];
  struct ljp_frame_refs view;
  const struct ljp_rec_node *n = ljp_model_node(&model, id);
  assert_non_null(n);
  ljp_frame_resolve(&model, n, &view);
  size_t len = ljp_frame_text(&model, &view, text, sizeof text);
  assert_int_equal(len, strlen(text));
  return text;
}

static void a_stack_is_followed_from_its_leaf_to_its_root(void **state)
{
  (void)state;
  unsigned count;
  node(100, 0, LJP_FRAME_HOST, 0, 1);
  node(103, 3, LJP_FRAME_HOST, 0, 2);
  node(110, 7, LJP_FRAME_HOST, 0, 3);
  assert_int_equal(ljp_model_stack(&model, 110, frames, &count),
                   LJP_STACK_WHOLE);
  assert_int_equal(count, 3);
  assert_int_equal(frames[0]->value, 3);
  assert_int_equal(frames[1]->value, 2);
  assert_int_equal(frames[2]->value, 1);
  assert_int_equal(ljp_model_stack(&model, 0, frames, &count), LJP_STACK_WHOLE);
  assert_int_equal(count, 0);
}

static void
a_stack_whose_ancestor_is_not_defined_is_lost_from_there(void **state)
{
  (void)state;
  unsigned count;
  node(103, 3, LJP_FRAME_HOST, 0, 2);
  node(110, 7, LJP_FRAME_HOST, 0, 3);
  assert_int_equal(ljp_model_stack(&model, 110, frames, &count),
                   LJP_STACK_LOST);
  assert_int_equal(count, 2);
  assert_int_equal(ljp_model_stack(&model, 5, frames, &count), LJP_STACK_LOST);
  assert_int_equal(count, 0);
}

static void a_stack_ends_at_the_limit_of_frames(void **state)
{
  (void)state;
  unsigned count;
  node(1, 0, LJP_FRAME_HOST, 0, 0);
  for (uint64_t id = 2; id <= LJP_STACK_MAX_FRAMES + 5; id++)
    node(id, 1, LJP_FRAME_HOST, 0, id);
  assert_int_equal(
      ljp_model_stack(&model, LJP_STACK_MAX_FRAMES, frames, &count),
      LJP_STACK_WHOLE);
  assert_int_equal(count, LJP_STACK_MAX_FRAMES);
  assert_int_equal(
      ljp_model_stack(&model, LJP_STACK_MAX_FRAMES + 1, frames, &count),
      LJP_STACK_DEEP);
  assert_int_equal(count, LJP_STACK_MAX_FRAMES);
}

static void labels_do_not_count_among_the_frames(void **state)
{
  (void)state;
  unsigned count;
  node(1, 0, LJP_FRAME_LABELS, 0, 7);
  for (uint64_t id = 2; id <= LJP_STACK_MAX_NODES + 1; id++)
    node(id, 1, LJP_FRAME_HOST, 0, id);
  assert_int_equal(ljp_model_stack(&model, LJP_STACK_MAX_NODES, frames, &count),
                   LJP_STACK_WHOLE);
  assert_int_equal(count, LJP_STACK_MAX_NODES);
  assert_int_equal(frames[count - 1]->kind, LJP_FRAME_LABELS);
  assert_int_equal(
      ljp_model_stack(&model, LJP_STACK_MAX_NODES + 1, frames, &count),
      LJP_STACK_DEEP);
  assert_int_equal(count, LJP_STACK_MAX_FRAMES);
}

static void a_node_outside_the_epoch_s_range_is_refused(void **state)
{
  (void)state;
  struct ljp_item e = {.what = LJP_REC_EPOCH};
  e.u.epoch.first_node = 5000;
  assert_int_equal(ljp_model_define(&model, &e), LJP_OK);
  assert_int_equal(node(4999, 0, 1, 0, 0), LJP_ERR_FORMAT);
  assert_int_equal(node(5000, 0, 1, 0, 0), LJP_OK);
  assert_int_equal(node(5000 + LJP_EPOCH_MAX_NODES - 1, 0, 1, 0, 0), LJP_OK);
  assert_int_equal(node(5000 + LJP_EPOCH_MAX_NODES, 0, 1, 0, 0),
                   LJP_ERR_FORMAT);
}

/* Two ids that share a place in the table are never taken for each other. */
static void
a_later_node_in_the_same_place_replaces_not_impersonates(void **state)
{
  (void)state;
  node(77, 0, LJP_FRAME_HOST, 0, 1);
  node(77 + LJP_EPOCH_MAX_NODES, 0, LJP_FRAME_HOST, 0, 2);
  assert_null(ljp_model_node(&model, 77));
  assert_int_equal(ljp_model_node(&model, 77 + LJP_EPOCH_MAX_NODES)->value, 2);
}

static void definitions_of_one_epoch_before_still_fill_holes(void **state)
{
  (void)state;
  proto(1, "@a.lua", "old", 0);
  proto(2, "@a.lua", "both", 0);
  ljp_model_epoch(&model, 2, true);
  proto(2, "@a.lua", "both again", 0);
  assert_memory_equal(ljp_model_proto(&model, 1)->name.data, "old", 3);
  assert_int_equal(ljp_model_proto(&model, 2)->name.len, 10);
  ljp_model_epoch(&model, 3, true);
  assert_null(ljp_model_proto(&model, 1));
  assert_non_null(ljp_model_proto(&model, 2));
  ljp_model_epoch(&model, 4, true);
  assert_null(ljp_model_proto(&model, 2));
}

/* Tables grow with many definitions, of several kinds with equal ids. */
static void many_definitions_are_found_each_by_kind_and_id(void **state)
{
  (void)state;
  char name[32];
  for (uint64_t id = 1; id <= 5003; id++) {
    struct ljp_item e = {.what = LJP_REC_THREAD};
    snprintf(name, sizeof name, "thread %d", (int)id);
    e.u.thread = (struct ljp_rec_thread){id, id * 3, str(name)};
    assert_int_equal(ljp_model_define(&model, &e), LJP_OK);
    e.what = LJP_REC_VM;
    snprintf(name, sizeof name, "vm %d", (int)id);
    e.u.vm = (struct ljp_rec_vm){id, id * 7, str(name)};
    assert_int_equal(ljp_model_define(&model, &e), LJP_OK);
  }
  for (uint64_t id = 1; id <= 5003; id++) {
    const struct ljp_rec_thread *thread = ljp_model_thread(&model, id);
    const struct ljp_rec_vm *vm = ljp_model_vm(&model, id);
    snprintf(name, sizeof name, "vm %d", (int)id);
    assert_true(thread && thread->tid == id * 3);
    assert_true(vm && vm->thread == id * 7);
    assert_int_equal(vm->name.len, strlen(name));
    assert_memory_equal(vm->name.data, name, strlen(name));
  }
  assert_null(ljp_model_thread(&model, 5004));
  assert_null(ljp_model_producer(&model, 1));
}

static void the_same_definition_again_takes_no_memory(void **state)
{
  (void)state;
  proto(1, "@a.lua", "f", 0);
  size_t before = model.epochs[0].bytes;
  for (int i = 0; i < 100000; i++)
    proto(1, "@a.lua", "f", 0);
  assert_int_equal(model.epochs[0].bytes, before);
}

static void info_is_found_by_key_and_the_last_value_holds(void **state)
{
  (void)state;
  struct ljp_item e = {.what = LJP_REC_INFO};
  const char *values[] = {"one", "two"};
  for (int i = 0; i < 2; i++) {
    e.u.info = (struct ljp_rec_info){str("option.x"), str(values[i])};
    assert_int_equal(ljp_model_define(&model, &e), LJP_OK);
  }
  assert_memory_equal(ljp_model_info(&model, "option.x")->value.data, "two", 3);
  assert_null(ljp_model_info(&model, "option.y"));
}

static void frames_are_named(void **state)
{
  (void)state;
  struct ljp_item e = {.what = LJP_REC_MODULE};
  e.u.module = (struct ljp_rec_module){.id = 3, .path = str("/usr/lib/lib.so")};
  ljp_model_define(&model, &e);
  e = (struct ljp_item){.what = LJP_REC_BUILTIN};
  e.u.builtin = (struct ljp_rec_builtin){17, str("string.gsub")};
  ljp_model_define(&model, &e);
  e = (struct ljp_item){.what = LJP_REC_TRACE};
  e.u.trace = (struct ljp_rec_trace){
      .id = 9, .number = 4, .proto = 1, .line = 12, .link_type = str("loop")};
  ljp_model_define(&model, &e);
  proto(1, "@app/main.lua", "f", 0);
  proto(2, "=stdin", "", 0);
  proto(3, "return 1\nreturn 2", "", LJP_PROTO_MAIN);
  node(1, 0, LJP_FRAME_LUA, 1, 13);
  node(2, 0, LJP_FRAME_LUA_INLINED, 2, 0);
  node(3, 0, LJP_FRAME_LUA, 3, 2);
  node(4, 0, LJP_FRAME_HOST, 3, 0xabc);
  node(5, 0, LJP_FRAME_HOST, 0, 0x7f00);
  node(6, 0, LJP_FRAME_BUILTIN, 0, 17);
  node(7, 0, LJP_FRAME_TRACE, 0, 9);
  e = (struct ljp_item){.what = LJP_REC_LABELS};
  e.u.labels = (struct ljp_rec_labels){5, {"route\0/a\0tenant\0x", 18}};
  ljp_model_define(&model, &e);
  node(8, 0, LJP_FRAME_CUT, 0, LJP_CUT_DEPTH);
  node(9, 0, LJP_FRAME_CUT, 0, 99);
  node(10, 0, LJP_FRAME_LABELS, 0, 5);
  assert_string_equal(text_of(1), "f app/main.lua:13");
  assert_string_equal(text_of(2), "function:10 stdin");
  assert_string_equal(text_of(3), "main chunk [string \"return 1...\"]:2");
  assert_string_equal(text_of(4), "lib.so+0xabc");
  assert_string_equal(text_of(5), "0x7f00");
  assert_string_equal(text_of(6), "string.gsub");
  assert_string_equal(text_of(7), "trace 4 f app/main.lua:12");
  assert_string_equal(text_of(8), "depth limit");
  assert_string_equal(text_of(9), "99");
  assert_string_equal(text_of(10), "route=\"/a\" tenant=\"x\"");
}

static void a_frame_whose_definition_is_missing_says_so(void **state)
{
  (void)state;
  node(1, 0, LJP_FRAME_LUA, 41, 13);
  node(2, 0, LJP_FRAME_HOST, 5, 0xabc);
  node(3, 0, LJP_FRAME_BUILTIN, 0, 17);
  node(4, 0, LJP_FRAME_LABELS, 0, 23);
  assert_string_equal(text_of(1), "unknown 41:13");
  assert_string_equal(text_of(2), "unknown 5+0xabc");
  assert_string_equal(text_of(3), "unknown:17");
  assert_string_equal(text_of(4), "unknown:23");
  model.lossy = true;
  assert_string_equal(text_of(1), "unknown (lost in a gap) 41:13");
}

static void a_frame_s_text_is_cut_to_the_room_there_is(void **state)
{
  (void)state;
  struct ljp_frame_refs view;
  char out[64];
  proto(1, "@app/main.lua", "a_function_with_a_name", 0);
  node(1, 0, LJP_FRAME_LUA, 1, 13);
  ljp_frame_resolve(&model, ljp_model_node(&model, 1), &view);
  for (size_t room = 1; room < sizeof out; room++) {
    memset(out, '#', sizeof out);
    size_t len = ljp_frame_text(&model, &view, out, room);
    assert_true(len < room);
    assert_int_equal(out[len], '\0');
    assert_int_equal(out[room], '#');
  }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
  const struct CMUnitTest tests[] = {
      TEST(a_stack_is_followed_from_its_leaf_to_its_root),
      TEST(a_stack_whose_ancestor_is_not_defined_is_lost_from_there),
      TEST(a_stack_ends_at_the_limit_of_frames),
      TEST(labels_do_not_count_among_the_frames),
      TEST(a_node_outside_the_epoch_s_range_is_refused),
      TEST(a_later_node_in_the_same_place_replaces_not_impersonates),
      TEST(definitions_of_one_epoch_before_still_fill_holes),
      TEST(many_definitions_are_found_each_by_kind_and_id),
      TEST(the_same_definition_again_takes_no_memory),
      TEST(info_is_found_by_key_and_the_last_value_holds),
      TEST(frames_are_named),
      TEST(a_frame_whose_definition_is_missing_says_so),
      TEST(a_frame_s_text_is_cut_to_the_room_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
