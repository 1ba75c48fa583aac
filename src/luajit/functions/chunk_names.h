/*
** Names of chunks, one copy each: those of the functions in it, however many
** there are. Under the lock of prototypes (protos.c), on any thread.
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

/* For one more prototype, which is alive. The hash tells names apart that are not
** the same; the same name with another hash is another copy. NULL: no memory. */
struct ljp_chunk_name *ljp_chunk_name_get(const char *name, size_t length,
                                          uint32_t hash);
/* One of its prototypes is freed; is forgotten (then it has been freed). */
void ljp_chunk_name_dies(struct ljp_chunk_name *chunk);
void ljp_chunk_name_put(struct ljp_chunk_name *chunk);

/* Bytes of names that only freed prototypes still use. */
size_t ljp_chunk_names_dead_bytes(void);

#endif
