/*
** The stack tree: interned nodes, each a parent and a stable frame word. A
** node's id is base + its index. Ids grow over the session and are never used
** again: when the table is full, it is cleared and base moves on.
** Invariants: a parent's index is smaller than its child's. Memory is at most
** 24 bytes for each of max nodes (2^18 nodes: 6 MiB), and half as much again
** while it grows. Writer thread only.
**
** A stable word is a frame word (format.h) whose payload stays true: a
** prototype is a number of proto_numbers.h, an address is a module and an
** offset.
*/
#ifndef LJP_INTERN_H
#define LJP_INTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

struct ljp_node {
  uint64_t word;
  uint32_t parent; /* Index, LJP_NO_NODE at a root. */
  uint32_t epoch;  /* In which it was last written; 0: not yet. */
};
_Static_assert(sizeof(struct ljp_node) == 16, "stated above");

#define LJP_NO_NODE UINT32_MAX

struct ljp_intern {
  struct ljp_node *nodes;
  uint32_t *slots; /* Index + 1; 0: empty. Not every node has one. */
  uint32_t count, capacity, max;
  uint32_t used_slots, slot_count;
  uint64_t base;       /* Id of node 0. */
  uint32_t generation; /* Grows with each clearing. */
};

/* max: a power of two. Starts small and doubles up to it. */
enum ljp_status ljp_intern_init(struct ljp_intern *t, uint32_t max);
void ljp_intern_fini(struct ljp_intern *t);
void ljp_intern_clear(struct ljp_intern *t);
/* Clears the table, but keeps the nodes i with map[i], which has their ancestors,
** too. They get new indexes and ids: map[i] becomes the new index. */
void ljp_intern_keep(struct ljp_intern *t, uint32_t *map);

/* Finds or adds the nodes of n words, each a child of the one before and the
** first a child of parent, and sets chain[]. Returns how many there are: fewer
** than n if there is no room or no memory for another node. Then clear the
** table and begin again. */
unsigned ljp_intern_path(struct ljp_intern *t, uint32_t parent,
                         const uint64_t *words, unsigned n, uint32_t *chain);

static inline uint64_t ljp_intern_id(const struct ljp_intern *t, uint32_t index)
{
  return index == LJP_NO_NODE ? 0 : t->base + index;
}

#endif
