/* Sessions: lifecycle, producers, losses, rotation, libraries. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/push/event.h"
#include "test/stream/session_tools.h"

static void all_that_was_pushed_is_in_the_file(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("all")};
  struct ljp_session *s = started(&o);
  struct ljp_producer *cpu = producer(s, LJP_PRODUCER_CPU);
  struct ljp_producer *events = producer(s, LJP_PRODUCER_EVENTS);
  uint32_t vm;
  int error = 7;
  assert_int_equal(ljp_session_info(s, "option.interval_us", "1000"), LJP_OK);
  assert_int_equal(ljp_session_add_vm(s, 1, "vm", &vm), LJP_OK);
  for (uint32_t i = 0; i < 2003; i++)
    sample(cpu, i % 101);
  assert_true(ljp_push_gc(events, ljp_clock_ns(), vm, LJP_GC_ATOMIC, 17, 1));
  assert_true(ljp_push_mark(events, ljp_clock_ns(), 1, vm, 5, "here", 4));
  assert_int_equal(ljp_session_end_vm(s, vm), LJP_OK);
  assert_int_equal(ljp_session_stop(s, &error), LJP_OK);
  assert_int_equal(error, 0);
  assert_int_equal(ljp_session_state(s), LJP_SESSION_STOPPED);
  struct mini *m = read_back(in_dir("all"));
  assert_true(m->clean);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 2003);
  assert_int_equal(m->events[LJP_REC_GC], 1);
  assert_int_equal(m->events[LJP_REC_VM_CLOSE], 1);
  assert_string_equal(m->text, "here");
  assert_int_equal(m->pid, getpid());
  assert_true(m->records[LJP_REC_MODULE] >= 2);
  assert_true(m->records[LJP_REC_INFO] >= 4);
  mini_free(m);
  ljp_session_free(s);
}

static void what_was_pushed_just_before_stop_is_in_it(void **state)
{
  (void)state;
  /* Stop at any point of the writer's round. */
  for (unsigned i = 0; i < 150; i++) {
    struct ljp_session_options o = {.path = in_dir("late"), .flush_ms = 1};
    struct ljp_session *s = started(&o);
    usleep(i * 10);
    struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
    for (uint32_t k = 0; k < 7; k++)
      sample(p, k);
    uint64_t bytes = ljp_session_bytes(s); /* while the writer writes */
    assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
    assert_true(ljp_session_bytes(s) > bytes);
    ljp_session_free(s);
    struct mini *m = read_back(in_dir("late"));
    assert_int_equal(m->events[LJP_REC_SAMPLES], 7);
    mini_free(m);
  }
}

