/*
** Gathering: which objects bring memory together. One that only leads to another
** object, which has nearly as much, does not, unless it has many small ones
** besides. In a list (of tables, closures, coroutines) each object leads to the
** next one, and memory is lost on the way: its first object counts. One thread.
*/
#ifndef LJP_TOOLS_HEAP_GATHER_H
#define LJP_TOOLS_HEAP_GATHER_H

#include "tools/heap/show.h"

struct ljp_heap_gatherer {
  uint64_t bytes;
  uint32_t node;
  bool list; /* It is the first one of a list. */
};

struct ljp_heap_gatherers {
  struct ljp_heap_gatherer *list; /* Most bytes first. */
  uint32_t count, room;
};

/* bytes: by node, what it and all that it dominates have. Leaves out what has no
** more than a thousandth of all. On failure there is nothing to free. */
enum ljp_status ljp_heap_gather(const struct ljp_graph *g,
                                const uint64_t *bytes, uint64_t all,
                                struct ljp_heap_gatherers *found);
void ljp_heap_gatherers_fini(struct ljp_heap_gatherers *found);

/* The object as text, and whether a list begins there. */
void ljp_heap_cell_gatherer(struct ljp_heap_show *s,
                            const struct ljp_heap_gatherer *gatherer,
                            struct ljp_heap_text *object);

#endif
