/* Sinks: files, descriptors, callbacks, and their failures. */
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

static void a_file_that_may_not_grow_is_an_error_without_a_signal(void **state)
{
  (void)state;
  struct ljp_session *s;
  struct rlimit before, little;
  int error = 0;
  struct ljp_session_options o = {.path = in_dir("little")};
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  little = before;
  little.rlim_cur = 67;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
  /* SIGXFSZ would end the process. */
  assert_int_equal(ljp_session_start(s), LJP_ERR_IO);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, EFBIG);
  ljp_session_free(s);
}

static void a_path_that_cannot_be_made_says_why(void **state)
{
  (void)state;
  struct ljp_session *s;
  int error = 0;
  struct ljp_session_options o = {.path = in_dir("none/such")};
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_ERR_IO);
  assert_int_equal(ljp_session_state(s), LJP_SESSION_FAILED);
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, ENOENT);
  ljp_session_free(s);
}

static void a_relative_path_means_where_the_session_was_made(void **state)
{
  (void)state;
  char before[4096];
  struct ljp_session *s;
  struct ljp_session_options o = {.path = "relative"};
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(dir), 0);
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(ljp_session_start(s), LJP_OK);
  ljp_session_free(s);
  assert_int_equal(chdir(before), 0);
  struct mini *m = read_back(in_dir("relative"));
  assert_true(m->clean);
  mini_free(m);
}

static void a_full_device_is_an_error_not_a_replaced_device(void **state)
{
  (void)state;
  struct ljp_session *s;
  struct stat st;
  int error = 0;
  struct ljp_session_options o = {.path = "/dev/full"};
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_ERR_IO);
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, ENOSPC);
  ljp_session_free(s);
  assert_int_equal(stat("/dev/full", &st), 0);
  assert_true(S_ISCHR(st.st_mode));
}

static void a_link_is_followed_not_replaced(void **state)
{
  (void)state;
  char target[250];
  struct stat st;
  snprintf(target, sizeof target, "%s/target", dir);
  close(open(target, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(symlink(target, in_dir("link")), 0);
  struct ljp_session_options o = {.path = path};
  ljp_session_free(started(&o));
  assert_int_equal(lstat(in_dir("link"), &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  struct mini *m = read_back(target);
  assert_true(m->clean);
  mini_free(m);
}

/* Only root can make another user's link. */
static void a_stranger_s_link_in_a_sticky_folder_is_refused(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    mode_t mode;
    uid_t owner;
    bool refused;
  } cases[] = {{"sticky1", 01777, 65534, true},
               {"sticky2", 01777, 0, false},
               {"plain", 0777, 65534, false},
               {"private", 01755, 65534, false}};
  if (geteuid() != 0)
    skip();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int folder = 0; folder < 2; folder++) {
      char target[200], link[250], base[200];
      struct ljp_session *s;
      struct stat before, now;
      int error = 0;
      snprintf(base, sizeof base, "%s/%s%d", dir, cases[i].name, folder);
      snprintf(target, sizeof target, "%s/victim%zu", dir, i);
      snprintf(link, sizeof link, "%s/link", base);
      close(open(target, O_CREAT | O_WRONLY, 0600));
      assert_int_equal(stat(target, &before), 0);
      assert_int_equal(mkdir(base, 0700), 0);
      assert_int_equal(chmod(base, cases[i].mode), 0);
      /* A link to the file, or to the folder that it is in. */
      assert_int_equal(symlink(folder ? dir : target, link), 0);
      assert_int_equal(lchown(link, cases[i].owner, cases[i].owner), 0);
      if (folder)
        snprintf(link, sizeof link, "%s/link/victim%zu", base, i);
      struct ljp_session_options o = {.path = link, .describe = known()};
      assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
      assert_int_equal(ljp_session_start(s),
                       cases[i].refused ? LJP_ERR_IO : LJP_OK);
      ljp_session_stop(s, &error);
      ljp_session_free(s);
      assert_int_equal(error, cases[i].refused ? EACCES : 0);
      assert_int_equal(stat(target, &now), 0);
      assert_int_equal(now.st_ino == before.st_ino, cases[i].refused);
      assert_int_equal(now.st_mode & 0777, 0600);
    }
}

static void nothing_is_left_beside_the_file(void **state)
{
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "! ls %s | grep -q ljp-", dir);
  assert_int_equal(system(command), 0);
}

static volatile sig_atomic_t pipe_signals;

static void on_pipe(int sig)
{
  (void)sig;
  pipe_signals++;
}

static void a_closed_pipe_ends_the_session_without_a_signal(void **state)
{
  (void)state;
  int fds[2], error = 0;
  struct sigaction action = {.sa_handler = on_pipe}, before;
  sigaction(SIGPIPE, &action, &before);
  assert_int_equal(pipe(fds), 0);
  struct ljp_session_options o = {.use_fd = true, .fd = fds[1]};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  close(fds[0]);
  for (int i = 0; i < 2000 && ljp_session_state(s) == LJP_SESSION_RUNNING;
       i++) {
    sample(p, 1);
    usleep(1000);
  }
  assert_int_equal(ljp_session_state(s), LJP_SESSION_FAILED);
  assert_false(ljp_producer_active(p));
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, EPIPE);
  ljp_producer_retire(p);
  ljp_session_free(s);
  assert_int_equal(pipe_signals, 0);
  assert_int_equal(fcntl(fds[1], F_GETFD),
                   0); /* Still open, flags unchanged. */
  close(fds[1]);
  sigaction(SIGPIPE, &before, NULL);
}

