/* Fault-safe reads: what cannot be read is unknown. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/saferead.h"

enum { PAGE = 4096 };

/* cmocka installs a SIGSEGV handler for each test; ours goes on top of it. */
static void with_install(void **state)
{
  void (*body)(void **);
  memcpy(&body, state, sizeof body);
  assert_int_equal(ljp_saferead_install(), LJP_OK);
  body(NULL);
  ljp_saferead_remove();
}

static char *map(int protection)
{
  char *page = mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(page, MAP_FAILED);
  return page;
}

static void a_readable_word_is_read(void **state)
{
  uint64_t word = UINT64_C(0x1122334455667788), out = 0;
  (void)state;
  assert_true(ljp_safe_load(&word, &out));
  assert_true(out == word);
}

static void what_is_not_there_is_unknown(void **state)
{
  uint64_t out = 5;
  (void)state;
  char *none = map(PROT_NONE), *gone = map(PROT_READ);
  munmap(gone, PAGE);
  assert_false(ljp_safe_load(none + 8, &out));
  assert_false(ljp_safe_load(gone, &out));
  assert_false(ljp_safe_load(NULL, &out));
  assert_false(ljp_safe_load((void *)8, &out));
  assert_false(ljp_safe_load((void *)(uintptr_t)0x7ffffffff000, &out));
  assert_false(ljp_safe_load((void *)(uintptr_t)0x800000000000, &out));
  assert_false(ljp_safe_load((void *)(uintptr_t)0xffffffffff600000, &out));
  assert_false(ljp_safe_load((void *)(uintptr_t)0x5a5a5a5a5a5a5a58, &out));
  assert_int_equal(out, 5);
  munmap(none, PAGE);
}

static void an_odd_address_is_refused(void **state)
{
  uint64_t words[2] = {1, 2}, out = 5;
  (void)state;
  assert_false(ljp_safe_load((char *)words + 3, &out));
  assert_int_equal(out, 5);
}

static void beyond_the_end_of_a_mapped_file_is_unknown(void **state)
{
  char name[] = "/tmp/ljp-saferead-XXXXXX";
  uint64_t out = 5;
  (void)state;
  int fd = mkstemp(name);
  assert_true(fd >= 0);
  unlink(name);
  assert_int_equal(ftruncate(fd, PAGE), 0);
  char *file = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
  assert_ptr_not_equal(file, MAP_FAILED);
  assert_true(ljp_safe_load(file + PAGE - 8, &out));
  out = 5;
  assert_false(ljp_safe_load(file + PAGE, &out)); /* SIGBUS */
  assert_int_equal(out, 5);
  munmap(file, 2 * PAGE);
  close(fd);
}

static void a_copy_ends_where_memory_does(void **state)
{
  (void)state;
  char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char out[64];
  assert_ptr_not_equal(pages, MAP_FAILED);
  for (int i = 0; i < PAGE; i++)
    pages[i] = (char)(i * 7);
  mprotect(pages + PAGE, PAGE, PROT_NONE);
  for (size_t left = 0; left < 41; left++)
    for (size_t size = 0; size < 47; size++) {
      size_t expect = size < left ? size : left;
      memset(out, '?', sizeof out);
      assert_int_equal(ljp_safe_copy(out, pages + PAGE - left, size), expect);
      assert_memory_equal(out, pages + PAGE - left, expect);
      assert_int_equal(out[expect], '?');
    }
  munmap(pages, 2 * PAGE);
}

static void a_copy_from_where_nothing_is_yields_nothing(void **state)
{
  static const uint64_t from[] = {0,
                                  8,
                                  4088,
                                  UINT64_C(0x7fffffffffd8),
                                  UINT64_C(0x800000000000),
                                  UINT64_C(0xfffffffffffffff0),
                                  UINT64_C(0x5a5a5a5a5a5a5a58)};
  char out[64];
  (void)state;
  memset(out, '?', sizeof out);
  for (size_t i = 0; i < sizeof from / sizeof *from; i++)
    for (unsigned odd = 0; odd < 8; odd++)
      assert_int_equal(
          ljp_safe_copy(out, (void *)(uintptr_t)(from[i] + odd), 57), 0);
  for (size_t i = 0; i < sizeof out; i++)
    assert_int_equal(out[i], '?');
}

static void enter_says_no_when_not_installed(void **state)
{
  sigset_t none;
  (void)state;
  sigemptyset(&none);
  assert_true(ljp_saferead_enter(&none));
  ljp_saferead_remove();
  assert_false(ljp_saferead_enter(&none));
  assert_int_equal(ljp_saferead_install(), LJP_OK);
}

int main(void)
{
#define WITH(test)                                                             \
  {                                                                            \
#test, with_install, NULL, NULL, test                                      \
  }
  const struct CMUnitTest tests[] = {
      WITH(a_readable_word_is_read),
      WITH(what_is_not_there_is_unknown),
      WITH(an_odd_address_is_refused),
      WITH(beyond_the_end_of_a_mapped_file_is_unknown),
      WITH(a_copy_ends_where_memory_does),
      WITH(a_copy_from_where_nothing_is_yields_nothing),
      WITH(enter_says_no_when_not_installed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
