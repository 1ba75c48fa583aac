/* Whether a file that has no end is still being written. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "parsers/stream/recording.h"

/* A file of seven bytes that this process has open in a mode, and another
** descriptor to read it by. */
struct file {
  int writer, reader;
};

static struct file open_file(int mode)
{
  char path[] = "/tmp/ljprof-recording.XXXXXX";
  struct file f;
  int first = mkstemp(path);
  assert_true(first >= 0);
  assert_int_equal(write(first, "1234567", 7), 7);
  f.writer = open(path, mode | O_CLOEXEC);
  f.reader = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(f.writer >= 0 && f.reader >= 0);
  close(first);
  unlink(path);
  return f;
}

static void close_file(struct file f)
{
  close(f.writer);
  close(f.reader);
}

static struct ljp_rec_process this_process(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (struct ljp_rec_process){
      .pid = (uint64_t)getpid(),
      .anchor_mono_ns =
          (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec};
}

static void a_writer_that_lives_is_recording(void **state)
{
  (void)state;
  struct file f = open_file(O_WRONLY);
  struct ljp_rec_process process = this_process();
  assert_true(ljp_recording(&process, f.reader, 7));
  close(f.writer);
  assert_false(ljp_recording(&process, f.reader, 7));
  close(f.reader);
}

static void a_reader_of_the_file_is_not_its_writer(void **state)
{
  (void)state;
  struct file f = open_file(O_RDONLY);
  struct ljp_rec_process process = this_process();
  assert_false(ljp_recording(&process, f.reader, 7));
  close_file(f);
}

static void a_process_younger_than_the_session_has_a_reused_number(void **state)
{
  (void)state;
  struct file f = open_file(O_RDWR);
  struct ljp_rec_process process = this_process();
  process.anchor_mono_ns = 1;
  assert_false(ljp_recording(&process, f.reader, 7));
  close_file(f);
}

static void a_process_that_is_gone_records_nothing(void **state)
{
  (void)state;
  struct file f = open_file(O_WRONLY);
  struct ljp_rec_process process = this_process();
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  assert_true(child > 0);
  process.pid = (uint64_t)child;
  siginfo_t ended;
  assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
  assert_false(ljp_recording(&process, f.reader, 7)); /* A zombie. */
  waitpid(child, NULL, 0);
  assert_false(ljp_recording(&process, f.reader, 7));
  process.pid = UINT64_MAX;
  assert_false(ljp_recording(&process, f.reader, 7));
  assert_false(ljp_recording(NULL, f.reader, 7));
  close_file(f);
}

static void a_file_that_has_grown_was_recording(void **state)
{
  (void)state;
  struct file f = open_file(O_RDONLY);
  struct ljp_rec_process process = this_process();
  assert_true(ljp_recording(&process, f.reader, 6));
  assert_false(ljp_recording(&process, f.reader, 7));
  close_file(f);
}

static void of_a_pipe_nothing_is_known(void **state)
{
  (void)state;
  int fd[2];
  struct ljp_rec_process process = this_process();
  assert_int_equal(pipe(fd), 0);
  assert_false(ljp_recording(&process, fd[0], 0));
  assert_false(ljp_recording(&process, -1, 0));
  close(fd[0]);
  close(fd[1]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_writer_that_lives_is_recording),
      cmocka_unit_test(a_reader_of_the_file_is_not_its_writer),
      cmocka_unit_test(a_process_younger_than_the_session_has_a_reused_number),
      cmocka_unit_test(a_process_that_is_gone_records_nothing),
      cmocka_unit_test(a_file_that_has_grown_was_recording),
      cmocka_unit_test(of_a_pipe_nothing_is_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