static void a_pipe_that_nobody_reads_does_not_hold_stop_for_ever(void **state)
{
  (void)state;
  int fds[2], error = 0;
  assert_int_equal(pipe(fds), 0);
  struct ljp_session_options o = {.use_fd = true, .fd = fds[1]};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  for (uint32_t i = 0; i < 20011; i++) {
    uint64_t frame = ljp_frame_lua(LJP_FRAME_LUA, 0, i + 1, 3);
    struct ljp_sample one = {.time_ns = ljp_clock_ns()};
    ljp_push_sample(p, &one, &frame, 1);
    if (i % 100 == 0)
      usleep(1000);
  }
  uint64_t before = ljp_clock_ns();
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, ETIMEDOUT);
  assert_true(ljp_clock_ns() - before < 9000000000u);
  ljp_session_free(s);
  close(fds[0]);
  close(fds[1]);
}

/* Closes every descriptor above 2, then opens another file. */
static void a_descriptor_taken_by_the_host_is_never_written_to(void **state)
{
  (void)state;
  int error = 0;
  struct ljp_session_options o = {.path = in_dir("closed")};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  struct stat st, mine;
  assert_int_equal(stat(path, &st), 0);
  int found = -1;
  for (int fd = 3; fd < 64; fd++)
    if (fstat(fd, &mine) == 0 && mine.st_ino == st.st_ino &&
        mine.st_dev == st.st_dev)
      found = fd;
  assert_true(found >= 3);
  assert_int_equal(fcntl(found, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  int other = open(in_dir("other"), O_CREAT | O_RDWR, 0600);
  assert_int_equal(dup2(other, found), found);
  for (int i = 0; i < 2000 && ljp_session_state(s) == LJP_SESSION_RUNNING;
       i++) {
    sample(p, 1);
    usleep(1000);
  }
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, EBADF);
  ljp_session_free(s);
  assert_int_equal(fstat(other, &st), 0);
  assert_int_equal(st.st_size, 0);
  assert_int_equal(fstat(found, &st), 0); /* Not closed either. */
  close(other);
  close(found);
  struct mini *m = mini_new();
  assert_true(mini_read_file(m, in_dir("closed"), NULL));
  assert_true(m->blocks >= 1);
  mini_free(m);
}

/* Runs until its first sample is written, then loses its descriptor and its
** file, and the host makes a file that has the inode of ours again. */
static void a_file_with_the_inode_of_ours_is_never_written_to(void **state)
{
  (void)state;
  int error = 0, found = -1, other = -1;
  struct ljp_session_options o = {.path = in_dir("removed")};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  struct stat ours, st = {0};
  assert_int_equal(stat(path, &ours), 0);
  for (int fd = 3; fd < 64; fd++)
    if (fstat(fd, &st) == 0 && st.st_ino == ours.st_ino &&
        st.st_dev == ours.st_dev)
      found = fd;
  assert_true(found >= 3);
  assert_int_equal(unlink(in_dir("removed")), 0);
  close(found);
  st.st_ino = 0;
  for (int i = 0; i < 1000 && st.st_ino != ours.st_ino; i++) {
    char name[20];
    snprintf(name, sizeof name, "reused%d", i);
    if (other >= 0)
      close(other);
    other = open(in_dir(name), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(fstat(other, &st), 0);
  }
  if (st.st_ino != ours.st_ino) {
    print_message("this file system does not reuse inodes at once\n");
    ljp_session_free(s);
    close(other);
    return;
  }
  if (other != found)
    assert_int_equal(dup2(other, found), found);
  for (int i = 0; i < 2000 && ljp_session_state(s) == LJP_SESSION_RUNNING; i++)
    sample(p, 1), usleep(1000);
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, EBADF);
  ljp_session_free(s);
  assert_int_equal(fstat(other, &st), 0);
  assert_int_equal(st.st_size, 0);
  assert_int_equal(fstat(found, &st), 0); /* Not closed either. */
  close(other);
  if (other != found)
    close(found);
}

struct collected {
  uint8_t *data;
  size_t len, limit;
  int calls, after_end;
  bool fails, ended;
};

static size_t collect(const void **data, size_t len, void *ctx)
{
  struct collected *c = ctx;
  c->calls++;
  c->after_end += c->ended;
  if (c->limit && c->len >= c->limit) {
    if (c->fails)
      return 0;
    *data = NULL;
    c->ended = true;
    return len;
  }
  size_t n = len > 997 ? 997 : len;
  memcpy(c->data + c->len, *data, n);
  c->len += n;
  return n;
}

static void a_callback_gets_the_stream_piece_by_piece(void **state)
{
  (void)state;
  struct collected c = {.data = malloc(1 << 20)};
  struct ljp_session_options o = {.callback = collect, .callback_ctx = &c};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  for (uint32_t i = 0; i < 503; i++)
    sample(p, i);
  assert_int_equal(ljp_session_stop(s, NULL), LJP_OK);
  ljp_session_free(s);
  struct mini *m = mini_new();
  if (!mini_read(m, c.data, c.len))
    fail_msg("%s", m->error);
  assert_int_equal(m->end_offset, c.len);
  assert_int_equal(m->events[LJP_REC_SAMPLES], 503);
  assert_true(m->clean);
  mini_free(m);
  free(c.data);
}

static _Atomic bool may_go_on;

static size_t take_late(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  while (*data && !may_go_on)
    usleep(1000);
  return len;
}

/* Never freed: its thread may still use it. */
static void
a_callback_that_never_returns_does_not_hold_start_for_ever(void **state)
{
  (void)state;
  static struct ljp_session *s;
  struct ljp_session_options o = {.callback = take_late, .describe = known()};
  int error = 0;
  assert_int_equal(ljp_session_new(&s, &o), LJP_OK);
  assert_int_equal(ljp_session_start(s), LJP_ERR_IO);
  assert_int_equal(ljp_session_state(s), LJP_SESSION_FAILED);
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, ETIMEDOUT);
  ljp_session_free(s);
  may_go_on = true; /* Too late: nothing changes. */
  for (int i = 0; i < 20; i++) {
    usleep(10000);
    assert_int_equal(ljp_session_state(s), LJP_SESSION_FAILED);
  }
}

