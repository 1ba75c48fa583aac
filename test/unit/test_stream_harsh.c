/*
** The program is killed, its disk is full, it forks, execs, runs out of memory,
** or its main thread leaves: the program is unharmed, the file reads.
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

static char dir[] = "/tmp/ljp-harsh-XXXXXX";
static char path[200];

static const char *in_dir(const char *name)
{
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static int make_dir(void **state)
{
  (void)state;
  return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

/* -- kill -9 --------------------------------------------------------------- */

static void load_until_killed(void *ctx)
{
  uint64_t *last_push = ctx;
  struct ljp_session_options o = {.path = path};
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
    in_dir("killed");
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
    if (!mini_read_file(m, path, &bytes))
      fail_msg("%s", m->error);
    assert_true(m->events[LJP_REC_SAMPLES] > 100);
    assert_false(m->clean);
    /* The interval is 250 ms; 150 for a busy machine. The kill may fall just
       before the last push is noted. */
    if (*last_push > m->last_time + 400000000)
      fail_msg("%llu ms are missing",
               (unsigned long long)(*last_push - m->last_time) / 1000000);
    mini_free(m);
    munmap(last_push, 4096);
  }
}

/* -- Full disk --------------------------------------------------------------*/

static void fill_a_small_disk(void *ctx)
{
  (void)ctx;
  int error = 0;
  if (unshare(CLONE_NEWNS) ||
      mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
    _exit(77);
  if (mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
    _exit(77);
  struct ljp_session_options o = {.path = in_dir("full"), .flush_ms = 10};
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
  if (!mini_read_file(m, path, &bytes)) {
    fprintf(stderr, "%s\n", m->error);
    _exit(4);
  }
  /* Cut to the last whole block, which may be an END that still fitted. */
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

/* TSan itself cannot start threads in a fork's child, and has one of its own.
 */
static void not_under_tsan(void)
{
#ifdef __SANITIZE_THREAD__
  skip();
#endif
}

/* GCC 12's address sanitizer takes no lock of its own over fork(): a thread
** that ends in the child may wait for ever for one that was held then. */
static void not_under_asan(void)
{
#ifdef __SANITIZE_ADDRESS__
  skip();
#endif
}

/* -- fork -------------------------------------------------------------------*/

static volatile int fork_calls, fork_recording;

static void on_fork(void *ctx, bool recording)
{
  (void)ctx;
  fork_calls++;
  fork_recording = recording;
}

struct fork_case {
  bool record;
  const char *name;
};

static void fork_under_load(void *ctx)
{
  const struct fork_case *c = ctx;
  struct ljp_session_options o = {.path = in_dir(c->name),
                                  .flush_ms = 20,
                                  .record_child = c->record,
                                  .fork_child = on_fork};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  uint32_t thread, vm;
  ljp_session_add_thread(s, gettid(), "main", &thread);
  ljp_session_add_vm(s, thread, "vm", &vm);
  struct ljp_producer *p = harsh_producer(s, thread);
  for (uint64_t i = 0; i < 1009; i++)
    while (!harsh_push(p, i))
      usleep(100);
  pid_t pid = fork();
  if (pid == 0) {
    if (fork_calls != 1 || fork_recording != c->record)
      _exit(2);
    if (ljp_producer_active(p) != c->record)
      _exit(3);
    for (uint64_t i = 0; i < 211; i++)
      harsh_push(p, i);
    usleep(60000);
    int error = 0;
    if (ljp_session_stop(s, &error) || error)
      _exit(4);
    ljp_producer_retire(p);
    _exit(0);
  }
  for (uint64_t i = 0; i < 503; i++)
    while (!harsh_push(p, i))
      usleep(100);
  int status;
  waitpid(pid, &status, 0);
  if (status)
    _exit(WIFEXITED(status) ? 10 + WEXITSTATUS(status) : 9);
  if (fork_calls || ljp_session_stop(s, NULL))
    _exit(5);
  char child[300];
  snprintf(child, sizeof child, "%s.%d", path, pid);
  struct mini *m = mini_new();
  if (!mini_read_file(m, path, NULL) || !m->clean ||
      m->events[LJP_REC_SAMPLES] != 1009 + 503) {
    fprintf(stderr, "parent: %s\n", m->error);
    _exit(6);
  }
  if (!c->record)
    _exit(access(child, F_OK) == 0 ? 7 : 0);
  struct mini *n = mini_new();
  if (!mini_read_file(n, child, NULL) || !n->clean ||
      n->events[LJP_REC_SAMPLES] != 211 || n->pid != (uint64_t)pid ||
      n->stream == m->stream) {
    fprintf(stderr, "child: %s, %llu samples\n", n->error,
            (unsigned long long)n->events[LJP_REC_SAMPLES]);
    _exit(8);
  }
}

static void a_forks_child_records_into_a_file_of_its_own(void **state)
{
  (void)state;
  not_under_tsan();
  struct fork_case c = {true, "forked"};
  assert_int_equal(harsh_child(fork_under_load, &c), 0);
}

static void a_forks_child_does_not_record_unless_asked(void **state)
{
  (void)state;
  struct fork_case c = {false, "unforked"};
  assert_int_equal(harsh_child(fork_under_load, &c), 0);
}

static void fork_and_exec(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {
      .path = in_dir("exec"), .flush_ms = 200, .record_child = true};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (int round = 0; round < 20; round++) {
    pid_t pid = fork();
    if (pid == 0) {
      char script[300];
      /* No descriptor of ours is open in the new program. */
      snprintf(script, sizeof script, "! ls -l /proc/self/fd | grep -q %s",
               dir);
      execl("/bin/sh", "sh", "-c", script, NULL);
      _exit(9);
    }
    for (uint64_t i = 0; i < 53; i++)
      while (!harsh_push(p, i))
        usleep(100);
    int status;
    waitpid(pid, &status, 0);
    if (status)
      _exit(1);
  }
  if (ljp_session_stop(s, NULL))
    _exit(2);
  struct mini *m = mini_new();
  if (!mini_read_file(m, path, NULL) || m->events[LJP_REC_SAMPLES] != 20 * 53)
    _exit(3);
  char command[300];
  snprintf(command, sizeof command, "test $(ls %s/exec* | wc -l) = 1", dir);
  if (system(command))
    _exit(4);
}

static void fork_and_exec_leaves_no_trace(void **state)
{
  (void)state;
  not_under_tsan();
  assert_int_equal(harsh_child(fork_and_exec, NULL), 0);
}

static void *push_from_a_thread(void *arg)
{
  for (uint64_t i = 0; i < 100000; i++)
    harsh_push(arg, i);
  return NULL;
}

static void fork_often(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {
      .path = in_dir("often"), .flush_ms = 1, .record_child = true};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  pthread_t threads[2];
  alarm(60); /* A deadlock ends the test. */
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, push_from_a_thread, harsh_producer(s, 0));
  for (int round = 0; round < 40; round++) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      usleep(3000);
      _exit(ljp_session_stop(s, NULL));
    }
    int status;
    waitpid(pid, &status, 0);
    if (status) {
      fprintf(stderr, "round %d: the child ended with 0x%x\n", round,
              (unsigned)status);
      _exit(1);
    }
  }
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  if (ljp_session_stop(s, NULL))
    _exit(2);
  struct mini *m = mini_new();
  if (!mini_read_file(m, path, NULL) || !m->clean ||
      m->events[LJP_REC_SAMPLES] + m->lost[LJP_LOSS_RING_FULL] != 200000) {
    fprintf(stderr, "%s\n", m->error);
    _exit(3);
  }
}

