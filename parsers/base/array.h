/*
** Growing arrays: room for one more item at the end of an array. One thread
** an array.
*/
#ifndef LJP_PARSERS_ARRAY_H
#define LJP_PARSERS_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/pages.h"
#include "src/base/sigsafe.h"

#ifdef LJP_DEBUG /* Makes arrays grow in every test. */
#define LJP_ARRAY_FIRST 2u
#else
#define LJP_ARRAY_FIRST 64u
#endif

/* The next larger size of a full array; 0: it cannot grow. */
static inline uint32_t ljp_array_more_room(uint32_t room)
{
  uint32_t more = room ? room + room / 2 + 1 : LJP_ARRAY_FIRST;
  return more > room ? more : 0;
}

/* Makes room for item number `count`. array_pointer is the address of the
** array's pointer. false: no memory; the array is unchanged. */
static inline bool ljp_array_reserve(void *array_pointer, uint32_t count,
                                     uint32_t *room, size_t item_bytes)
{
  void **array = array_pointer;
  if (LJP_LIKELY(count < *room))
    return true;
  uint32_t more = ljp_array_more_room(*room);
  if (!more)
    return false;
  void *bigger = realloc(*array, (size_t)more * item_bytes);
  if (!bigger)
    return false;
  *array = bigger;
  *room = more;
  return true;
}

/* Does the same for an array that is accessed in random order. The array
** begins at a cache line, so that no item crosses a line if its size divides
** LJP_CACHE_LINE_BYTES, and an item of whole lines touches no other line. */
#define LJP_CACHE_LINE_BYTES 64u
static inline bool ljp_array_reserve_lines(void *array_pointer, uint32_t count,
                                           uint32_t *room, size_t item_bytes)
{
  void **array = array_pointer;
  if (LJP_LIKELY(count < *room))
    return true;
  uint32_t more = ljp_array_more_room(*room);
  if (!more)
    return false;
  size_t bytes = (size_t)more * item_bytes;
  bytes += (LJP_CACHE_LINE_BYTES - bytes % LJP_CACHE_LINE_BYTES) %
           LJP_CACHE_LINE_BYTES;
  void *bigger = aligned_alloc(LJP_CACHE_LINE_BYTES, bytes);
  if (!bigger)
    return false;
  ljp_pages_hint(bigger, bytes);
  if (*array)
    memcpy(bigger, *array, (size_t)count * item_bytes);
  free(*array);
  *array = bigger;
  *room = more;
  return true;
}

#endif