static void callback_ends(bool fails, int expected)
{
  struct collected c = {.data = malloc(1 << 20), .limit = 3000, .fails = fails};
  struct ljp_session_options o = {.callback = collect, .callback_ctx = &c};
  struct ljp_session *s = started(&o);
  struct ljp_producer *p = producer(s, LJP_PRODUCER_CPU);
  int error = 0;
  for (uint32_t i = 0; i < 20000 && ljp_session_state(s) == LJP_SESSION_RUNNING;
       i++)
    sample(p, i);
  assert_int_equal(ljp_session_stop(s, &error), LJP_ERR_IO);
  assert_int_equal(error, expected);
  assert_int_equal(c.after_end, 0);
  ljp_session_free(s);
  free(c.data);
}

static void a_callback_that_returns_0_fails_the_session(void **state)
{
  (void)state;
  callback_ends(true, EIO);
}

static void a_callback_that_wants_no_more_is_not_called_again(void **state)
{
  (void)state;
  callback_ends(false, ECANCELED);
}

/* -- The next file segment of a descriptor --------------------------------- */

static int next_open(void *fd, uint32_t segment)
{
  (void)segment;
  return *(int *)fd;
}

static void next_begun(void *fd, uint32_t segment)
{
  (void)fd;
  (void)segment;
}

