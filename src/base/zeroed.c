/*
** See zeroed.h. For AddressSanitizer it is a block as any other: it does not look for
** pointers in mapped memory, and would call blocks lost that only such memory refers to.
*/
#include "src/base/zeroed.h"

#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__ /* gcc */
#define ZEROED_BY_CALLOC 1
#elif defined __has_feature /* clang */
#if __has_feature(address_sanitizer)
#define ZEROED_BY_CALLOC 1
#endif
#endif

#ifdef ZEROED_BY_CALLOC

void *ljp_zeroed_new(size_t bytes)
{
  return calloc(1, bytes);
}

void ljp_zeroed_free(void *memory, size_t bytes)
{
  (void)bytes;
  free(memory);
}

#else

void *ljp_zeroed_new(size_t bytes)
{
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void ljp_zeroed_free(void *memory, size_t bytes)
{
  if (memory)
    munmap(memory, bytes);
}

#endif
