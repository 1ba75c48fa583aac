/*
** Function entries: what is kept about each prototype while there is a session.
** Shared by prototypes.c, which makes entries, and holds.c, where entries of
** freed prototypes wait. Everything is under the lock of prototypes.
*/
#ifndef LJP_PROTO_ENTRIES_H
#define LJP_PROTO_ENTRIES_H

#include "src/luajit/functions/chunk_names.h"
#include "src/luajit/functions.h"
#include "src/luajit/functions/slots.h"

/* Bounds on the memory of entries that wait for writers. At the first bound,
** and at each multiple of it, the writers are called. Above the second,
** functions that are loaded get no entry, and so no name. */
#ifdef LJP_DEBUG
enum { LJP_PROTOS_CROWD_BYTES = 4 << 10 };
#else
enum { LJP_PROTOS_CROWD_BYTES = 1 << 20 };
#endif
enum { LJP_PROTOS_WAITING_BYTES = 64 << 20 };

/* Number of holds; there are never more sessions. */
enum { LJP_HOLDS = 4 };

struct ljp_proto_entry {
  uint64_t id;    /* 0: no entry */
  uint64_t death; /* 0: the prototype has not been freed; else its number */
  struct ljp_chunk_name *chunk;
  uint32_t first_line, last_line;
  uint32_t flags; /* LJP_PROTO_UNKNOWN: the fields above are not filled yet */
  uint32_t name;  /* of a freed prototype (proto_names.h), else 0 */
  uint32_t next;  /* in the list of waiting entries */
};

/* Indexed like slots. */
extern struct ljp_proto_entry *ljp_proto_entry_chunks[LJP_SLOT_CHUNKS];

/* The entry of a reference. NULL: there is none. */
static inline struct ljp_proto_entry *ljp_proto_entry_at(uint32_t ref)
{
  if (LJP_UNLIKELY(ref == 0 || ref >= ljp_slots_used ||
                   !ljp_proto_entry_chunks[ref / LJP_SLOT_CHUNK]))
    return NULL;
  struct ljp_proto_entry *entry =
      &ljp_proto_entry_chunks[ref / LJP_SLOT_CHUNK][ref % LJP_SLOT_CHUNK];
  return entry->id ? entry : NULL;
}

/* Frees the entry of a freed prototype, and its slot. */
void ljp_proto_entry_free(struct ljp_proto_entry *entry, uint32_t ref);

/* Make an entry for each prototype that exists, and describe it: from the
** first one on; some more. False: that is done. */
void ljp_protos_describe_begin(void);
bool ljp_protos_describe_more(void);
/* Frees the entries of a chunk. Call for each chunk when there is no hold.
** False: there are no more chunks. */
bool ljp_protos_forget(uint32_t chunk);
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
