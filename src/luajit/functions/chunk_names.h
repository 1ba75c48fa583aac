/*
** Names of chunks: one copy of each name for all functions of the chunk. Under
** the lock of prototypes (prototypes.c), on any thread.
*/
#ifndef LJP_CHUNK_NAMES_H
#define LJP_CHUNK_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct ljp_chunk_name {
  struct ljp_chunk_name *next; /* in its hash chain */
  uint32_t users;              /* entries of prototypes in the chunk */
  uint32_t alive;              /* those whose prototype is not freed yet */
  uint32_t hash;
  uint32_t length;
  char name[];
};

/* Adds a user, which is alive. Different names may have the same hash; the same
** name with another hash is another copy. NULL: no memory. */
struct ljp_chunk_name *ljp_chunk_name_get(const char *name, size_t length,
                                          uint32_t hash);
/* Called when one of its prototypes is freed, and later when the prototype's
** entry is freed. */
void ljp_chunk_name_dies(struct ljp_chunk_name *chunk);
void ljp_chunk_name_put(struct ljp_chunk_name *chunk);

/* Bytes of names that only freed prototypes use. */
size_t ljp_chunk_names_dead_bytes(void);

#endif
