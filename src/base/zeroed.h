/*
** Memory of zeros for large structs: a page takes time and memory when it is first
** touched. (calloc() would clear what malloc() has kept, in the host's time.)
*/
#ifndef LJP_ZEROED_H
#define LJP_ZEROED_H

#include <stddef.h>

/* NULL: there is no memory. */
void *ljp_zeroed_new(size_t bytes);
/* memory: may be NULL. */
void ljp_zeroed_free(void *memory, size_t bytes);

#endif
