/*
** The tree of dominators, downwards, and what groups of nodes retain in it.
** 8 bytes a node. One thread.
*/
#ifndef LJP_TOOLS_HEAP_TREE_H
#define LJP_TOOLS_HEAP_TREE_H

#include "parsers/heap/graph.h"

struct ljp_heap_tree {
  uint32_t *child, *sibling; /* By node; 0: none. */
};

#define LJP_HEAP_NO_GROUP UINT32_MAX

/* Of a group of nodes. */
struct ljp_heap_group {
  uint64_t objects, own;
  /* What the nodes retain, each byte once. Objects that only several of them
  ** together keep alive are not in it. Garbage retains itself only. */
  uint64_t retained;
  uint32_t open; /* While the tree is walked. */
};

enum ljp_status ljp_heap_tree_init(struct ljp_heap_tree *tree,
                                   const struct ljp_graph *g);
void ljp_heap_tree_fini(struct ljp_heap_tree *tree);

/* Adds each node to the sums of its group: of[node], or LJP_HEAP_NO_GROUP.
** sums + stride * group is where those of a group are. */
void ljp_heap_tree_add_up(const struct ljp_heap_tree *tree,
                          const struct ljp_graph *g, const uint32_t *of,
                          void *sums, size_t stride);

#endif
