/*
** Finds the objects of one snapshot in an earlier one of the same VM.
**
** Without a session nobody has seen objects being born, so the answer is likely,
** not certain: an object is the same if its address, type, size and contents (of a
** string), prototype (of a function) or C type are. LuaJIT has tables, functions and
** coroutines in the order of birth: what survives keeps its place among the others,
** and what is younger than a new object is new, whatever was at its address before.
*/
#ifndef LJP_TOOLS_HEAP_MATCH_H
#define LJP_TOOLS_HEAP_MATCH_H

#include "parsers/heap/graph.h"

/* Are they of one VM of one process? */
bool ljp_heap_same_vm(const struct ljp_graph *before,
                      const struct ljp_graph *after);

/* The same with a session that has recorded every allocation: certain. */
struct ljp_births;
enum ljp_status ljp_heap_match_births(const struct ljp_graph *before,
                                      const struct ljp_births *births_before,
                                      const struct ljp_graph *after,
                                      const struct ljp_births *births_after,
                                      uint32_t **same);

/* *same: by node of `after`, the node of `before`; 0: born in between. To be
** released by free(). */
enum ljp_status ljp_heap_match(const struct ljp_graph *before,
                               const struct ljp_graph *after, uint32_t **same);

#endif
