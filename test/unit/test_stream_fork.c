/* The program forks, and may execute another program: each process has a file
** of its own, and neither hangs. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <setjmp.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/stream/harsh.h"

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
  struct ljp_session_options o = {.path = harsh_path(c->name),
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
  snprintf(child, sizeof child, "%s.%d", harsh_last_path, pid);
  struct mini *m = mini_new();
  if (!mini_read_file(m, harsh_last_path, NULL) || !m->clean ||
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
  harsh_skip_under_tsan();
  harsh_skip_under_asan();
  struct fork_case c = {true, "forked"};
  assert_int_equal(harsh_child(fork_under_load, &c), 0);
}

static void a_forks_child_does_not_record_unless_asked(void **state)
{
  (void)state;
  struct fork_case c = {false, "unforked"};
  assert_int_equal(harsh_child(fork_under_load, &c), 0);
}

/* How many of the ring's pages belong to this process alone (bits 56 and 63 of Linux's
** pagemap). */
static size_t own_pages(const struct ljp_producer *p, size_t *all)
{
  enum { PAGE = 4096 };
  const uint64_t own = UINT64_C(1) << 63 | UINT64_C(1) << 56;
  size_t count = 0;
  int fd = open("/proc/self/pagemap", O_RDONLY);
  *all = p->ring.capacity / PAGE;
  for (size_t i = 0; i < *all; i++) {
    uint64_t entry = 0, page = (uintptr_t)p->ring.data / PAGE + i;
    if (pread(fd, &entry, sizeof entry, (off_t)(page * sizeof entry)) !=
        (ssize_t)sizeof entry)
      _exit(20);
    count += (entry & own) == own;
  }
  close(fd);
  return count;
}

static void fork_and_look_at_pages(void *ctx)
{
  (void)ctx;
  size_t all;
  struct ljp_session_options o = {
      .path = harsh_path("pages"), .flush_ms = 200, .record_child = true};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 100 && own_pages(p, &all) < all; i++)
      usleep(100000);
    if (own_pages(p, &all) < all)
      _exit(1);
    _exit(ljp_session_stop(s, NULL) ? 2 : 0);
  }
  /* The parent keeps its pages meanwhile. */
  int status;
  waitpid(pid, &status, 0);
  ljp_session_stop(s, NULL);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
}

static void a_forks_child_gets_pages_of_its_own(void **state)
{
  (void)state;
  harsh_skip_under_tsan();
  harsh_skip_under_asan();
  if (madvise(NULL, 0, 23 /* MADV_POPULATE_WRITE, since Linux 5.14 */) ||
      access("/proc/self/pagemap", R_OK))
    skip();
  assert_int_equal(harsh_child(fork_and_look_at_pages, NULL), 0);
}

static void not_before_begin(void *ctx, struct mini *m,
                             const struct mini_event *e)
{
  unsigned *early = ctx;
  *early += e->tag == LJP_REC_SAMPLES && e->time_ns < m->begin_time;
}

/* The writer of a child waits a flush interval before it makes the file. */
static void fork_and_push(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {
      .path = harsh_path("time"), .flush_ms = 100, .record_child = true};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  uint64_t before = ljp_clock_ns();
  pid_t pid = fork();
  if (pid == 0) {
    for (uint64_t i = 0; i < 211; i++)
      harsh_push(p, i);
    usleep(30000);
    _exit(ljp_session_stop(s, NULL));
  }
  int status;
  waitpid(pid, &status, 0);
  if (status || ljp_session_stop(s, NULL))
    _exit(1);
  char child[300];
  unsigned early = 0;
  snprintf(child, sizeof child, "%s.%d", harsh_last_path, pid);
  struct mini *m = mini_new();
  m->on_event = not_before_begin;
  m->ctx = &early;
  if (!mini_read_file(m, child, NULL) || m->events[LJP_REC_SAMPLES] != 211)
    _exit(2);
  if (early || m->begin_time < before) {
    fprintf(stderr, "%u samples before the file's time\n", early);
    _exit(3);
  }
}

