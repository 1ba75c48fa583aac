/*
** Reads the nodes and references of a graph from a file; see graph.h. Only for
** graph.c.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_READ_H
#define LJP_PARSERS_HEAP_GRAPH_READ_H

#include "parsers/heap/graph.h"

/* graph: zeroed. number: as in ljp_graph_load(). */
enum ljp_status ljp_graph_read(struct ljp_graph *graph, const char *path,
                               uint32_t number);

#endif
