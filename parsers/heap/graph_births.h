/*
** The births of all nodes of a graph (parsers/profile/births.h), and in sampled
** sessions what bounds the age of those without. One thread.
**
** The walk that makes a snapshot meets objects from the youngest to the oldest,
** strings apart. So the age of an object lies between those of the nearest
** sampled objects before and after it. Exceptions, which the bounds do not know:
** closed upvalues and cdata after their finalization count as young again.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_BIRTHS_H
#define LJP_PARSERS_HEAP_GRAPH_BIRTHS_H

#include "parsers/heap/graph.h"
#include "parsers/profile/births.h"

struct ljp_graph_births {
  const struct ljp_births *births;
  /* By node: the place in births->list, + 1; 0: none. younger, older: of the
  ** nearest neighbours with a birth, for nodes without one that may have a
  ** neighbour (not strings, not parts of the VM). */
  uint32_t *birth, *younger, *older;
};

/* births: outlives it. LJP_ERR_MEM; then there is nothing to free. */
enum ljp_status ljp_graph_births_init(struct ljp_graph_births *of,
                                      const struct ljp_graph *graph,
                                      const struct ljp_births *births);
void ljp_graph_births_fini(struct ljp_graph_births *of);

static inline const struct ljp_birth *
ljp_graph_birth(const struct ljp_graph_births *of, uint32_t node)
{
  uint32_t at = of->birth[node];
  return at ? &of->births->list[at - 1] : NULL;
}

#endif
