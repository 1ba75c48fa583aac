/*
** Births: the allocations of the blocks that were alive at the moment of a heap
** snapshot (RFC 7, section 5), for the objects of that snapshot. The profile
** collects them if options.births names the snapshot (graph.head.snapshot):
**
**   const struct ljp_birth *b = ljp_births_find(&p->births, object_address);
**   p->rows[b->row]             its stack (node); context: thread, VM, type
**
** An object without a birth was allocated before the session began or, if the
** session sampled, was not sampled; parsers/heap/graph_births.h bounds the age of
** those. Parts of tables, stacks and buffers are blocks with births of their own,
** but a snapshot does not tell their addresses.
**
** Read-only after ljp_profile_finish(); ljp_profile_fold() changes rows.
*/
#ifndef LJP_PARSERS_PROFILE_BIRTHS_H
#define LJP_PARSERS_PROFILE_BIRTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ljp_birth {
  uint64_t address;
  /* The identity of the object: the number of its allocation among those of the
  ** file. No other object of any snapshot of this file has it. */
  uint64_t event;
  uint64_t size;
  uint64_t weight; /* The bytes that a sampled block stands for; 0: exact. */
  uint32_t row;    /* In profile.rows[]. */
  uint32_t cycle;  /* GC cycles of its VM that had ended before. */
  uint32_t ms;     /* Since profile.origin_ns; saturates. */
};

struct ljp_births {
  struct ljp_birth *list; /* By address; no two have the same. */
  size_t count, room;
  bool found;          /* The moment of the snapshot is in the file. */
  uint64_t time_ns;    /* Of the moment, since profile.origin_ns. */
  uint64_t heap_bytes; /* As the VM counted them. */
  uint64_t before;     /* Allocations of the file before the moment. */
  uint32_t cycle;      /* GC cycles of the VM that had ended. */
};

/* NULL: there is none. */
const struct ljp_birth *ljp_births_find(const struct ljp_births *births,
                                        uint64_t address);

#endif
