/*
** Function entries: what is kept about each prototype. Shared by prototypes.c,
** which makes entries, and holds.c, where entries of freed prototypes wait.
** Everything is under the lock of prototypes.
*/
#ifndef LJP_PROTO_ENTRIES_H
#define LJP_PROTO_ENTRIES_H

#include "src/luajit/functions/chunk_names.h"
#include "src/luajit/functions.h"

/* Bounds on the memory of entries that wait for writers. At the first bound,
** and at each multiple of it, the writers are called. Above the second,
** functions that are loaded get no entry, and so no name. */
#ifdef LJP_DEBUG
enum { LJP_PROTOS_CROWD_BYTES = 4 << 10 };
#else
enum { LJP_PROTOS_CROWD_BYTES = 1 << 20 };
#endif
enum { LJP_PROTOS_WAITING_BYTES = 64 << 20 };

/* A chunk is so large that calloc() maps fresh pages, which cost nothing until
** they are used: most hosts have few prototypes. */
enum { LJP_PROTO_CHUNK_ENTRIES = 4096, LJP_PROTO_ENTRY_CHUNKS = 4096 };
/* Number of holds; there are never more sessions. */
enum { LJP_HOLDS = 4 };

/* What describes a prototype. */
struct ljp_proto_text {
  bool described; /* false: only the name is known yet */
  uint32_t first_line, last_line;
  uint32_t flags;
  struct ljp_chunk_name *chunk;
  char *name; /* NULL: none */
};

struct ljp_proto_entry {
  uint64_t id;                 /* of its last prototype */
  struct GCproto *owner;       /* NULL: freed */
  struct ljp_proto_text *text; /* NULL: nothing yet */
  union {
    struct {
      uint32_t vm, number; /* index and number of its VM */
    };
    uint64_t death; /* if freed: the number of its death; 0: no hold waits */
  };
  uint32_t next; /* in the list of free, waiting or unnamed entries */
};

extern struct ljp_proto_entry *ljp_proto_entry_chunks[LJP_PROTO_ENTRY_CHUNKS];
/* All references ever used are below this one; 0 is no reference. */
extern uint32_t ljp_proto_entries_used;

static inline struct ljp_proto_entry *ljp_proto_entry_at(uint32_t ref)
{
  if (LJP_UNLIKELY(ref == 0 || ref >= ljp_proto_entries_used))
    return NULL;
  return &ljp_proto_entry_chunks[ref / LJP_PROTO_CHUNK_ENTRIES]
                                [ref % LJP_PROTO_CHUNK_ENTRIES];
}

/* Frees the entry for the next prototype. */
void ljp_proto_entry_free(struct ljp_proto_entry *entry, uint32_t ref);

/* Describes all prototypes that exist. */
void ljp_protos_describe_all(void);
/* Number of prototypes without an entry. */
uint64_t ljp_protos_unnamed(void);

/* -- holds.c ---------------------------------------------------------- */

/* Sessions that may ask about freed prototypes; NULL: none. */
extern struct ljp_guest_hold *ljp_proto_holds;

/* Call when the prototype of this entry has been freed while there is a
** hold. */
void ljp_proto_entry_wait(struct ljp_proto_entry *entry, uint32_t ref);

/* The memory of all waiting entries. */
size_t ljp_proto_waiting_bytes(void);

#endif
