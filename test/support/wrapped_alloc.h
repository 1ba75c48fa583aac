/*
** malloc() and its kin, and mmap(), wrapped by the linker (ljp_wrap_malloc() in
** test/CMakeLists.txt): they count what is allocated, and the n-th allocation
** can be made to fail. For one thread; a test includes this in its only source
** file.
*/
#ifndef LJP_TEST_WRAPPED_ALLOC_H
#define LJP_TEST_WRAPPED_ALLOC_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static size_t alloc_bytes, alloc_peak, alloc_live;
static long alloc_fail_at; /* 0, or the n-th from now on fails. */

static bool alloc_fails(void)
{
  return alloc_fail_at > 0 && --alloc_fail_at == 0;
}

/* The counted blocks: free() also gets blocks that libc has allocated itself. */
enum { KNOWN_MAX = 1 << 18 };
static void *alloc_known[KNOWN_MAX];

static size_t alloc_slot(const void *p)
{
  size_t at = (uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15) >> 46;
  while (alloc_known[at] && alloc_known[at] != p)
    at = (at + 1) % KNOWN_MAX;
  return at;
}

static void *alloc_count(void *p)
{
  if (p) {
    alloc_known[alloc_slot(p)] = p;
    alloc_live++;
    alloc_bytes += malloc_usable_size(p);
    if (alloc_bytes > alloc_peak)
      alloc_peak = alloc_bytes;
  }
  return p;
}

static void alloc_uncount(void *p)
{
  size_t at = p ? alloc_slot(p) : 0;
  if (!p || !alloc_known[at])
    return;
  alloc_live--;
  alloc_bytes -= malloc_usable_size(p);
  alloc_known[at] = NULL;
  /* Blocks in the slots after it must be found again. */
  for (at = (at + 1) % KNOWN_MAX; alloc_known[at]; at = (at + 1) % KNOWN_MAX) {
    void *other = alloc_known[at];
    alloc_known[at] = NULL;
    alloc_known[alloc_slot(other)] = other;
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
  return alloc_fails() ? NULL : alloc_count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
  return alloc_fails() ? NULL : alloc_count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
  if (alloc_fails())
    return NULL;
  alloc_uncount(p);
  void *bigger = __real_realloc(p, size);
  return alloc_count(bigger ? bigger : p) ? bigger : NULL;
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
  return alloc_fails() ? NULL : alloc_count(__real_aligned_alloc(align, size));
}

void __wrap_free(void *p)
{
  alloc_uncount(p);
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
  if (alloc_fails())
    return MAP_FAILED;
  alloc_bytes += len;
  if (alloc_bytes > alloc_peak)
    alloc_peak = alloc_bytes;
  return __real_mmap(at, len, prot, flags, fd, off);
}

int __wrap_munmap(void *at, size_t len)
{
  alloc_bytes -= len;
  return __real_munmap(at, len);
}

#endif