/* -- The wall clock is set while a stop waits ------------------------------ */
static atomic_bool clock_set;

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
/* What a thread has just read from the wall clock is 11 seconds too early. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
  int result = __real_clock_gettime(id, ts);
  if (id == CLOCK_REALTIME && atomic_load(&clock_set))
    ts->tv_sec -= 11;
  return result;
}

static size_t take_slowly(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  usleep(30000);
  return len;
}

static void a_step_of_the_wall_clock_does_not_end_a_stop(void **state)
{
  (void)state;
  struct ljp_session_options o = {.callback = take_slowly};
  struct ljp_session *s = started(&o);
  sample(producer(s, LJP_PRODUCER_CPU), 1);
  int error = 7;
  atomic_store(&clock_set, true);
  enum ljp_status status = ljp_session_stop(s, &error);
  atomic_store(&clock_set, false);
  assert_int_equal(status, LJP_OK);
  assert_int_equal(error, 0);
  assert_int_equal(ljp_session_state(s), LJP_SESSION_STOPPED);
  ljp_session_free(s);
}

static void misuse_is_refused_and_changes_nothing(void **state)
{
  (void)state;
  struct ljp_session *s = NULL;
  struct ljp_session_options o = {0};
  assert_int_equal(ljp_session_new(&s, &o), LJP_ERR_USE);
  o.path = in_dir("misuse");
  o.use_fd = true;
  assert_int_equal(ljp_session_new(&s, &o), LJP_ERR_USE);
  o.path = NULL;
  o.segment_bytes = 1000;
  assert_int_equal(ljp_session_new(&s, &o), LJP_ERR_USE);
  o = (struct ljp_session_options){.path = in_dir("misuse")};
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  struct ljp_producer *p;
  assert_int_equal(ljp_session_add_producer(s, LJP_PRODUCER_CPU, 0, 0, 0, &p),
                   LJP_ERR_RUN);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_ERR_RUN);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(ljp_session_start(s), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_ERR_RUN);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_ERR_RUN);
  assert_int_equal(ljp_session_add_producer(s, LJP_PRODUCER_CPU, 0, 0, 0, &p),
                   LJP_ERR_RUN);
  ljp_session_free(s);
}

static void two_sessions_at_once_do_not_mix(void **state)
{
  (void)state;
  struct ljp_session_options a = {.path = in_dir("one")}, b = {0};
  struct ljp_session *one = started(&a);
  char second[250];
  snprintf(second, sizeof second, "%s/two", dir);
  b.path = second;
  struct ljp_session *two = started(&b);
  struct ljp_producer *p = producer(one, LJP_PRODUCER_CPU);
  struct ljp_producer *q = producer(two, LJP_PRODUCER_CPU);
  for (uint32_t i = 0; i < 211; i++) {
    sample(p, 5);
    sample(q, 6);
    sample(q, 7);
  }
  assert_int_equal(ljp_session_stop(one, NULL), LJP_OK);
  sample(q, 8);
  assert_int_equal(ljp_session_stop(two, NULL), LJP_OK);
  struct mini *m = read_back(in_dir("one")), *n = read_back(second);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 211);
  assert_int_equal(n->events[LJP_REC_SAMPLES], 423);
  assert_true(m->stream != n->stream);
  assert_string_equal(m->proto_name[7], "f7");
  assert_string_equal(m->proto_name[8], "");
  assert_string_equal(n->proto_name[8], "f8");
  mini_free(m);
  mini_free(n);
  ljp_session_free(one);
  ljp_session_free(two);
}

static void segments_follow_each_other_and_old_ones_go(void **state)
{
  (void)state;
  struct ljp_session_options o = {
      .path = in_dir("seg"), .segment_bytes = 20011, .keep_segments = 3};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  for (uint32_t i = 0; i < 30011; i++) {
    sample(p, i % 997);
    if (i % 500 == 0)
      usleep(6000);
  }
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  char name[260];
  int last = 0;
  for (int i = 1; i < 1000; i++) {
    snprintf(name, sizeof name, "%s/seg.s%d", dir, i);
    if (access(name, F_OK) == 0)
      last = i;
  }
  assert_true(last >= 5);
  uint64_t next = 0;
  for (int i = last - 2; i <= last; i++) {
    snprintf(name, sizeof name, "%s/seg.s%d", dir, i);
    struct mini *m = read_back(name);
    assert_int_equal(m->segment, i);
    assert_int_equal(m->segment_end, i < last);
    assert_int_equal(m->clean, i == last);
    if (next)
      assert_int_equal(m->next_seq - m->blocks, next);
    next = m->next_seq;
    if (i == last)
      assert_int_equal(m->events[LJP_REC_SAMPLES], 30011);
    mini_free(m);
  }
  snprintf(name, sizeof name, "%s/seg.s%d", dir, last - 3);
  assert_int_equal(access(name, F_OK), -1);
  assert_int_equal(access(in_dir("seg"), F_OK), -1);
}

enum { MEM_EVENTS = 100003 };

struct order {
  uint64_t next, bad;
};

static void in_order(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct order *o = ctx;
  (void)m;
  if (e->tag != LJP_REC_MEM)
    return;
  uint64_t i = o->next++;
  o->bad += e->address != 0x10000 + i * 16 || e->size != i % 1009 ||
            (e->op == LJP_MEM_REALLOC) != (i % 7 == 0) ||
            (e->op == LJP_MEM_REALLOC && e->old_size != i % 11);
}

static void memory_events_wait_for_the_writer_and_none_is_lost(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("mem")};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p;
  unsigned depth = 0;
  assert_int_equal(
      ljp_session_add_producer(s, LJP_PRODUCER_MEMORY, 0, 0, 16384, &p),
      LJP_OK);
  for (uint64_t i = 0; i < MEM_EVENTS; i++) {
    uint64_t frame = ljp_frame_lua(LJP_FRAME_LUA, 0, (uint32_t)(i % 31) + 1, 1);
    const struct ljp_mem mem = {.op = i % 7 ? LJP_MEM_ALLOC : LJP_MEM_REALLOC,
                                .time_ns = ljp_clock_ns(),
                                .address = 0x10000 + i * 16,
                                .size = i % 1009,
                                .old_address = 64,
                                .old_size = i % 11};
    bool same = depth && i % 5;
    assert_true(
        ljp_push_mem_wait(p, &mem, same ? depth : 0, &frame, !same, &depth));
  }
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct order order = {0};
  struct mini *m = mini_new();
  m->on_event = in_order;
  m->ctx = &order;
  if (!mini_read_file(m, in_dir("mem"), NULL))
    fail_msg("%s", m->error);
  assert_int_equal(order.next, MEM_EVENTS);
  assert_int_equal(order.bad, 0);
  assert_int_equal(m->lost[LJP_LOSS_RING_FULL], 0);
  mini_free(m);
}

static void what_does_not_fit_is_counted_in_the_file(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("loss")};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p;
  assert_int_equal(
      ljp_session_add_producer(s, LJP_PRODUCER_CPU, 0, 0, 4096, &p), LJP_OK);
  uint64_t frames[50], refused = 0;
  for (uint32_t i = 0; i < 100003; i++) {
    for (uint32_t k = 0; k < 50; k++)
      frames[k] = ljp_frame_lua(LJP_FRAME_LUA, 0, i % 13 + 1, k);
    const struct ljp_sample one = {.time_ns = ljp_clock_ns()};
    refused += !ljp_push_sample(p, &one, frames, 50);
  }
  ljp_count_loss(p, LJP_LOSS_BUSY, 31);
  ljp_count_overrun(p, 37);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct mini *m = read_back(in_dir("loss"));
  assert_true(refused > 0);
  assert_int_equal(m->lost[LJP_LOSS_RING_FULL], refused);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 100003 - refused);
  assert_int_equal(m->lost[LJP_LOSS_BUSY], 31);
  assert_true(m->records[LJP_REC_OVERRUN] >= 1);
  mini_free(m);
}

static void a_retired_producer_is_drained_first(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("retire")};
  struct ljp_session *s = started(&o);
  for (uint32_t i = 0; i < 53; i++) {
    struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
    for (uint32_t k = 0; k < 19; k++)
      sample(p, i);
    ljp_producer_retire(p);
    ljp_session_end_thread(s, i + 1);
  }
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct mini *m = read_back(in_dir("retire"));
  assert_int_equal(m->events[LJP_REC_SAMPLES], 53 * 19);
  assert_int_equal(m->events[LJP_REC_THREAD_END], 53);
  mini_free(m);
}

static void time_without_a_sample_is_in_the_file(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("unsampled")};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p;
  uint32_t thread;
  assert_int_equal(ljp_session_add_thread(s, 4243, "worker", &thread), LJP_OK);
  assert_int_equal(ljp_session_add_sampling_producer(s, LJP_PRODUCER_CPU,
                                                     thread, 1009000,
                                                     LJP_TIMER_TICK, EPERM, &p),
                   LJP_OK);
  assert_int_equal(ljp_session_unsampled(s, thread, LJP_PRODUCER_CPU,
                                         LJP_UNSAMPLED_BLOCKED, 499979),
                   LJP_OK);
  assert_int_equal(ljp_session_note(s, LJP_NOTE_WARNING, "a note"), LJP_OK);
  assert_int_equal(ljp_session_elapsed(s, thread, 500009), LJP_OK);
  assert_int_equal(ljp_session_end_thread(s, thread), LJP_OK);
  assert_int_equal(ljp_session_unsampled(s, 0, LJP_PRODUCER_CPU,
                                         LJP_UNSAMPLED_NOT_FOUND, 37),
                   LJP_OK);
  assert_int_equal(ljp_session_cpu_time(s, 1000003), LJP_OK);
  assert_int_equal(ljp_session_cpu_time(s, 17), LJP_OK);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct mini *m = read_back(in_dir("unsampled"));
  assert_int_equal(m->events[LJP_REC_CPU_TIME], 2);
  assert_int_equal(m->cpu_ns, 1000020);
  assert_int_equal(m->events[LJP_REC_ELAPSED], 1);
  assert_int_equal(m->elapsed_ns, 500009);
  assert_int_equal(m->events[LJP_REC_UNSAMPLED], 2);
  assert_int_equal(m->events[LJP_REC_NOTE], 1);
  assert_int_equal(m->unsampled[LJP_UNSAMPLED_BLOCKED], 499979);
  assert_int_equal(m->unsampled[LJP_UNSAMPLED_NOT_FOUND], 37);
  mini_free(m);
}

/* What a failed session refuses, it refuses with the reason of its failure. */
static void a_failed_session_says_why_it_takes_nothing_more(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("failed"), .flush_ms = 10};
  struct ljp_session *s = started(&o);
  struct rlimit before, little;
  struct ljp_producer *p;
  uint32_t thread;
  assert_int_equal(ljp_session_error(s), 0);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  little = (struct rlimit){1, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
  assert_int_equal(ljp_session_info(s, "key", "value"), LJP_OK);
  while (ljp_session_state(s) == LJP_SESSION_RUNNING)
    usleep(1000);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(ljp_session_state(s), LJP_SESSION_FAILED);
  assert_int_equal(ljp_session_error(s), EFBIG);
  assert_int_equal(ljp_session_add_thread(s, 7, "late", &thread), LJP_ERR_IO);
  assert_int_equal(
      ljp_session_add_producer(s, LJP_PRODUCER_CPU, 0, 1000, 0, &p),
      LJP_ERR_IO);
  ljp_session_free(s);
}