static void forking_often_under_load_never_deadlocks(void **state)
{
  (void)state;
  not_under_tsan();
  not_under_asan();
  assert_int_equal(harsh_child(fork_often, NULL), 0);
}

/* -- The host leaves --------------------------------------------------------*/

static void leave_the_main_thread(void *ctx)
{
  static struct ljp_session *s; /* No leak: the thread's stack goes. */
  (void)ctx;
  struct ljp_session_options o = {.path = in_dir("left"), .flush_ms = 50};
  s = harsh_start(&o, LJP_OK);
  for (uint64_t i = 0; i < 101; i++)
    harsh_push(harsh_producer(s, 0), i);
  alarm(20);
  pthread_exit(NULL);
}

static void the_writer_does_not_keep_a_deserted_process_alive(void **state)
{
  (void)state;
  not_under_tsan();
#ifdef __SANITIZE_ADDRESS__
  skip(); /* The main thread's stack held what cmocka allocated: a leak. */
#endif
  assert_int_equal(harsh_child(leave_the_main_thread, NULL), 0);
  struct mini *m = mini_new();
  assert_true(mini_read_file(m, in_dir("left"), NULL));
  assert_true(m->clean);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 101);
  mini_free(m);
}

static void just_exit(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {.path = in_dir("exited"), .flush_ms = 30};
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
  assert_true(mini_read_file(m, in_dir("exited"), NULL));
  assert_int_equal(m->events[LJP_REC_SAMPLES], 101);
  mini_free(m);
}

/* -- A storm of signals
 * ------------------------------------------------------*/

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
  struct ljp_session_options o = {.path = in_dir("storm"), .flush_ms = 10};
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
  if (!mini_read_file(m, path, NULL))
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

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed_under_load_it_lacks_at_most_one_interval),
      cmocka_unit_test(on_a_full_disk_the_program_lives_and_the_file_reads),
      cmocka_unit_test(a_forks_child_records_into_a_file_of_its_own),
      cmocka_unit_test(a_forks_child_does_not_record_unless_asked),
      cmocka_unit_test(fork_and_exec_leaves_no_trace),
      cmocka_unit_test(forking_often_under_load_never_deadlocks),
      cmocka_unit_test(the_writer_does_not_keep_a_deserted_process_alive),
      cmocka_unit_test(a_program_that_just_exits_is_not_held_up),
      cmocka_unit_test(in_a_storm_every_event_is_written_or_counted),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
