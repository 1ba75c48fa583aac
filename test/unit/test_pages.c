/*
** Memory for large tables: zeroed, aligned where large pages are wanted, and given
** back by pieces.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "parsers/base/pages.h"

enum { SMALL = 4096 };

/* The kernel's answers to mmap(), if a test makes them: `off` bytes beyond a large
** page, as before Linux 6.7. */
static size_t off, mapped, unmapped;

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                  off_t from);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                  off_t from);
int __wrap_munmap(void *at, size_t bytes);

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                  off_t from)
{
  char *got =
      __real_mmap(at, bytes + 2 * LJP_PAGES_LARGE, prot, flags, fd, from);
  if (got == MAP_FAILED)
    return MAP_FAILED;
  size_t before = -(uintptr_t)got % LJP_PAGES_LARGE + off;
  __real_munmap(got, before);
  __real_munmap(got + before + bytes, 2 * LJP_PAGES_LARGE - before);
  mapped += bytes;
  return got + before;
}

int __wrap_munmap(void *at, size_t bytes)
{
  unmapped += bytes;
  return __real_munmap(at, bytes);
}

static bool zeroed(const char *memory, size_t bytes)
{
  return !*memory && !memcmp(memory, memory + 1, bytes - 1);
}

/* Takes memory, uses all of it, and gives it back. */
static void take_whole(size_t bytes)
{
  mapped = unmapped = 0;
  char *memory = ljp_pages_take(bytes);
  assert_non_null(memory);
  assert_int_equal((uintptr_t)memory % LJP_PAGES_LARGE, 0);
  assert_int_equal(mapped - unmapped, bytes);
  assert_true(zeroed(memory, bytes));
  memset(memory, 1, bytes);
  ljp_pages_give_back(memory, bytes);
  assert_int_equal(mapped, unmapped);
}

static void large_pages_are_aligned_whatever_the_kernel_maps(void **state)
{
  (void)state;
  for (size_t pages = 1; pages <= 3; pages++)
    for (off = 0; off < LJP_PAGES_LARGE; off += LJP_PAGES_LARGE / 4)
      take_whole(pages * LJP_PAGES_LARGE);
  off = SMALL;
  take_whole(LJP_PAGES_LARGE);
  off = LJP_PAGES_LARGE - SMALL;
  take_whole(LJP_PAGES_LARGE);
  off = 0;
}

static void other_sizes_are_ordinary_memory(void **state)
{
  (void)state;
  mapped = 0;
  char *memory = ljp_pages_take(SMALL);
  assert_non_null(memory);
  assert_int_equal(mapped, 0);
  assert_true(zeroed(memory, SMALL));
  ljp_pages_give_back(memory, SMALL);
  ljp_pages_give_back(NULL, LJP_PAGES_LARGE);
}

static void items_are_zeroed(void **state)
{
  (void)state;
  enum { COUNT = 1 << 20, ITEM = 7 };
  char *items = ljp_pages_items(COUNT, ITEM);
  assert_non_null(items);
  assert_true(zeroed(items, (size_t)COUNT * ITEM));
  memset(items, 1, (size_t)COUNT * ITEM);
  free(items);
}

static void what_is_done_reads_as_zeros_and_the_rest_is_kept(void **state)
{
  (void)state;
  const size_t bytes = 4 * LJP_PAGES_LARGE;
  char *memory = ljp_pages_take(bytes);
  size_t given = 0;
  assert_non_null(memory);
  memset(memory, 1, bytes);
  ljp_pages_release(memory, bytes, LJP_PAGES_LARGE - 1, &given);
  assert_int_equal(given, 0);
  assert_int_equal(memory[0], 1);
  ljp_pages_release(memory, bytes, 2 * LJP_PAGES_LARGE + 1, &given);
  assert_int_equal(given, 2 * LJP_PAGES_LARGE);
  assert_true(zeroed(memory, given));
  assert_int_equal(memory[given], 1);
  memset(memory, 1, given);
  ljp_pages_release(memory, bytes, 3 * LJP_PAGES_LARGE, &given);
  assert_int_equal(given, 3 * LJP_PAGES_LARGE);
  assert_int_equal(memory[2 * LJP_PAGES_LARGE - 1], 1);
  assert_true(zeroed(memory + 2 * LJP_PAGES_LARGE, LJP_PAGES_LARGE));
  assert_int_equal(memory[given], 1);
  ljp_pages_give_back(memory, bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_pages_are_aligned_whatever_the_kernel_maps),
      cmocka_unit_test(other_sizes_are_ordinary_memory),
      cmocka_unit_test(items_are_zeroed),
      cmocka_unit_test(what_is_done_reads_as_zeros_and_the_rest_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
