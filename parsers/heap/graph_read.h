/*
** Reads the nodes and references of a graph from a file; see graph.h. Only for
** graph.c.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_READ_H
#define LJP_PARSERS_HEAP_GRAPH_READ_H

#include "parsers/heap/graph.h"

struct ljp_graph_source {
  const char *path; /* NULL: bytes in memory. */
  const void *data;
  size_t size;
};

/* graph: zeroed. number: as in ljp_graph_load(). */
enum ljp_status ljp_graph_read(struct ljp_graph *graph,
                               const struct ljp_graph_source *source,
                               uint32_t number);

#endif
