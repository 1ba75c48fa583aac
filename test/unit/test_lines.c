/* Lines of a file that is read without a stream. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "src/base/lines.h"

/* A pipe that holds this text; the end that reads. */
static int pipe_of(const char *text)
{
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
  close(ends[1]);
  return ends[0];
}

/* Reads the text with this much room. The lines must be those given, up to NULL. */
static void expect(const char *text, size_t room, const char *const *lines)
{
  char bytes[64];
  int fd = pipe_of(text);
  struct ljp_lines reader = ljp_lines_of(fd, bytes, room);
  for (; *lines; lines++) {
    const char *line = ljp_lines_next(&reader);
    assert_non_null(line);
    assert_string_equal(line, *lines);
  }
  assert_null(ljp_lines_next(&reader));
  assert_null(ljp_lines_next(&reader));
  close(fd);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void whole_lines(void **state)
{
  (void)state;
  for (size_t room = 8; room <= 64; room++)
    expect("one\ntwo\n\nthree\n", room, LINES("one", "two", "", "three"));
}

static void the_last_line_may_have_no_end(void **state)
{
  (void)state;
  expect("one\ntwo", 8, LINES("one", "two"));
  expect("one", 4, LINES("one"));
  expect("\n", 8, LINES(""));
  expect("", 8, LINES(NULL));
}

static void a_line_without_room_is_cut(void **state)
{
  (void)state;
  expect("0123456789abcdef\nnext\n0123456789\n", 6,
         LINES("01234", "next", "01234"));
  expect("01234\nnext\n", 6, LINES("01234", "next"));
  expect("a\n0123456789", 6, LINES("a", "01234"));
  expect("0123456789", 6, LINES("01234"));
}

static void no_file_has_no_lines(void **state)
{
  char bytes[8];
  struct ljp_lines none = ljp_lines_of(-1, bytes, sizeof bytes);
  (void)state;
  assert_null(ljp_lines_next(&none));
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  struct ljp_lines unreadable = ljp_lines_of(ends[1], bytes, sizeof bytes);
  assert_null(ljp_lines_next(&unreadable));
  close(ends[0]);
  close(ends[1]);
}

static void *write_slowly(void *fd)
{
  for (const char *at = "first\nsecond\n"; *at; at++) {
    usleep(2000);
    assert_int_equal(write(*(int *)fd, at, 1), 1);
  }
  close(*(int *)fd);
  return NULL;
}

static void a_read_may_give_less_than_a_line(void **state)
{
  char bytes[16];
  int ends[2];
  pthread_t thread;
  (void)state;
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(pthread_create(&thread, NULL, write_slowly, &ends[1]), 0);
  struct ljp_lines reader = ljp_lines_of(ends[0], bytes, sizeof bytes);
  assert_string_equal(ljp_lines_next(&reader), "first");
  assert_string_equal(ljp_lines_next(&reader), "second");
  assert_null(ljp_lines_next(&reader));
  pthread_join(thread, NULL);
  close(ends[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_lines),
      cmocka_unit_test(the_last_line_may_have_no_end),
      cmocka_unit_test(a_line_without_room_is_cut),
      cmocka_unit_test(no_file_has_no_lines),
      cmocka_unit_test(a_read_may_give_less_than_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
