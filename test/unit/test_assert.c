/* A failed assertion of a debug build names itself and ends the process. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* In every build: the release form checks nothing. */
#undef LJP_DEBUG
#define LJP_DEBUG 1
#include "src/base/assert.h"

/* Runs ljp_assert(value > 0) in a child; gives its stderr and wait status. */
static int assert_in_child(int value, char *text, size_t room)
{
  int ends[2], status = 0;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGILL, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    ljp_assert(value > 0);
    _exit(7);
  }
  close(ends[1]);
  ssize_t n = read(ends[0], text, room - 1);
  text[n > 0 ? n : 0] = 0;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void a_failed_assertion_names_its_place_and_traps(void **state)
{
  (void)state;
  char text[512];
  int status = assert_in_child(0, text, sizeof text);
  assert_true(WIFSIGNALED(status));
  assert_non_null(strstr(text, "test_assert.c:"));
  assert_non_null(strstr(text, ": assertion failed: value > 0\n"));
}

static void an_assertion_that_holds_does_nothing(void **state)
{
  (void)state;
  char text[512];
  int status = assert_in_child(1, text, sizeof text);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  assert_string_equal(text, "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failed_assertion_names_its_place_and_traps),
      cmocka_unit_test(an_assertion_that_holds_does_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
