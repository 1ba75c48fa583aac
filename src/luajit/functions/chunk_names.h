/*
** Names of chunks: one copy of each, however many functions the chunk has. Under
** the lock of prototypes (prototypes.c), on any thread.
*/
#ifndef LJP_CHUNK_NAMES_H
#define LJP_CHUNK_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct ljp_chunk_name {
  struct ljp_chunk_name *next; /* in its hash chain */
  uint32_t users;              /* prototypes that are known to be in it */
  uint32_t alive;              /* of these, not freed yet */
  uint32_t hash;
  uint32_t length;
  char name[];
};

/* The name of one more prototype, which is alive. Different names need not have
** different hashes; the same name with another hash is another copy. NULL: no
** memory. */
struct ljp_chunk_name *ljp_chunk_name_get(const char *name, size_t length,
                                          uint32_t hash);
/* One of its prototypes was freed; later, its entry is. */
void ljp_chunk_name_dies(struct ljp_chunk_name *chunk);
void ljp_chunk_name_put(struct ljp_chunk_name *chunk);

/* Bytes of names that only freed prototypes still use. */
size_t ljp_chunk_names_dead_bytes(void);

#endif
