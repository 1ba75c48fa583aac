/*
** Memory for large tables: mmap() where whole large pages are wanted, else
** calloc().
*/
#include "parsers/base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void *ljp_pages_take(size_t bytes)
{
  if (bytes % LJP_PAGES_LARGE)
    return calloc(1, bytes);
  const int prot = PROT_READ | PROT_WRITE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char *at = mmap(NULL, bytes, prot, flags, -1, 0);
  if (at != MAP_FAILED && (uintptr_t)at % LJP_PAGES_LARGE) {
    /* Newer kernels align it. For older ones, map more and unmap the rest. */
    munmap(at, bytes);
    at = mmap(NULL, bytes + LJP_PAGES_LARGE, prot, flags, -1, 0);
    if (at != MAP_FAILED) {
      size_t before = LJP_PAGES_LARGE - (uintptr_t)at % LJP_PAGES_LARGE;
      munmap(at, before);
      at += before;
      if (before < LJP_PAGES_LARGE)
        munmap(at + bytes, LJP_PAGES_LARGE - before);
    }
  }
  if (at == MAP_FAILED)
    return NULL;
  madvise(at, bytes, MADV_HUGEPAGE); /* A hint; failure is no error. */
  return at;
}

void ljp_pages_give_back(void *memory, size_t bytes)
{
  if (bytes % LJP_PAGES_LARGE)
    free(memory);
  else if (memory)
    munmap(memory, bytes);
}

void ljp_pages_hint(void *memory, size_t bytes)
{
  size_t before = -(uintptr_t)memory % LJP_PAGES_LARGE;
  if (bytes >= before + LJP_PAGES_LARGE)
    madvise((char *)memory + before,
            (bytes - before) / LJP_PAGES_LARGE * LJP_PAGES_LARGE,
            MADV_HUGEPAGE);
}

void *ljp_pages_items(size_t count, size_t item_bytes)
{
  void *memory = calloc(count, item_bytes);
  if (memory)
    ljp_pages_hint(memory, count * item_bytes);
  return memory;
}

void ljp_pages_release(void *memory, size_t bytes, size_t done, size_t *given)
{
  size_t whole = done - done % LJP_PAGES_LARGE;
  if (bytes % LJP_PAGES_LARGE || whole <= *given)
    return;
  madvise((char *)memory + *given, whole - *given, MADV_DONTNEED);
  *given = whole;
}
