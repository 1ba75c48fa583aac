/*
** Dominators: which node of a graph lies on every path from the root to
** another one, and what each node retains: its own weight and that of all nodes
** that it dominates. Semi-NCA, in O(edges * log(nodes)) in practice; iterative,
** 24 bytes a node (without the results) and 4 an edge while it works, or 12 and at
** most 12 for a moment. Any thread.
*/
#ifndef LJP_PARSERS_HEAP_DOMINATORS_H
#define LJP_PARSERS_HEAP_DOMINATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"

#define LJP_DOMINATED_BY_NONE UINT32_MAX

/* Node 0 is the root. The edges of node i are target[first[i]] ...
** target[first[i + 1] - 1]; those with a bit of `ignored` in how[] do not
** count. */
struct ljp_dominators_graph {
  uint32_t count;
  const uint32_t *first, *target;
  const uint8_t *how;
  uint8_t ignored;
};

/* Fills for each node: dominator[], its immediate dominator (0 for the root;
** LJP_DOMINATED_BY_NONE: the node is not reachable), and retained[], which
** holds the node's own weight before. Unreachable nodes keep theirs. */
enum ljp_status ljp_dominators(const struct ljp_dominators_graph *graph,
                               uint32_t *dominator, uint64_t *retained);

#endif