struct libs {
  uint64_t in_a, in_b, other, unknown;
};

static void count_libs(void *ctx, struct mini *m, const struct mini_event *e)
{
  struct libs *l = ctx;
  if (e->tag != LJP_REC_SAMPLES)
    return;
  const struct mini_node *node = &m->nodes[e->stack];
  const char *name = m->module_path[node->first % 4096];
  if (!node->first)
    l->unknown++;
  else if (strstr(name, "loadable_a"))
    l->in_a++;
  else if (strstr(name, "loadable_b"))
    l->in_b++;
  else
    l->other++;
}

static void count_round(void *ctx)
{
  atomic_fetch_add((atomic_uint *)ctx, 1);
}

/* When a second round from now on begins, the first has ended. */
static void writer_looks(atomic_uint *rounds)
{
  for (unsigned from = atomic_load(rounds); atomic_load(rounds) - from < 2;)
    usleep(500);
}

static void libraries_that_come_and_go_are_told_apart(void **state)
{
  (void)state;
  atomic_uint rounds = 0;
  struct ljp_session_options o = {.path = in_dir("libs"),
                                  .flush_ms = 1,
                                  .round = count_round,
                                  .round_ctx = &rounds};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  void *addresses[2] = {0};
  for (int i = 0; i < 40; i++) {
    void *lib = dlopen(i % 2 ? LJP_LOADABLE_B : LJP_LOADABLE_A, RTLD_NOW);
    assert_non_null(lib);
    void *at = dlsym(lib, i % 2 ? "loadable_b" : "loadable_a");
    assert_non_null(at);
    addresses[i % 2] = at;
    writer_looks(&rounds);
    for (int k = 0; k < 11; k++) {
      uint64_t frame = ljp_frame(LJP_FRAME_HOST, 0, (uintptr_t)at);
      const struct ljp_sample one = {.time_ns = ljp_clock_ns()};
      assert_true(ljp_push_sample(p, &one, &frame, 1));
    }
    if (i % 4) /* Otherwise the writer finds both changes in one look. */
      writer_looks(&rounds);
    dlclose(lib);
  }
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct libs libs = {0};
  struct mini *m = mini_new();
  m->on_event = count_libs;
  m->ctx = &libs;
  if (!mini_read_file(m, in_dir("libs"), NULL))
    fail_msg("%s", m->error);
  /* Never the wrong module; unknown only if there was no look in between. */
  assert_int_equal(libs.other, 0);
  assert_true(libs.in_a <= 220 && libs.in_b <= 220);
  assert_int_equal(libs.in_a + libs.in_b + libs.unknown, 440);
  assert_true(libs.in_a + libs.in_b > 220);
  assert_true(m->events[LJP_REC_MODULE_GONE] >= 20);
  if (addresses[0] != addresses[1])
    print_message("note: the two were never at the same place\n");
  mini_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_that_was_pushed_is_in_the_file),
      cmocka_unit_test(what_was_pushed_just_before_stop_is_in_it),
      cmocka_unit_test(a_step_of_the_wall_clock_does_not_end_a_stop),
      cmocka_unit_test(misuse_is_refused_and_changes_nothing),
      cmocka_unit_test(two_sessions_at_once_do_not_mix),
      cmocka_unit_test(segments_follow_each_other_and_old_ones_go),
      cmocka_unit_test(memory_events_wait_for_the_writer_and_none_is_lost),
      cmocka_unit_test(what_does_not_fit_is_counted_in_the_file),
      cmocka_unit_test(a_retired_producer_is_drained_first),
      cmocka_unit_test(time_without_a_sample_is_in_the_file),
      cmocka_unit_test(a_failed_session_says_why_it_takes_nothing_more),
      cmocka_unit_test(libraries_that_come_and_go_are_told_apart),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
