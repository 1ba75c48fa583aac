/*
** Gathering: which objects bring memory together. One that only leads to another
** object, which has nearly as much, does not, unless it has many small ones
** besides. In a list (of tables, closures, coroutines) each object leads to the
** next one, and memory is lost on the way: its first object counts. What several
** objects hold belongs to the one on the shortest path. One thread.
*/
#ifndef LJP_TOOLS_HEAP_GATHER_H
#define LJP_TOOLS_HEAP_GATHER_H

#include "tools/heap/show.h"

enum { LJP_HEAP_GATHER_LEAST = 1000 }; /* All bytes / it are too few. */

/* What counts of each object. */
struct ljp_heap_weights {
  const struct ljp_graph *g;
  const uint64_t *bytes; /* By node: what it and all that it dominates have. */
  const uint32_t *without; /* By node: not 0: its own bytes do not count. NULL:
                           ** those of all do. */
  uint64_t all;
};

struct ljp_heap_gatherer {
  uint64_t bytes;
  uint32_t node;
  uint32_t objects; /* If it is shared. */
  bool list;        /* It is the first one of a list. */
  bool shared;      /* Others hold most of these bytes, too. */
  uint32_t other;   /* One of them, after ljp_heap_gather_others(). */
};

struct ljp_heap_gatherers {
  struct ljp_heap_gatherer *list; /* Most bytes first. */
  uint32_t count, room;
};

/* Leaves out what has no more than a thousandth of all. On failure there is nothing
** to free. */
enum ljp_status ljp_heap_gather(const struct ljp_heap_weights *weights,
                                struct ljp_heap_gatherers *found);
/* Its part for what is held by several; false: no memory. */
bool ljp_heap_gather_shared(const struct ljp_heap_weights *weights,
                            struct ljp_heap_gatherers *found);
/* Finds who else holds what the first `shown` ones hold; false: no memory. */
bool ljp_heap_gather_others(const struct ljp_graph *graph,
                            struct ljp_heap_gatherers *found, uint32_t shown);
void ljp_heap_gatherers_fini(struct ljp_heap_gatherers *found);

/* The object as text, whether a list begins there, and whether others hold the
** same. */
void ljp_heap_cell_gatherer(const struct ljp_graph *g, struct ljp_heap_show *s,
                            const struct ljp_heap_gatherer *gatherer,
                            struct ljp_heap_text *object);

/* A line about the first one, if there is any: "WHAT: _G.cache, 4.48 MiB". */
void ljp_heap_gatherer_line(const struct ljp_graph *g, struct ljp_heap_show *s,
                            const struct ljp_heap_gatherers *found,
                            const char *what);

#endif
