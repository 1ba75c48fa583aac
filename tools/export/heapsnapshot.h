/*
** What the files of the .heapsnapshot exporter share. No other folder includes
** it.
**
** Nodes of the file: those of the graph, in its order; then "(garbage)", if
** there is any; then the parts of objects (arrays and hashes of tables, stacks,
** buffers), in the order of their owners. One thread.
*/
#ifndef LJP_TOOLS_HEAPSNAPSHOT_H
#define LJP_TOOLS_HEAPSNAPSHOT_H

#include "parsers/heap/graph.h"
#include "tools/export/heap_births.h"
#include "tools/export/heap_names.h"

/* Types of nodes and edges, in the order of their numbers. */
#define LJP_HEAPSNAPSHOT_NODES(_)                                              \
  _(HIDDEN, "hidden")                                                          \
  _(ARRAY, "array")                                                            \
  _(STRING, "string")                                                          \
  _(OBJECT, "object")                                                          \
  _(CODE, "code")                                                              \
  _(CLOSURE, "closure")                                                        \
  _(REGEXP, "regexp")                                                          \
  _(NUMBER, "number")                                                          \
  _(NATIVE, "native")                                                          \
  _(SYNTHETIC, "synthetic")                                                    \
  _(CONS, "concatenated string")                                               \
  _(SLICED, "sliced string")                                                   \
  _(SYMBOL, "symbol")                                                          \
  _(BIGINT, "bigint")                                                          \
  _(SHAPE, "object shape")
#define LJP_HEAPSNAPSHOT_EDGES(_)                                              \
  _(CONTEXT, "context")                                                        \
  _(ELEMENT, "element")                                                        \
  _(PROPERTY, "property")                                                      \
  _(INTERNAL, "internal")                                                      \
  _(HIDDEN, "hidden")                                                          \
  _(SHORTCUT, "shortcut")                                                      \
  _(WEAK, "weak")

enum ljp_heapsnapshot_node {
#define LJP_X(name, text) LJP_NODE_##name,
  LJP_HEAPSNAPSHOT_NODES(LJP_X)
#undef LJP_X
};
enum ljp_heapsnapshot_edge {
#define LJP_X(name, text) LJP_EDGE_##name,
  LJP_HEAPSNAPSHOT_EDGES(LJP_X)
#undef LJP_X
};
#define LJP_HEAPSNAPSHOT_NODE_FIELDS 7u
#define LJP_HEAPSNAPSHOT_EDGE_FIELDS 3u

enum { LJP_HEAPSNAPSHOT_PARTS = 2 /* Of an object, at most. */ };

struct ljp_heapsnapshot {
  const struct ljp_graph *g;
  struct ljp_print *out;
  struct ljp_heap_names names;
  struct ljp_heap_births births;
  /* By node: the bytes of its parts; 0: none. Of strings, which have no parts,
  ** the length. */
  uint32_t *part[LJP_HEAPSNAPSHOT_PARTS];
  uint32_t garbage, part_count;
  bool numbered; /* Addresses are too far apart for ids. */
};

static inline uint32_t
ljp_heapsnapshot_part_bytes(const struct ljp_heapsnapshot *s, uint32_t node,
                            unsigned part)
{
  return s->g->type[node] == LJP_MEM_TYPE_STRING ? 0 : s->part[part][node];
}

/* "array part", "stack". */
const char *ljp_heapsnapshot_part(uint8_t type, unsigned part);

/* Writes the numbers of all edges. */
enum ljp_status ljp_heapsnapshot_edges(struct ljp_heapsnapshot *s);

#endif
