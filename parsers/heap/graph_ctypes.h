/*
** The C types of a graph. Only for graph_read.c.
*/
#ifndef LJP_PARSERS_HEAP_GRAPH_CTYPES_H
#define LJP_PARSERS_HEAP_GRAPH_CTYPES_H

#include "parsers/heap/graph.h"

enum ljp_status ljp_graph_ctypes_take(struct ljp_graph *g,
                                      const struct ljp_rec_heap_type *type);

/* Gives them their names, when all references are known. */
enum ljp_status ljp_graph_ctypes_name(struct ljp_graph *g);

#endif