static void a_childs_time_begins_with_the_fork(void **state)
{
  (void)state;
  harsh_skip_under_tsan();
  harsh_skip_under_asan();
  assert_int_equal(harsh_child(fork_and_push, NULL), 0);
}

/* No fork handler runs for a raw clone(): the child has the session, but no
** writer. */
static void clone_and_stop(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {.path = harsh_path("cloned"),
                                  .flush_ms = 20,
                                  .record_child = true,
                                  .fork_child = on_fork};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (int round = 0; round < 7; round++) {
    pid_t pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid == 0) {
      uint64_t before = ljp_clock_ns();
      int error = 7;
      if (ljp_session_stop(s, &error) || error || ljp_producer_active(p))
        _exit(3);
      if (ljp_clock_ns() - before > UINT64_C(2000000000))
        _exit(4);
      if (fork_calls != 1 || fork_recording ||
          ljp_session_state(s) != LJP_SESSION_STOPPED)
        _exit(5);
      ljp_session_free(s);
      o.path = harsh_path("cloned-anew");
      s = harsh_start(&o, LJP_OK);
      _exit(ljp_session_stop(s, NULL) ? 6 : 0);
    }
    while (!harsh_push(p, 1))
      usleep(100);
    int status;
    waitpid(pid, &status, 0);
    if (status)
      _exit(WIFEXITED(status) ? 10 + WEXITSTATUS(status) : 1);
  }
  if (ljp_session_stop(s, NULL))
    _exit(2);
}

static void a_session_ends_at_once_in_a_raw_clone(void **state)
{
  (void)state;
  harsh_skip_under_tsan();
  harsh_skip_under_asan();
  assert_int_equal(harsh_child(clone_and_stop, NULL), 0);
}

static void fork_and_exec(void *ctx)
{
  (void)ctx;
  struct ljp_session_options o = {
      .path = harsh_path("exec"), .flush_ms = 200, .record_child = true};
  struct ljp_session *s = harsh_start(&o, LJP_OK);
  struct ljp_producer *p = harsh_producer(s, 0);
  for (int round = 0; round < 20; round++) {
    pid_t pid = fork();
    if (pid == 0) {
      char script[300];
      /* No descriptor of ours is open in the new program. */
      snprintf(script, sizeof script, "! ls -l /proc/self/fd | grep -q %s",
               harsh_dir);
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
  if (!mini_read_file(m, harsh_last_path, NULL) ||
      m->events[LJP_REC_SAMPLES] != 20 * 53)
    _exit(3);
  char command[300];
  snprintf(command, sizeof command, "test $(ls %s/exec* | wc -l) = 1",
           harsh_dir);
  if (system(command))
    _exit(4);
}

static void fork_and_exec_leaves_no_trace(void **state)
{
  (void)state;
  harsh_skip_under_tsan();
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
      .path = harsh_path("often"), .flush_ms = 1, .record_child = true};
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
  if (!mini_read_file(m, harsh_last_path, NULL) || !m->clean ||
      m->events[LJP_REC_SAMPLES] + m->lost[LJP_LOSS_RING_FULL] != 200000) {
    fprintf(stderr, "%s\n", m->error);
    _exit(3);
  }
}

static void forking_often_under_load_never_deadlocks(void **state)
{
  (void)state;
  harsh_skip_under_tsan();
  harsh_skip_under_asan();
  assert_int_equal(harsh_child(fork_often, NULL), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_forks_child_records_into_a_file_of_its_own),
      cmocka_unit_test(a_forks_child_does_not_record_unless_asked),
      cmocka_unit_test(a_forks_child_gets_pages_of_its_own),
      cmocka_unit_test(a_childs_time_begins_with_the_fork),
      cmocka_unit_test(a_session_ends_at_once_in_a_raw_clone),
      cmocka_unit_test(fork_and_exec_leaves_no_trace),
      cmocka_unit_test(forking_often_under_load_never_deadlocks),
  };
  return cmocka_run_group_tests(tests, harsh_make_dir, harsh_remove_dir);
}
