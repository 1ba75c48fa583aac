/* A look at a folder of file segments. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/store_lock.h"
#include "tools/shared/store.h"

static char folder[] = "/tmp/ljprof-store.XXXXXX";

static char *in_folder(const char *name)
{
  static char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* Copies a file of test/data; damage: zeroes bytes there, -1: none. */
static void put_file(const char *data, const char *name, long damage)
{
  static char bytes[1 << 20];
  char path[300];
  snprintf(path, sizeof path, "%s/test/data/%s", LJP_SOURCE_DIR, data);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  assert_in_range(n, 1, sizeof bytes - 1);
  if (damage >= 0)
    memset(bytes + damage, 0, 64);
  f = fopen(in_folder(name), "w");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

static int set_up(void **state)
{
  (void)state;
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
  char command[100];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static struct ljp_store looked(void)
{
  struct ljp_store store;
  assert_int_equal(ljp_store_open(&store, folder), 0);
  assert_int_equal(ljp_store_look(&store), 0);
  return store;
}

#define FIRST "app-20261128T021500Z-00000003-4711.ljp"
#define SECOND "app-20261128T021600Z-00000004-4711.ljp"
/* The clock was set back. */
#define THIRD "app-20250101T000000Z-00000005-4711.ljp"

static void put_rotated(void)
{
  put_file("rotated.ljp", FIRST, -1);
  put_file("rotated.ljp.s1", SECOND, -1);
  put_file("rotated.ljp.s2", THIRD, -1);
}

static void segments_come_in_the_order_of_their_sequence(void **state)
{
  (void)state;
  put_rotated();
  struct ljp_store store = looked();
  static const char *const wanted[] = {FIRST, SECOND, THIRD};
  assert_int_equal(store.count, 3);
  for (unsigned i = 0; i < 3; i++) {
    const struct ljp_segment *s = &store.segments[i];
    assert_string_equal(s->name, wanted[i]);
    assert_string_equal(s->made.service, "app");
    assert_int_equal(s->number, i);
    assert_true(s->stream && s->stream == store.segments[0].stream);
    assert_true(!i || s->first_seq > s[-1].first_seq);
    assert_false(s->open || s->alive || s->merged);
    assert_null(s->error);
    assert_non_null(s->executable);
    assert_true(s->start_wall_ns && s->start_mono_ns);
  }
  ljp_store_close(&store);
}

/* The first segment is not open, but its session's process lives. */
static void a_locked_segment_is_open_until_the_lock_goes(void **state)
{
  (void)state;
  put_rotated();
  int fd = open(in_folder(THIRD), O_WRONLY | O_CLOEXEC);
  assert_int_equal(ljp_store_lock(fd), 0);
  struct ljp_store store = looked();
  assert_false(store.segments[0].open);
  assert_true(store.segments[0].alive);
  assert_true(store.segments[2].open && store.segments[2].alive);
  close(fd);
  assert_int_equal(ljp_store_look(&store), 0);
  assert_int_equal(store.count, 3);
  for (unsigned i = 0; i < 3; i++)
    assert_false(store.segments[i].open || store.segments[i].alive);
  ljp_store_close(&store);
}

static void files_of_other_names_are_ordered_by_session(void **state)
{
  (void)state;
  put_file("rotated.ljp", "a.ljp", -1);
  put_file("rotated.ljp.s1", "a.ljp.s1", -1);
  put_file("rotated.ljp.s2", "a.ljp.s10", -1);
  struct ljp_store store = looked();
  assert_int_equal(store.count, 3);
  assert_string_equal(store.segments[0].name, "a.ljp");
  assert_string_equal(store.segments[1].name, "a.ljp.s1");
  assert_string_equal(store.segments[2].name, "a.ljp.s10");
  assert_int_equal(store.segments[0].made.sequence, 0);
  assert_true(ljp_store_service_valid(store.segments[0].made.service));
  ljp_store_close(&store);
}

static void what_is_no_stream_is_in_the_list_with_the_reason(void **state)
{
  (void)state;
  put_rotated();
  FILE *f = fopen(in_folder("app-20261128T021500Z-00000001-9.ljp"), "w");
  fputs("this is no stream at all\n", f);
  fclose(f);
  f = fopen(in_folder("app-20261128T021500Z-00000002-9.ljp"), "w");
  fclose(f);
  mkdir(in_folder("folder.ljp"), 0700);
  mkfifo(in_folder("fifo.ljp"), 0600);
  assert_int_equal(symlink("nowhere", in_folder("link.ljp")), 0);
  put_file("rotated.ljp", ".hidden.ljp", -1);
  put_file("rotated.ljp", "x.ljp.ljp-12-0", -1);
  put_file("rotated.ljp", "x.ljp-12.ljp", -1); /* is no temporary file */
  struct ljp_store store = looked();
  assert_int_equal(store.count, 6);
  assert_non_null(store.segments[0].error);
  assert_non_null(store.segments[1].error);
  for (unsigned i = 2; i < 6; i++)
    assert_null(store.segments[i].error);
  ljp_store_close(&store);
}

/* The beginning is damaged: what follows still says whose the segment is, or it
** is a segment of an unknown process. */
static void a_damaged_beginning_does_not_hide_a_segment(void **state)
{
  (void)state;
  put_rotated();
  put_file("rotated.ljp.s1", SECOND, 8);
  struct ljp_store store = looked();
  assert_int_equal(store.count, 3);
  assert_string_equal(store.segments[1].name, SECOND);
  assert_null(store.segments[1].error);
  assert_int_equal(store.segments[1].stream, store.segments[0].stream);
  ljp_store_close(&store);
}

static void a_name_that_means_another_file_is_not_opened(void **state)
{
  (void)state;
  put_rotated();
  struct ljp_store store = looked();
  int fd = ljp_store_open_segment(&store, &store.segments[0]);
  assert_true(fd >= 0);
  close(fd);
  put_file("rotated.ljp", "new", -1);
  char from[300];
  snprintf(from, sizeof from, "%s", in_folder("new"));
  assert_int_equal(rename(from, in_folder(FIRST)), 0);
  assert_int_equal(ljp_store_open_segment(&store, &store.segments[0]), -1);
  assert_int_equal(errno, ENOENT);
  unlink(in_folder(SECOND));
  static struct ljp_reader reader;
  bool gone = false;
  assert_int_not_equal(
      ljp_store_read(&store, &store.segments[1], &reader, &gone), LJP_OK);
  assert_true(gone && *reader.error);
  ljp_reader_fini(&reader);
  ljp_store_close(&store);
}

static void a_second_look_finds_what_has_come_and_gone(void **state)
{
  (void)state;
  put_file("rotated.ljp", FIRST, -1);
  put_file("rotated.ljp.s1", SECOND, -1);
  struct ljp_store store = looked();
  assert_int_equal(store.count, 2);
  unlink(in_folder(FIRST));
  put_file("rotated.ljp.s2", THIRD, -1);
  assert_int_equal(ljp_store_look(&store), 0);
  assert_int_equal(store.count, 2);
  assert_string_equal(store.segments[0].name, SECOND);
  assert_int_equal(store.segments[0].number, 1);
  assert_non_null(store.segments[0].executable);
  assert_string_equal(store.segments[1].name, THIRD);
  assert_int_equal(store.segments[1].number, 2);
  ljp_store_close(&store);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(segments_come_in_the_order_of_their_sequence),
      TEST(a_locked_segment_is_open_until_the_lock_goes),
      TEST(files_of_other_names_are_ordered_by_session),
      TEST(what_is_no_stream_is_in_the_list_with_the_reason),
      TEST(a_damaged_beginning_does_not_hide_a_segment),
      TEST(a_name_that_means_another_file_is_not_opened),
      TEST(a_second_look_finds_what_has_come_and_gone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
