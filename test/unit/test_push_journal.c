/* The journal of a spool: outcomes survive reopening, damage, torn ends, and being
** made shorter. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/push/journal.h"

enum { MOST = 1 << 20, KEEP = 1 << 13 };

static int dir;

static int begin(void **state)
{
  char path[] = "/tmp/ljp-journal.XXXXXX";
  (void)state;
  assert_non_null(mkdtemp(path));
  dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(dir >= 0);
  *state = strdup(path);
  return 0;
}

static int end(void **state)
{
  unlinkat(dir, "j", 0);
  unlinkat(dir, "j.new", 0);
  close(dir);
  rmdir(*state);
  free(*state);
  return 0;
}

static const uint8_t *id_of(unsigned n)
{
  static uint8_t id[16];
  memset(id, 0, sizeof id);
  memcpy(id, &n, sizeof n);
  id[15] = (uint8_t)n;
  return id;
}

static enum ljp_journal_what what_of(const struct ljp_journal *j, unsigned n)
{
  const struct ljp_journal_entry *e = ljp_journal_find(j, id_of(n));
  return e ? e->what : LJP_JOURNAL_WHATS;
}

static off_t size_of(void)
{
  struct stat st;
  assert_int_equal(fstatat(dir, "j", &st, 0), 0);
  return st.st_size;
}

static void outcomes_survive_reopening(void **state)
{
  struct ljp_journal j;
  (void)state;
  assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
  assert_int_equal(j.count, 0);
  for (unsigned n = 1; n <= 11; n++)
    assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_TAKEN), 0);
  assert_int_equal(ljp_journal_add(&j, id_of(3), 3, LJP_JOURNAL_TRYING), 0);
  assert_int_equal(ljp_journal_add(&j, id_of(3), 3, LJP_JOURNAL_SENT), 0);
  assert_int_equal(ljp_journal_add(&j, id_of(5), 5, LJP_JOURNAL_REFUSED), 0);
  ljp_journal_close(&j);
  assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
  assert_int_equal(j.count, 11);
  assert_int_equal(j.last, 11);
  assert_int_equal(j.damaged, 0);
  assert_int_equal(what_of(&j, 3), LJP_JOURNAL_SENT);
  assert_int_equal(what_of(&j, 5), LJP_JOURNAL_REFUSED);
  assert_int_equal(what_of(&j, 11), LJP_JOURNAL_TAKEN);
  assert_int_equal(what_of(&j, 12), LJP_JOURNAL_WHATS);
  ljp_journal_close(&j);
}

/* Cut at every byte: each whole record counts, and the next one is appended at
** the right place. */
static void a_torn_end_costs_only_its_record(void **state)
{
  struct ljp_journal j;
  (void)state;
  for (off_t cut = 0; cut <= 3 * (off_t)LJP_JOURNAL_BYTES; cut++) {
    assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
    for (unsigned n = 1; n <= 3; n++)
      assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_SENT), 0);
    assert_int_equal(ftruncate(j.fd, cut), 0);
    ljp_journal_close(&j);
    assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
    assert_int_equal(j.count, cut / LJP_JOURNAL_BYTES);
    assert_int_equal(j.damaged, cut % LJP_JOURNAL_BYTES != 0);
    assert_int_equal(ljp_journal_add(&j, id_of(7), 7, LJP_JOURNAL_SENT), 0);
    ljp_journal_close(&j);
    assert_int_equal(size_of(),
                     (cut / LJP_JOURNAL_BYTES + 1) * (off_t)LJP_JOURNAL_BYTES);
    assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
    assert_int_equal(what_of(&j, 7), LJP_JOURNAL_SENT);
    assert_int_equal(j.damaged, 0);
    ljp_journal_close(&j);
    assert_int_equal(unlinkat(dir, "j", 0), 0);
  }
}

