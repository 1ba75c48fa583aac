/*
** The program is killed, its disk is full, its main thread leaves, it gets a
** storm of signals, or a thread ends at a bad moment: the program is unharmed
** and the file can be read.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/stream/harsh.h"

/* -- kill -9 --------------------------------------------------------------- */

static void load_until_killed(void *ctx)
{
  uint64_t *last_push = ctx;
  struct ljp_session_options o = {.path = harsh_last_path};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (uint64_t i = 0;; i++) {
    harsh_push(p, i);
    __atomic_store_n(last_push, ljp_clock_ns(), __ATOMIC_RELAXED);
    if (i % 16 == 0)
      usleep(100);
  }
}

static void killed_under_load_it_lacks_at_most_one_interval(void **state)
{
  (void)state;
  for (int round = 0; round < 3; round++) {
    uint64_t *last_push = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    harsh_path("killed");
    pid_t pid = fork();
    if (pid == 0) {
      load_until_killed(last_push);
      _exit(0);
    }
    usleep(700000 + 61000 * (unsigned)round);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    struct mini *m = mini_new();
    uint64_t bytes;
    if (!mini_read_file(m, harsh_last_path, &bytes))
      fail_msg("%s", m->error);
    assert_true(m->events[LJP_REC_SAMPLES] > 100);
    assert_false(m->clean);
    /* The interval is 250 ms, and a busy machine gets 150 ms more. The kill may
    ** come just before the last push is noted. */
    if (*last_push > m->last_time + 400000000)
      fail_msg("%llu ms are missing",
               (unsigned long long)(*last_push - m->last_time) / 1000000);
    mini_free(m);
    munmap(last_push, 4096);
  }
}

/* -- Full disk ------------------------------------------------------------- */

static void fill_a_small_disk(void *ctx)
{
  (void)ctx;
  int error = 0;
  if (unshare(CLONE_NEWNS) ||
      mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
    _exit(77);
  if (mount("tmpfs", harsh_dir, "tmpfs", 0, "size=1m"))
    _exit(77);
  struct ljp_session_options o = {.path = harsh_path("full"), .flush_ms = 10};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (uint64_t i = 0;
       i < 3000000 && ljp_session_state(s) == LJP_SESSION_RUNNING; i++) {
    harsh_push(p, i * 7919);
    if (i % 64 == 0)
      usleep(100);
  }
  if (ljp_session_state(s) != LJP_SESSION_FAILED)
    _exit(1);
  if (harsh_push(p, 1))
    _exit(2);
  if (ljp_session_stop(s, &error) != LJP_ERR_IO || error != ENOSPC)
    _exit(3);
  ljp_session_free(s);
  struct mini *m = mini_new();
  uint64_t bytes = 0;
  if (!mini_read_file(m, harsh_last_path, &bytes)) {
    fprintf(stderr, "%s\n", m->error);
    _exit(4);
  }
  /* The file is cut to its last whole block, which may be an END that fitted.
  ** */
  if (m->end_offset != bytes)
    _exit(5);
  if (m->events[LJP_REC_SAMPLES] < 1000 || bytes < 900000)
    _exit(6);
  if (m->clean && (m->end_status != LJP_ERR_IO || m->end_errno != ENOSPC))
    _exit(7);
}

static void on_a_full_disk_the_program_lives_and_the_file_reads(void **state)
{
  (void)state;
  int status = harsh_child(fill_a_small_disk, NULL);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("SKIP: a mount namespace is not permitted here\n");
    skip();
  }
  assert_int_equal(status, 0);
}

/* -- The host leaves ------------------------------------------------------- */

static void leave_the_main_thread(void *ctx)
{
  static struct ljp_session
      *s; /* Static, so that it is no leak when the thread's stack goes. */
  (void)ctx;
  struct ljp_session_options o = {.path = harsh_path("left"), .flush_ms = 50};
  s = harsh_start(&o, LJP_OK);
  for (uint64_t i = 0; i < 101; i++)
    harsh_push(harsh_producer(s, 0), i);
  alarm(20);
  pthread_exit(NULL);
}

static void the_writer_does_not_keep_a_deserted_process_alive(void **state)
{
  (void)state;
  harsh_skip_under_tsan();
#ifdef __SANITIZE_ADDRESS__
  skip(); /* The main thread's stack goes, and with it cmocka's pointers. */
#endif
  assert_int_equal(harsh_child(leave_the_main_thread, NULL), 0);
  struct mini *m = mini_new();
  assert_true(mini_read_file(m, harsh_path("left"), NULL));
  assert_true(m->clean);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 101);
  mini_free(m);
}

static void just_exit(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {.path = harsh_path("exited"), .flush_ms = 30};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (uint64_t i = 0; i < 101; i++)
    harsh_push(p, i);
  usleep(200000);
  exit(23);
}

static void a_program_that_just_exits_is_not_held_up(void **state)
{
  (void)state;
  int status = harsh_child(just_exit, NULL);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 23);
  struct mini *m = mini_new();
  assert_true(mini_read_file(m, harsh_path("exited"), NULL));
  assert_int_equal(m->events[LJP_REC_SAMPLES], 101);
  mini_free(m);
}

/* -- A storm of signals ---------------------------------------------------- */

