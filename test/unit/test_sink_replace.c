/* Sinks: how a session replaces an old file, and when. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "test/stream/session_tools.h"

static void an_old_file_is_replaced_only_by_a_session_that_started(void **state)
{
  (void)state;
  struct ljp_session *s;
  struct ljp_session_options o = {.path = in_dir("old")};
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  assert_int_equal(write(fd, "precious", 8), 8);
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  char text[9] = "";
  int again = open(path, O_RDONLY);
  assert_int_equal(read(again, text, 8), 8);
  assert_string_equal(text, "precious");
  close(again);
  assert_int_equal(ljp_session_start(s), LJP_OK);
  /* The file has its name and its first block when start returns. */
  struct mini *m = mini_new();
  assert_true(mini_read_file(m, in_dir("old"), NULL));
  assert_true(m->blocks >= 1);
  mini_free(m);
  ljp_session_free(s);
  m = read_back(in_dir("old"));
  assert_true(m->clean);
  mini_free(m);
  close(fd);
}

/* provisional: until the commit nothing shows, and a stop leaves no trace. */
static void a_provisional_session_replaces_nothing_before_its_commit(void **st)
{
  (void)st;
  struct ljp_session *s;
  struct stat before, now;
  struct ljp_session_options o = {
      .path = in_dir("kept"), .provisional = true, .flush_ms = 5};
  int fd = open(path, O_CREAT | O_WRONLY, 0640);
  assert_int_equal(write(fd, "precious", 8), 8);
  assert_int_equal(fstat(fd, &before), 0);
  for (int commit = 0; commit < 2; commit++) {
    o.describe = known();
    assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
    assert_int_equal(ljp_session_start(s), LJP_OK);
    struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
    for (uint32_t i = 0; i < 13; i++)
      sample(p, i);
    usleep(20000);
    assert_int_equal(stat(in_dir("kept"), &now), 0);
    assert_int_equal(now.st_ino, before.st_ino);
    if (commit)
      assert_int_equal(ljp_session_commit(s), LJP_OK);
    assert_int_equal(stat(in_dir("kept"), &now), 0);
    assert_int_equal(now.st_ino != before.st_ino, commit);
    assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
    ljp_session_free(s);
  }
  close(fd);
  assert_int_equal(now.st_mode & 0777, 0640);
  struct mini *m = read_back(in_dir("kept"));
  assert_int_equal(m->events[LJP_REC_SAMPLES], 13);
  assert_true(m->clean);
  mini_free(m);
}

/* The writer need not be woken for a commit: it comes when it is asked to,
** before the commit or after it. */
static void a_commit_forgets_no_wake_up(void **state)
{
  (void)state;
  for (int after = 0; after < 2; after++) {
    struct ljp_session *s;
    struct ljp_session_options o = {.path = in_dir("asked"),
                                    .provisional = true,
                                    .flush_ms = 3600000,
                                    .describe = known()};
    assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
    assert_int_equal(ljp_session_start(s), LJP_OK);
    struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
    sample(p, 1);
    if (!after)
      ljp_producer_wake(p);
    uint64_t before = ljp_session_bytes(s);
    assert_int_equal(ljp_session_commit(s), LJP_OK);
    if (after)
      ljp_producer_wake(p);
    for (int i = 0; i < 10000 && ljp_session_bytes(s) == before; i++)
      usleep(1000);
    assert_true(ljp_session_bytes(s) > before);
    assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
    ljp_session_free(s);
  }
}

/* The writer thread starts the sink, and waits for the commit there. */
static size_t count_bytes(const void **data, size_t len, void *ctx)
{
  (void)data;
  atomic_fetch_add((_Atomic size_t *)ctx, len);
  return len;
}

static void a_provisional_callback_goes_on_after_its_commit(void **state)
{
  (void)state;
  for (int commit = 0; commit < 2; commit++) {
    struct ljp_session *s;
    _Atomic size_t bytes = 0;
    struct ljp_session_options o = {.callback = count_bytes,
                                    .callback_ctx = &bytes,
                                    .provisional = true,
                                    .describe = known()};
    assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
    assert_int_equal(ljp_session_start(s), LJP_OK);
    if (commit)
      assert_int_equal(ljp_session_commit(s), LJP_OK);
    assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
    ljp_session_free(s);
    assert_true(bytes > 100);
  }
}

static int descriptors(void)
{
  int count = 0;
  for (int fd = 0; fd < 1024; fd++)
    count += fcntl(fd, F_GETFD) != -1;
  return count;
}

static void an_old_file_is_let_go_while_the_session_runs(void **state)
{
  (void)state;
  struct ljp_session_options o = {.path = in_dir("again")};
  ljp_session_free(started(&o));
  int before = descriptors();
  struct ljp_session *s = started(&o);
  for (int i = 0; i < 5000 && descriptors() != before + 1; i++)
    usleep(1000);
  assert_int_equal(descriptors(), before + 1);
  ljp_session_free(s);
  assert_int_equal(descriptors(), before);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_old_file_is_replaced_only_by_a_session_that_started),
      cmocka_unit_test(
          a_provisional_session_replaces_nothing_before_its_commit),
      cmocka_unit_test(a_commit_forgets_no_wake_up),
      cmocka_unit_test(a_provisional_callback_goes_on_after_its_commit),
      cmocka_unit_test(an_old_file_is_let_go_while_the_session_runs),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