/* Each byte changed in turn: only its record is lost, or nothing. */
static void a_changed_byte_costs_only_its_record(void **state)
{
  struct ljp_journal j;
  (void)state;
  assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
  for (unsigned n = 1; n <= 3; n++)
    assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_SENT), 0);
  int fd = j.fd;
  for (off_t at = 0; at < 3 * (off_t)LJP_JOURNAL_BYTES; at++) {
    struct ljp_journal other;
    uint8_t byte, changed;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    changed = byte ^ 0x10;
    assert_int_equal(pwrite(fd, &changed, 1, at), 1);
    assert_int_equal(ljp_journal_open(&other, dir, "j", MOST, KEEP), 0);
    assert_int_equal(other.damaged, 1);
    for (unsigned n = 1; n <= 3; n++)
      assert_int_equal(what_of(&other, n), (unsigned)(at / 40) == n - 1
                                               ? LJP_JOURNAL_WHATS
                                               : LJP_JOURNAL_SENT);
    ljp_journal_close(&other);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  }
  ljp_journal_close(&j);
}

static void a_long_one_is_made_shorter(void **state)
{
  struct ljp_journal j;
  (void)state;
  assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
  for (unsigned n = 1; n <= 23; n++) {
    assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_TAKEN), 0);
    if (n != 2)
      assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_SENT), 0);
  }
  ljp_journal_close(&j);
  assert_int_equal(ljp_journal_open(&j, dir, "j", 40 * 45, 5), 0);
  assert_int_equal(j.count, 23); /* It is not longer than that. */
  ljp_journal_close(&j);
  assert_int_equal(ljp_journal_open(&j, dir, "j", 40 * 44, 5), 0);
  assert_int_equal(size_of(), 40 * 6);
  assert_int_equal(j.count, 23); /* This time all is still known. */
  ljp_journal_close(&j);
  assert_int_equal(ljp_journal_open(&j, dir, "j", 40 * 44, 5), 0);
  assert_int_equal(j.count, 6);
  assert_int_equal(j.last, 23);
  assert_int_equal(what_of(&j, 2), LJP_JOURNAL_TAKEN); /* It waits. */
  assert_int_equal(what_of(&j, 18), LJP_JOURNAL_WHATS);
  assert_int_equal(what_of(&j, 19), LJP_JOURNAL_SENT);
  assert_int_equal(ljp_journal_add(&j, id_of(2), 2, LJP_JOURNAL_SENT), 0);
  ljp_journal_close(&j);
  assert_int_equal(ljp_journal_open(&j, dir, "j", MOST, KEEP), 0);
  assert_int_equal(what_of(&j, 2), LJP_JOURNAL_SENT);
  assert_int_equal(what_of(&j, 23), LJP_JOURNAL_SENT);
  ljp_journal_close(&j);
}

/* What is sent for ever needs neither a disk nor memory without end. */
static void an_open_one_stays_short(void **state)
{
  enum { LIMIT = 40 * 31, RECENT = 7 };
  struct ljp_journal j;
  (void)state;
  assert_int_equal(ljp_journal_open(&j, dir, "j", LIMIT, RECENT), 0);
  assert_int_equal(ljp_journal_add(&j, id_of(1), 1, LJP_JOURNAL_TRYING), 0);
  for (unsigned n = 2; n <= 1009; n++) {
    assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_TAKEN), 0);
    assert_int_equal(ljp_journal_add(&j, id_of(n), n, LJP_JOURNAL_SENT), 0);
    assert_true(size_of() <= LIMIT + 40);
    assert_true(j.count <= 31);
    assert_int_equal(what_of(&j, 1), LJP_JOURNAL_TRYING);
    for (unsigned k = n > RECENT ? n - RECENT + 1 : 2; k <= n; k++)
      assert_int_equal(what_of(&j, k), LJP_JOURNAL_SENT);
  }
  assert_int_equal(ljp_journal_add(&j, id_of(1), 1, LJP_JOURNAL_SENT), 0);
  ljp_journal_close(&j);
  assert_int_equal(ljp_journal_open(&j, dir, "j", LIMIT, RECENT), 0);
  assert_int_equal(j.damaged, 0);
  assert_int_equal(j.last, 1009);
  assert_int_equal(what_of(&j, 1), LJP_JOURNAL_SENT);
  assert_int_equal(what_of(&j, 1009), LJP_JOURNAL_SENT);
  ljp_journal_close(&j);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(outcomes_survive_reopening, begin, end),
      cmocka_unit_test_setup_teardown(a_torn_end_costs_only_its_record, begin,
                                      end),
      cmocka_unit_test_setup_teardown(a_changed_byte_costs_only_its_record,
                                      begin, end),
      cmocka_unit_test_setup_teardown(a_long_one_is_made_shorter, begin, end),
      cmocka_unit_test_setup_teardown(an_open_one_stays_short, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
