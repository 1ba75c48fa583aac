/*
** The commands without memory: whichever allocation fails, a command reports it
** in one line, returns 1, and leaves no file behind.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "test/support/encode.h"
#include "test/support/wrapped_alloc.h"
#include "tools/shared/command.h"

#define GOLDEN LJP_SOURCE_DIR "/test/data/every-record.ljp"
#define SEGMENT LJP_SOURCE_DIR "/test/data/rotated.ljp"

static char folder[] = "/tmp/ljprof-views-XXXXXX";
static char out[64];
static char other[64];     /* A stream of another session. */
static char said[1 << 16]; /* On standard error. */
static bool needs_each;    /* The command cannot do without any allocation. */

static int enter(void **state)
{
  (void)state;
  if (!mkdtemp(folder))
    return -1;
  snprintf(out, sizeof out, "%s/out", folder);
  snprintf(other, sizeof other, "%s.ljp", folder);
  struct buf stream = {0};
  put_mark_block(&stream, 0);
  put_end_block(&stream, 1);
  FILE *f = fopen(other, "wb");
  if (!f || fwrite(stream.data, 1, stream.len, f) != stream.len || fclose(f))
    return -1;
  buf_free(&stream);
  return 0;
}

static int leave(void **state)
{
  (void)state;
  unlink(out);
  unlink(other);
  return rmdir(folder);
}

/* The number of files in the folder. */
static unsigned files(void)
{
  DIR *dir = opendir(folder);
  unsigned n = 0;
  assert_non_null(dir);
  for (const struct dirent *e; (e = readdir(dir));)
    n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  closedir(dir);
  return n;
}

typedef int command(int argc, char **argv);

/* Runs a command and returns its exit code. Its output is dropped, its errors go
** to said. */
static int run(command *f, const char *const *words)
{
  char *argv[16];
  int argc = 0, kept[2] = {dup(1), dup(2)}, null = open("/dev/null", O_WRONLY);
  int errors = open(folder, O_TMPFILE | O_RDWR, 0600);
  assert_true(null >= 0 && errors >= 0 && kept[0] >= 0 && kept[1] >= 0);
  for (; words[argc]; argc++)
    argv[argc] = (char *)(uintptr_t)words[argc];
  argv[argc] = NULL;
  fflush(stdout);
  dup2(null, 1);
  dup2(errors, 2);
  int code = f(argc, argv);
  dup2(kept[0], 1);
  dup2(kept[1], 2);
  ssize_t n = pread(errors, said, sizeof said - 1, 0);
  said[n < 0 ? 0 : n] = '\0';
  close(kept[0]);
  close(kept[1]);
  close(null);
  close(errors);
  return code;
}

/* at_least: the command makes at least this number of allocations. */
static void each_fails(command *f, const char *const *words, long at_least)
{
  bool writes = false;
  long n = 1;
  for (unsigned i = 0; words[i]; i++)
    writes |= words[i] == out;
  for (;; n++) {
    size_t before = alloc_live, before_bytes = alloc_bytes;
    unlink(out);
    alloc_fail_at = n;
    int code = run(f, words);
    bool failed = alloc_fail_at == 0;
    alloc_fail_at = 0;
    if (alloc_live != before || alloc_bytes != before_bytes)
      fail_msg("%s: allocation %ld: %zu blocks left", words[0], n,
               alloc_live - before);
    if (!failed) {
      if (code)
        fail_msg("%s: %d, %s", words[0], code, said);
      assert_int_equal(files(), writes);
      break;
    }
    if (code == 0 && !needs_each)
      continue; /* The command could do without this allocation. */
    if (code != 1 || !strchr(said, '\n'))
      fail_msg("%s: allocation %ld: %d, '%s'", words[0], n, code, said);
    if (!strstr(said, "memory"))
      fail_msg("%s: allocation %ld: '%s'", words[0], n, said);
    assert_int_equal(files(), 0);
  }
  if (n < at_least)
    fail_msg("%s: only %ld allocations", words[0], n);
}

#define EACH(f, at_least, ...)                                                 \
  do {                                                                         \
    const char *const words[] = {__VA_ARGS__, NULL};                           \
    each_fails(f, words, at_least);                                            \
  } while (0)

static void exports_say_that_there_is_no_memory(void **state)
{
  static const char *const formats[] = {
      "collapsed",   "pprof",        "speedscope", "callgrind",
      "perf-script", "chrome-trace", "ljm",        "ljp"};
  (void)state;
  for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++)
    EACH(ljp_command_export, 40, "export", "--no-symbols", "--to", formats[i],
         "-o", out, GOLDEN);
}

static void symbols_say_that_there_is_no_memory(void **state)
{
  (void)state;
  EACH(ljp_command_export, 50, "export", "--to", "collapsed", "-o", out,
       GOLDEN);
  EACH(ljp_command_embed, 20, "embed", GOLDEN, "-o", out);
}

static void merge_says_that_there_is_no_memory(void **state)
{
  (void)state;
  EACH(ljp_command_merge, 20, "merge", "--unrelated", "-o", out, other, GOLDEN);
  EACH(ljp_command_merge, 15, "merge", "-o", out, SEGMENT ".s1", SEGMENT,
       SEGMENT ".s2");
}

static void reports_say_that_there_is_no_memory(void **state)
{
  (void)state;
  EACH(ljp_command_report, 40, "report", "--no-symbols", GOLDEN);
  EACH(ljp_command_report, 40, "report", "--no-symbols", "--tree", "--focus",
       "a", GOLDEN);
  EACH(ljp_command_report, 40, "report", "--no-symbols", "--bottom-up",
       "--json", GOLDEN);
  EACH(ljp_command_report, 40, "report", "--no-symbols", "--live", "--by",
       "line", GOLDEN);
}

/* No allocation is optional: a bound from less than all facts would be wrong. */
static void advice_says_that_there_is_no_memory(void **state)
{
  (void)state;
  needs_each = true;
  EACH(ljp_command_advise, 50, "advise", "--no-symbols", GOLDEN);
  EACH(ljp_command_advise, 50, "advise", "--no-symbols", "--json", GOLDEN);
  needs_each = false;
}

static void pages_say_that_there_is_no_memory(void **state)
{
  (void)state;
  EACH(ljp_command_flame, 50, "flame", "--no-symbols", "-o", out, GOLDEN);
  EACH(ljp_command_flame, 50, "flame", "--no-symbols", "--svg", "-o", out,
       GOLDEN);
  EACH(ljp_command_diff, 50, "diff", "--no-symbols", "--json", GOLDEN, GOLDEN);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exports_say_that_there_is_no_memory),
      cmocka_unit_test(symbols_say_that_there_is_no_memory),
      cmocka_unit_test(merge_says_that_there_is_no_memory),
      cmocka_unit_test(reports_say_that_there_is_no_memory),
      cmocka_unit_test(advice_says_that_there_is_no_memory),
      cmocka_unit_test(pages_say_that_there_is_no_memory),
  };
  return cmocka_run_group_tests(tests, enter, leave);
}