static void a_segment_that_cannot_be_begun_costs_nothing(void **state)
{
  (void)state;
  static const uint8_t block[] = "a block";
  struct ljp_sink sink;
  struct stat st;
  int full = open("/dev/full", O_RDWR | O_CLOEXEC);
  int fd = open(in_dir("segment"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const struct ljp_sink_next next = {next_open, next_begun, &full};
  assert_true(full >= 0 && fd >= 0);
  ljp_sink_init_fd(&sink, fd, &next);
  assert_int_equal(ljp_sink_open(&sink), LJP_OK);
  assert_int_equal(ljp_sink_write(&sink, block, sizeof block), LJP_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(ljp_sink_turn(&sink), LJP_OK);
    assert_int_equal(ljp_sink_write(&sink, block, sizeof block), LJP_ERR_IO);
    assert_int_equal(sink.error, ENOSPC);
    ljp_sink_turn_back(&sink);
    assert_int_equal(ljp_sink_write(&sink, block, sizeof block), LJP_OK);
  }
  ljp_sink_fini(&sink);
  assert_int_equal(fstat(fd, &st), 0);
  assert_int_equal(st.st_size, 4 * sizeof block);
  close(fd);
  close(full);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_that_may_not_grow_is_an_error_without_a_signal),
      cmocka_unit_test(a_path_that_cannot_be_made_says_why),
      cmocka_unit_test(a_relative_path_means_where_the_session_was_made),
      cmocka_unit_test(a_full_device_is_an_error_not_a_replaced_device),
      cmocka_unit_test(a_link_is_followed_not_replaced),
      cmocka_unit_test(a_stranger_s_link_in_a_sticky_folder_is_refused),
      cmocka_unit_test(a_closed_pipe_ends_the_session_without_a_signal),
      cmocka_unit_test(a_pipe_that_nobody_reads_does_not_hold_stop_for_ever),
      cmocka_unit_test(a_descriptor_taken_by_the_host_is_never_written_to),
      cmocka_unit_test(a_file_with_the_inode_of_ours_is_never_written_to),
      cmocka_unit_test(
          a_callback_that_never_returns_does_not_hold_start_for_ever),
      cmocka_unit_test(a_callback_gets_the_stream_piece_by_piece),
      cmocka_unit_test(a_callback_that_returns_0_fails_the_session),
      cmocka_unit_test(a_callback_that_wants_no_more_is_not_called_again),
      cmocka_unit_test(a_segment_that_cannot_be_begun_costs_nothing),
      cmocka_unit_test(nothing_is_left_beside_the_file),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
