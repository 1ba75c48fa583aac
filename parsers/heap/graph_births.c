/*
** See graph_births.h.
*/
#include "parsers/heap/graph_births.h"

#include <stdlib.h>

/* Has the walk met this node in the order of ages? */
static bool births_are_ordered(const struct ljp_graph *g, uint32_t node)
{
  return node && g->type[node] != LJP_MEM_TYPE_STRING &&
         g->type[node] <= LJP_MEM_TYPE_TRACE;
}

enum ljp_status ljp_graph_births_init(struct ljp_graph_births *of,
                                      const struct ljp_graph *g,
                                      const struct ljp_births *births)
{
  const size_t count = (size_t)g->count + 1;
  uint32_t younger = 0, older = 0;
  of->births = births;
  of->birth = calloc(count, sizeof *of->birth);
  of->younger = calloc(count, sizeof *of->younger);
  of->older = calloc(count, sizeof *of->older);
  if (!of->birth || !of->younger || !of->older) {
    ljp_graph_births_fini(of);
    return LJP_ERR_MEM;
  }
  for (uint32_t i = 1; i < g->count; i++) {
    const struct ljp_birth *b = ljp_births_find(births, g->address[i]);
    if (b)
      of->birth[i] = (uint32_t)(b - births->list) + 1;
    if (!births_are_ordered(g, i))
      continue;
    if (b)
      younger = of->birth[i];
    else
      of->younger[i] = younger;
  }
  for (uint32_t i = g->count; i-- > 1;) {
    if (!births_are_ordered(g, i))
      continue;
    if (of->birth[i])
      older = of->birth[i];
    else
      of->older[i] = older;
  }
  return LJP_OK;
}

void ljp_graph_births_fini(struct ljp_graph_births *of)
{
  free(of->birth);
  free(of->younger);
  free(of->older);
  of->birth = of->younger = of->older = NULL;
}
