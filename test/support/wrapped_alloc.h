/*
** malloc and its kin, and mmap, wrapped by the linker (cmake: ljp_wrap_malloc()): what
** is allocated is counted, and the n-th allocation can be made to fail. Of
** one thread; included by the one file of a test that is its program.
*/
#ifndef LJP_TEST_WRAPPED_ALLOC_H
#define LJP_TEST_WRAPPED_ALLOC_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static size_t bytes, peak, live;
static long fail_at; /* The n-th from now on fails; 0: none. */

static bool fails(void)
{
  return fail_at > 0 && --fail_at == 0;
}

/* What was counted: free() also gets what libc has allocated by itself. */
enum { KNOWN_MAX = 1 << 18 };
static void *known[KNOWN_MAX];

static size_t known_at(const void *p)
{
  size_t at = (uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15) >> 46;
  while (known[at] && known[at] != p)
    at = (at + 1) % KNOWN_MAX;
  return at;
}

static void *count(void *p)
{
  if (p) {
    known[known_at(p)] = p;
    live++;
    bytes += malloc_usable_size(p);
    if (bytes > peak)
      peak = bytes;
  }
  return p;
}

static void uncount(void *p)
{
  size_t at = p ? known_at(p) : 0;
  if (!p || !known[at])
    return;
  live--;
  bytes -= malloc_usable_size(p);
  known[at] = NULL;
  /* Those behind it are to be found again. */
  for (at = (at + 1) % KNOWN_MAX; known[at]; at = (at + 1) % KNOWN_MAX) {
    void *other = known[at];
    known[at] = NULL;
    known[known_at(other)] = other;
  }
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

void *__wrap_malloc(size_t size)
{
  return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
  return fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
  if (fails())
    return NULL;
  uncount(p);
  void *bigger = __real_realloc(p, size);
  return count(bigger ? bigger : p) ? bigger : NULL;
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
  return fails() ? NULL : count(__real_aligned_alloc(align, size));
}

void __wrap_free(void *p)
{
  uncount(p);
  __real_free(p);
}

char *__wrap_strndup(const char *s, size_t n)
{
  size_t len = strnlen(s, n);
  char *copy = __wrap_malloc(len + 1);
  if (copy) {
    memcpy(copy, s, len);
    copy[len] = '\0';
  }
  return copy;
}

char *__wrap_strdup(const char *s)
{
  return __wrap_strndup(s, strlen(s));
}

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __real_munmap(void *at, size_t len);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_munmap(void *at, size_t len);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
  if (fails())
    return MAP_FAILED;
  bytes += len;
  if (bytes > peak)
    peak = bytes;
  return __real_mmap(at, len, prot, flags, fd, off);
}

int __wrap_munmap(void *at, size_t len)
{
  bytes -= len;
  return __real_munmap(at, len);
}

#endif
