/*
** The golden streams: the writer still writes the files of test/data/ byte for
** byte, and they keep every rule that the mini reader checks.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/stream/mini_reader.h"

static char dir[] = "/tmp/ljp-golden-XXXXXX";

static int generate(void **state)
{
  (void)state;
  char command[600];
  if (!mkdtemp(dir))
    return -1;
  snprintf(command, sizeof command, "%s %s", LJP_GOLDEN_PROGRAM, dir);
  return system(command);
}

static int clean(void **state)
{
  (void)state;
  char command[600];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

static struct mini *read_golden(const char *name, bool whole)
{
  struct mini *m = mini_new();
  char path[600];
  uint64_t bytes;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  if (!mini_read_file(m, path, &bytes))
    fail_msg("%s: %s", name, m->error);
  if (whole)
    assert_int_equal(m->end_offset, bytes);
  return m;
}

static void the_kept_files_are_what_is_written(void **state)
{
  (void)state;
#ifdef LJP_DEBUG
  skip(); /* Debug builds have other block sizes. */
#endif
  static const char *const names[] = {
      /* Not the compressed stream: its bytes depend on zstd's version. */
      "every-record.ljp", "killed.ljp",      "rotated.ljp",   "rotated.ljp.s1",
      "rotated.ljp.s2",   "small-table.ljp", "vm-closed.ljp", "heap.ljp",
      "held.ljp",         "held.ljp.s1"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char command[1200];
    snprintf(command, sizeof command, "cmp %s/%s %s/test/data/%s", dir,
             names[i], LJP_SOURCE_DIR, names[i]);
    assert_int_equal(system(command), 0);
  }
}

static void every_record_type_is_in_it_and_the_totals_agree(void **state)
{
  (void)state;
  struct mini *m = read_golden("every-record.ljp", true);
#define LJP_X(name, number, text, event)                                       \
  if (number < 64 && !m->records[number] && number != LJP_REC_SEGMENT_END &&   \
      number != LJP_REC_SYMBOL)                                                \
    fail_msg("no %s", text);
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  assert_true(m->clean);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 4 * 53);
  assert_int_equal(m->events[LJP_REC_MEM], 4 * 97);
  assert_int_equal(m->events[LJP_REC_MARK], 4);
  assert_int_equal(m->events[LJP_REC_TRACE_EVENT], 4 * 7);
  assert_int_equal(m->lost[LJP_LOSS_THROTTLE], 23);
  assert_int_equal(m->lost[LJP_LOSS_RING_FULL], 29);
  assert_int_equal(m->pid, 4242);
  assert_true(m->key_blocks >= 2);
  assert_string_equal(m->text, "request \"a\"\n");
  mini_free(m);
}

static void compressed_it_says_the_same(void **state)
{
  (void)state;
#ifdef LJP_HAVE_ZSTD
  struct mini *m = read_golden("every-record.ljp", true);
  struct mini *z = read_golden("every-record-zstd.ljp", true);
  assert_true(z->zstd_blocks > 3);
  assert_int_equal(z->raw_bytes, m->raw_bytes);
  assert_true(z->stored_bytes < m->stored_bytes * 7 / 10);
  assert_memory_equal(z->events, m->events, sizeof m->events);
  mini_free(m);
  mini_free(z);
#else
  skip();
#endif
}

struct seen_modules {
  unsigned old, new, unknown;
};

static void see_module(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct seen_modules *seen = ctx;
  const struct mini_node *stack[MINI_FRAMES];
  if (e->tag != LJP_REC_SAMPLES || !e->stack)
    return;
  assert_true(mini_stack(m, e->stack, stack) >= 9);
  unsigned i = stack[0]->kind == LJP_FRAME_PROFILER;
  assert_int_equal(stack[i]->kind, LJP_FRAME_HOST);
  seen->old += stack[i]->first == 2;
  seen->new += stack[i]->first == 3;
  seen->unknown += stack[i]->first == 0;
  if (stack[0]->first)
    assert_int_equal(stack[0]->second % 16, 0);
}

static void two_libraries_at_one_place_are_not_mixed(void **state)
{
  (void)state;
  struct seen_modules seen = {0};
  struct mini *m = mini_new();
  char path[600];
  snprintf(path, sizeof path, "%s/every-record.ljp", dir);
  m->on_event = see_module;
  m->ctx = &seen;
  assert_true(mini_read_file(m, path, NULL));
  /* 53 samples in each round, 4 of them without a stack. */
  assert_int_equal(seen.old, 2 * 49);
  /* At the time of the look, either module may have been there. */
  assert_int_equal(seen.unknown, 1);
  assert_int_equal(seen.new, 2 * 49 - 1);
  mini_free(m);
}

static void without_an_end_it_reads_to_the_last_block(void **state)
{
  (void)state;
  struct mini *m = read_golden("killed.ljp", true);
  assert_false(m->clean);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 7 * 11);
  mini_free(m);
}

static void a_closed_vm_is_in_it(void **state)
{
  (void)state;
  struct mini *m = read_golden("vm-closed.ljp", true);
  assert_true(m->clean);
  assert_int_equal(m->events[LJP_REC_MEM], 43);
  assert_int_equal(m->events[LJP_REC_GC], 2);
  assert_int_equal(m->events[LJP_REC_VM_CLOSE], 1);
  mini_free(m);
}

static void each_segment_reads_alone(void **state)
{
  (void)state;
  static const char *const names[] = {"rotated.ljp", "rotated.ljp.s1",
                                      "rotated.ljp.s2"};
  uint64_t next = 0;
  for (uint64_t i = 0; i < 3; i++) {
    struct mini *m = read_golden(names[i], true);
    assert_int_equal(m->segment, i);
    assert_int_equal(m->next_seq - m->blocks, next);
    assert_int_equal(m->segment_end, i < 2);
    assert_int_equal(m->clean, i == 2);
    if (i == 2) {
      assert_int_equal(m->events[LJP_REC_SAMPLES], 7 * 17);
      assert_int_equal(m->events[LJP_REC_MEM], 7 * 13);
    }
    next = m->next_seq;
    mini_free(m);
  }
}

static void a_full_stack_table_costs_epochs_not_samples(void **state)
{
  (void)state;
  struct mini *m = read_golden("small-table.ljp", true);
  assert_true(m->key_blocks > 3);
  assert_true(m->max_node > 64);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 97);
  mini_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_kept_files_are_what_is_written),
      cmocka_unit_test(every_record_type_is_in_it_and_the_totals_agree),
      cmocka_unit_test(compressed_it_says_the_same),
      cmocka_unit_test(two_libraries_at_one_place_are_not_mixed),
      cmocka_unit_test(without_an_end_it_reads_to_the_last_block),
      cmocka_unit_test(a_closed_vm_is_in_it),
      cmocka_unit_test(each_segment_reads_alone),
      cmocka_unit_test(a_full_stack_table_costs_epochs_not_samples),
  };
  return cmocka_run_group_tests(tests, generate, clean);
}
