/*
** Zeroed memory for large tables that are accessed in random order. Large pages
** are used where the system grants them: with small ones, translating an
** address costs as much as the access. Any thread.
*/
#ifndef LJP_PARSERS_PAGES_H
#define LJP_PARSERS_PAGES_H

#include <stddef.h>

#define LJP_PAGES_LARGE ((size_t)2 << 20)

/* NULL: no memory. Only sizes that are multiples of LJP_PAGES_LARGE get large
** pages. */
void *ljp_pages_take(size_t bytes);

/* bytes: as taken. */
void ljp_pages_give_back(void *memory, size_t bytes);

/* Asks for large pages for other memory that is accessed in random order. */
void ljp_pages_hint(void *memory, size_t bytes);

/* Zeroed memory for items, to be released by free(). Large pages are used if
** the items take many of them. NULL: no memory. */
void *ljp_pages_items(size_t count, size_t item_bytes);

/* The first `done` bytes are not needed any more, and read as zeros from now
** on. Call it with growing numbers; *given has how much the system got back. */
void ljp_pages_release(void *memory, size_t bytes, size_t done, size_t *given);

#endif
