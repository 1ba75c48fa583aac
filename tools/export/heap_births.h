/*
** What a .heapsnapshot file has of the allocations of the session in whose file
** the snapshot is: stacks as trace_tree, times as samples, and ids in the order
** of allocation. One thread.
*/
#ifndef LJP_TOOLS_HEAP_BIRTHS_H
#define LJP_TOOLS_HEAP_BIRTHS_H

#include "parsers/heap/graph_births.h"
#include "parsers/profile/profile.h"
#include "tools/export/heap_names.h"

/* Ids below, halved, are of objects without a birth. */
#define LJP_HEAP_BIRTHS_FIRST_ID (UINT32_C(1) << 30)

struct ljp_heap_births {
  struct ljp_profile *p; /* NULL: there are none. */
  struct ljp_graph_births of;
  uint32_t count;            /* Objects with a birth. */
  bool too_many;             /* There are more allocations than ids. */
  uint8_t *wanted;           /* By node of the stack tree: it is written. */
  uint32_t *child, *sibling; /* The same: children that are written. */
  uint32_t *frame; /* By frame: its place among the written ones + 1. */
  uint32_t frames;
};

/* Reads the file once more. Without a session in it, b->p is NULL. label_key: of
** which the values are the outermost frames of stacks; NULL: none. LJP_ERR_LIMIT:
** the file has no such label, which is reported; LJP_ERR_MEM. */
enum ljp_status ljp_heap_births_load(struct ljp_heap_births *b,
                                     const struct ljp_graph *g,
                                     const char *file, bool no_symbols,
                                     const char *label_key);
void ljp_heap_births_fini(struct ljp_heap_births *b);

/* The number of an object's place in the trace tree; 0: not known. */
uint32_t ljp_heap_births_trace(const struct ljp_heap_births *b, uint32_t node);
/* Half of its id; 0: it has no birth. parts: ids that each object takes. */
uint32_t ljp_heap_births_id(const struct ljp_heap_births *b, uint32_t node,
                            unsigned parts);

void ljp_heap_births_functions(const struct ljp_heap_births *b,
                               struct ljp_heap_names *names,
                               struct ljp_print *out);
void ljp_heap_births_tree(const struct ljp_heap_births *b,
                          struct ljp_print *out);
enum ljp_status ljp_heap_births_samples(const struct ljp_heap_births *b,
                                        const struct ljp_graph *g,
                                        unsigned parts, struct ljp_print *out);

#endif
