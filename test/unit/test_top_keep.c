/*
** What stays of the recording of a running program: tools/top/keep.c.
*/
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/top/keep.h"

enum { KIB = 1024 };

static struct ljp_keep keep;

/* With a quarter of the room for what has been read. */
static void begin(uint64_t quarter)
{
  int fd = memfd_create("keep", MFD_CLOEXEC);
  assert_true(fd >= 0);
  ljp_keep_init(&keep, fd, 4 * quarter);
}

/* The file grows to so many bytes. */
static void grow(uint64_t to)
{
  static char bytes[64 * KIB];
  struct stat st;
  memset(bytes, 'x', sizeof bytes);
  for (;;) {
    assert_int_equal(fstat(keep.fd, &st), 0);
    uint64_t left = to - (uint64_t)st.st_size;
    if (!left)
      return;
    size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
    assert_int_equal(pwrite(keep.fd, bytes, n, st.st_size), n);
  }
}

static uint64_t on_disk(void)
{
  struct stat st;
  assert_int_equal(fstat(keep.fd, &st), 0);
  return (uint64_t)st.st_blocks * 512;
}

static char byte_at(uint64_t offset)
{
  char byte = 0;
  assert_int_equal(pread(keep.fd, &byte, 1, (off_t)offset), 1);
  return byte;
}

static void hours_take_as_much_as_minutes(void **state)
{
  (void)state;
  enum { EPOCHS = 5003, EACH = 13 * KIB + 7 };
  begin(256 * KIB);
  for (uint64_t i = 0; i < EPOCHS; i++) {
    grow((i + 1) * EACH);
    ljp_keep_block(&keep, i * EACH, i, true);
    assert_true(on_disk() <= 256 * KIB + 2 * EACH + 2 * 4096);
  }
  /* What stays begins with an epoch, and nothing of it is lost. */
  assert_true(keep.freed > 60 * KIB * KIB);
  assert_int_equal(keep.freed, keep.epochs[0].offset);
  assert_int_equal(keep.freed, keep.epochs[0].time_ns * EACH);
  assert_true((uint64_t)EPOCHS * EACH - keep.freed >= 256 * KIB);
  assert_int_equal(byte_at(keep.freed), 'x');
  assert_int_equal(byte_at(keep.freed - 1), 0);
  close(keep.fd);
}

static void a_short_recording_stays_whole(void **state)
{
  (void)state;
  begin(256 * KIB);
  for (uint64_t i = 0; i < 17; i++) {
    grow((i + 1) * 11 * KIB);
    ljp_keep_block(&keep, i * 11 * KIB, i, true);
  }
  assert_int_equal(keep.freed, 0);
  assert_int_equal(keep.count, 17);
  assert_int_equal(byte_at(0), 'x');
  close(keep.fd);
}

static void an_epoch_larger_than_a_quarter_stays_alone(void **state)
{
  (void)state;
  begin(256 * KIB);
  grow(903 * KIB);
  ljp_keep_block(&keep, 0, 1, true);
  assert_int_equal(keep.freed, 0);
  ljp_keep_block(&keep, 601 * KIB, 2, true);
  assert_int_equal(keep.freed, 0); /* Of the new one nothing may be there. */
  ljp_keep_block(&keep, 880 * KIB, 3, true);
  assert_int_equal(keep.freed, 601 * KIB);
  close(keep.fd);
}

static void an_epoch_larger_than_all_is_freed_as_it_is_read(void **state)
{
  (void)state;
  enum { BLOCKS = 3001, EACH = 1 * KIB + 3 };
  begin(16 * KIB);
  for (uint64_t i = 0; i < BLOCKS; i++) {
    grow((i + 1) * EACH);
    ljp_keep_block(&keep, i * EACH, i, i == 0);
    assert_true(on_disk() <= 64 * KIB);
  }
  assert_true(keep.freed > 2900 * KIB);
  assert_int_equal(keep.count, 0);
  ljp_keep_block(&keep, BLOCKS * EACH, 7, true);
  assert_int_equal(keep.count, 1);
  assert_int_equal(keep.freed, BLOCKS * EACH);
  close(keep.fd);
}

static void many_small_epochs_are_dropped_one_by_one(void **state)
{
  (void)state;
  begin(1 << 28);
  grow(2000 * 101);
  for (uint64_t i = 0; i < 2000; i++)
    ljp_keep_block(&keep, i * 101, i, true);
  assert_int_equal(keep.count, LJP_KEEP_EPOCHS);
  assert_int_equal(keep.freed, (2000 - LJP_KEEP_EPOCHS) * 101);
  close(keep.fd);
}

static void what_cannot_be_freed_is_tried_again(void **state)
{
  (void)state;
  begin(64 * KIB);
  int fd = keep.fd;
  keep.fd = -1;
  ljp_keep_block(&keep, 0, 1, true);
  ljp_keep_block(&keep, 101 * KIB, 2, true);
  ljp_keep_block(&keep, 211 * KIB, 3, true);
  assert_int_equal(keep.freed, 0);
  keep.fd = fd;
  grow(400 * KIB);
  ljp_keep_block(&keep, 307 * KIB, 4, true);
  assert_int_equal(keep.freed, 211 * KIB);
  assert_int_equal(byte_at(0), 0);
  close(fd);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hours_take_as_much_as_minutes),
      cmocka_unit_test(a_short_recording_stays_whole),
      cmocka_unit_test(an_epoch_larger_than_a_quarter_stays_alone),
      cmocka_unit_test(an_epoch_larger_than_all_is_freed_as_it_is_read),
      cmocka_unit_test(many_small_epochs_are_dropped_one_by_one),
      cmocka_unit_test(what_cannot_be_freed_is_tried_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
