/*
** The table of strings of a .heapsnapshot file. String 0 is empty. The strings of
** the heap follow in the order of their nodes; their contents stay in the graph.
** Then come names that are made: of other objects and of references, each once.
** The memory for made names is bounded; what does not fit any more is named
** "(no name)" and counted. One thread.
*/
#ifndef LJP_TOOLS_HEAP_NAMES_H
#define LJP_TOOLS_HEAP_NAMES_H

#include "tools/heap/kinds.h"

struct ljp_heap_names {
  const struct ljp_graph *g;
  const uint32_t *lengths; /* Of strings, by node. Borrowed. */
  uint32_t *of_node;       /* The number of each node's name. */
  uint32_t first;          /* The number of the first made name. */
  char *texts; /* Made names: each 4 bytes of length, then the bytes. */
  size_t bytes, room;
  uint32_t *at; /* By number - first: place in texts[]. */
  uint32_t count, at_room;
  uint32_t *slots, slot_count; /* Hash table of number - first + 1. */
  uint64_t left_out;
  bool no_memory;
};

enum ljp_status ljp_heap_names_init(struct ljp_heap_names *names,
                                    const struct ljp_graph *g,
                                    const uint32_t *lengths);
void ljp_heap_names_fini(struct ljp_heap_names *names);

/* The number of a name; 0 and names->no_memory: out of memory. */
uint32_t ljp_heap_names_add(struct ljp_heap_names *names, const char *text,
                            size_t len);

/* Appends a name to a text. */
void ljp_heap_names_put(const struct ljp_heap_names *names, uint32_t number,
                        struct ljp_heap_text *text);

/* Writes all strings, each quoted, with commas between them. */
void ljp_heap_names_write(const struct ljp_heap_names *names,
                          struct ljp_print *out);

#endif
