/*
** The references of a graph while it is read: their room, and their targets, which
** are found many at a time. Only for graph_read.c.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_REFS_H
#define LJP_PARSERS_HEAP_GRAPH_REFS_H

#include "parsers/heap/addresses.h"
#include "parsers/heap/graph.h"

#define LJP_GRAPH_TARGETS 64u

struct ljp_graph_refs {
  struct ljp_heap_addresses nodes;
  /* References whose targets have not been looked for yet. */
  struct {
    uint64_t address;
    uint32_t ref;
    bool key; /* A KEY; the next reference is its FIELD. */
  } list[LJP_GRAPH_TARGETS];
  unsigned count;
};

/* Begins when all nodes are known: node 0 gets its references. g->ref_count is the
** number of references that are expected. */
enum ljp_status ljp_graph_refs_begin(struct ljp_graph_refs *refs,
                                     struct ljp_graph *g);

/* Makes sure that the next two references are looked for together. */
void ljp_graph_refs_pair(struct ljp_graph_refs *refs, struct ljp_graph *g);

/* Adds a reference. key: see above. */
enum ljp_status ljp_graph_refs_add(struct ljp_graph_refs *refs,
                                   struct ljp_graph *g, uint64_t address,
                                   unsigned how, uint32_t name, bool key);

/* Finds the targets of all references in list[]. */
void ljp_graph_refs_find(struct ljp_graph_refs *refs, struct ljp_graph *g);

/* Takes out the references whose targets are not in the snapshot. */
void ljp_graph_refs_drop_missing(struct ljp_graph *g);

#endif
