/* The spool of ljprof push on a full disk: it opens, keeps what waits, and makes room
** for itself. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/push/spool.h"

enum { BUDGET = 1 << 20, BODY = 1009 };

static char path[64];
static bool disk_full;  /* No record finds room in the journal. */
static bool file_frees; /* A file that goes makes room. */
static uint64_t now_ms;

ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
  if (!disk_full)
    return __real_pwrite(fd, data, len, at);
  errno = ENOSPC;
  return -1;
}

int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
  disk_full &= !file_frees;
  return __real_unlinkat(dir, name, flags);
}

static int begin(void **state)
{
  (void)state;
  snprintf(path, sizeof path, "/tmp/ljp-spool.XXXXXX");
  assert_non_null(mkdtemp(path));
  disk_full = file_frees = false;
  return 0;
}

static int end(void **state)
{
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", path);
  return system(command);
}

static void open_spool(struct ljp_spool *s)
{
  char why[256] = "";
  if (!ljp_spool_open(s, path, BUDGET, LJP_ENGINE_OTLP, why, sizeof why))
    fail_msg("%s", why);
}

static int add(struct ljp_spool *s, uint8_t n)
{
  static uint8_t body[BODY];
  struct ljp_request r = {.id = {n}, .body = body, .len = sizeof body};
  return ljp_spool_add(s, &r);
}

/* The first byte of the first id; 0: none waits. */
static uint8_t first(struct ljp_spool *s, struct ljp_request *r)
{
  if (!ljp_spool_next(s, now_ms, r))
    return 0;
  free(r->body);
  return r->id[0];
}

static void a_full_disk_loses_no_request(void **state)
{
  struct ljp_spool s;
  struct ljp_request r;
  (void)state;
  open_spool(&s);
  assert_int_equal(add(&s, 1), 0);
  disk_full = true;
  assert_int_equal(add(&s, 2), 0);
  assert_int_equal(add(&s, 3), 0);
  ljp_spool_close(&s);
  open_spool(&s); /* Still full. */
  assert_int_equal(s.count, 3);
  assert_int_equal(first(&s, &r), 1);
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_TRYING), 0);
  file_frees = true;
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_SENT), 0);
  assert_int_equal(first(&s, &r), 2);
  ljp_spool_close(&s);
  open_spool(&s);
  assert_int_equal(s.count, 2);
  assert_int_equal(s.dropped, 0);
  const uint8_t sent[16] = {1};
  assert_int_equal(ljp_journal_find(&s.journal, sent)->what, LJP_JOURNAL_SENT);
  ljp_spool_close(&s);
}

static void a_strict_spool_drops_the_oldest_of_the_others(void **state)
{
  struct ljp_spool s;
  struct ljp_request r;
  (void)state;
  open_spool(&s);
  s.strict = true;
  for (uint8_t n = 1; n <= 3; n++)
    assert_int_equal(add(&s, n), 0);
  assert_int_equal(first(&s, &r), 1);
  disk_full = file_frees = true;
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_TRYING), 0);
  assert_int_equal(s.count, 2);
  assert_int_equal(s.dropped, 1);
  assert_int_equal(s.bytes, 2 * (BODY + LJP_REQUEST_HEAD));
  ljp_spool_close(&s);
  open_spool(&s);
  const uint8_t dropped[16] = {2}, trying[16] = {1};
  assert_int_equal(ljp_journal_find(&s.journal, dropped)->what,
                   LJP_JOURNAL_DROPPED);
  assert_int_equal(ljp_journal_find(&s.journal, trying)->what,
                   LJP_JOURNAL_TRYING);
  ljp_spool_close(&s);
}

/* Nothing makes room: that is said, and is no end. */
static void a_strict_spool_waits_for_room(void **state)
{
  struct ljp_spool s;
  struct ljp_request r;
  (void)state;
  open_spool(&s);
  s.strict = true;
  assert_int_equal(add(&s, 1), 0);
  assert_int_equal(first(&s, &r), 1);
  disk_full = true;
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_TRYING), ENOSPC);
  disk_full = false;
  assert_int_equal(first(&s, &r), 1);
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_TRYING), 0);
  ljp_spool_close(&s);
}

static void one_that_is_set_aside_lets_others_go_first(void **state)
{
  struct ljp_spool s;
  struct ljp_request r;
  (void)state;
  open_spool(&s);
  for (uint8_t n = 1; n <= 3; n++)
    assert_int_equal(add(&s, n), 0);
  now_ms = 100;
  assert_int_equal(first(&s, &r), 1);
  ljp_spool_set_aside(&s, r.number, 107);
  assert_true(ljp_spool_is_aside(&s, r.number));
  now_ms = 200;
  assert_int_equal(first(&s, &r), 2);
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_SENT), 0);
  assert_int_equal(first(&s, &r), 3);
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_SENT), 0);
  now_ms = 106;
  assert_int_equal(first(&s, &r), 0);
  now_ms = 107;
  assert_int_equal(first(&s, &r), 1);
  assert_int_equal(ljp_spool_note(&s, &r, LJP_JOURNAL_SENT), 0);
  assert_int_equal(s.count, 0);
  ljp_spool_close(&s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_full_disk_loses_no_request, begin, end),
      cmocka_unit_test_setup_teardown(
          a_strict_spool_drops_the_oldest_of_the_others, begin, end),
      cmocka_unit_test_setup_teardown(
          one_that_is_set_aside_lets_others_go_first, begin, end),
      cmocka_unit_test_setup_teardown(a_strict_spool_waits_for_room, begin,
                                      end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