enum { STORM_THREADS = 8 };

struct storm_thread {
  pthread_t thread;
  struct ljp_producer *signal, *code;
  _Atomic uint64_t signals, signals_in, events_in, events;
};

static __thread struct storm_thread *storm_self;
static _Atomic bool storm_over;

static void on_storm(int sig)
{
  (void)sig;
  struct storm_thread *t = storm_self;
  if (!t)
    return;
  uint64_t i = atomic_fetch_add(&t->signals, 1);
  if (harsh_push(t->signal, i))
    atomic_fetch_add(&t->signals_in, 1);
}

static void *storm_main(void *arg)
{
  struct storm_thread *t = arg;
  storm_self = t;
  for (uint64_t i = 0; !atomic_load(&storm_over); i++) {
    const struct ljp_mem m = {.op = LJP_MEM_ALLOC,
                              .time_ns = ljp_clock_ns(),
                              .address = i * 16,
                              .size = i % 101};
    uint64_t frame = ljp_frame_lua(LJP_FRAME_LUA, 0, (uint32_t)(i % 7 + 1), 1);
    atomic_fetch_add(&t->events, 1);
    if (ljp_push_mem(t->code, &m, &frame, 1))
      atomic_fetch_add(&t->events_in, 1);
    if (i % 50 == 0)
      usleep(20);
  }
  storm_self = NULL;
  return NULL;
}

static void in_a_storm_every_event_is_written_or_counted(void **state)
{
  (void)state;
  static struct storm_thread threads[STORM_THREADS];
  struct sigaction action = {.sa_handler = on_storm, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  struct ljp_session_options o = {.path = harsh_path("storm"), .flush_ms = 10};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  for (int i = 0; i < STORM_THREADS; i++) {
    threads[i].signal = harsh_producer(s, 0);
    assert_int_equal(ljp_session_add_producer(s, LJP_PRODUCER_MEMORY, 0, 0,
                                              16384, &threads[i].code),
                     LJP_OK);
    pthread_create(&threads[i].thread, NULL, storm_main, &threads[i]);
  }
  uint64_t until = ljp_clock_ns() + 2000000000u;
  for (unsigned i = 0; ljp_clock_ns() < until; i++)
    pthread_kill(threads[i % STORM_THREADS].thread, SIGUSR1);
  atomic_store(&storm_over, true);
  uint64_t signals = 0, signals_in = 0, events = 0, events_in = 0;
  for (int i = 0; i < STORM_THREADS; i++) {
    pthread_join(threads[i].thread, NULL);
    signals += threads[i].signals;
    signals_in += threads[i].signals_in;
    events += threads[i].events;
    events_in += threads[i].events_in;
    if (i % 2) {
      ljp_producer_retire(threads[i].signal);
      ljp_producer_retire(threads[i].code);
    }
  }
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct mini *m = mini_new();
  if (!mini_read_file(m, harsh_last_path, NULL))
    fail_msg("%s", m->error);
  assert_true(signals > 100);
  assert_int_equal(m->events[LJP_REC_SAMPLES], signals_in);
  assert_int_equal(m->events[LJP_REC_MEM], events_in);
  uint64_t lost = 0;
  for (int i = 0; i < 16; i++)
    lost += m->lost[i];
  assert_int_equal(signals + events - signals_in - events_in, lost);
  mini_free(m);
}

/* -- A thread ends while the writer does ----------------------------------- */

static _Atomic bool ending, retired;

static void wait_until_retired(void *ctx)
{
  (void)ctx;
  ending = true;
  while (!retired)
    usleep(100);
}

static void *stop_session(void *s)
{
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  return NULL;
}

/* The writer also ends when it has failed, while the program goes on. */
static void a_producer_is_retired_while_the_writer_ends(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = harsh_path("ending"),
                                  .describe = known()};
  struct ljp_session *s;
  pthread_t thread;
  o.describe.end = wait_until_retired;
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (uint64_t i = 0; i < 19; i++)
    assert_true(harsh_push(p, i));
  ljp_count_loss(p, LJP_LOSS_BUSY, 17);
  assert_int_equal(pthread_create(&thread, NULL, stop_session, s), 0);
  while (!ending)
    usleep(100);
  ljp_count_loss(p, LJP_LOSS_BUSY, 23);
  ljp_producer_retire(p);
  retired = true;
  pthread_join(thread, NULL);
  ljp_session_free(s);
  struct mini *m = mini_new();
  if (!mini_read_file(m, harsh_last_path, NULL))
    fail_msg("%s", m->error);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 19);
  assert_int_equal(m->lost[LJP_LOSS_BUSY], 40);
  mini_free(m);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed_under_load_it_lacks_at_most_one_interval),
      cmocka_unit_test(on_a_full_disk_the_program_lives_and_the_file_reads),
      cmocka_unit_test(the_writer_does_not_keep_a_deserted_process_alive),
      cmocka_unit_test(a_program_that_just_exits_is_not_held_up),
      cmocka_unit_test(in_a_storm_every_event_is_written_or_counted),
      cmocka_unit_test(a_producer_is_retired_while_the_writer_ends),
  };
  return cmocka_run_group_tests(tests, harsh_make_dir, harsh_remove_dir);
}
