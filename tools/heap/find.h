/*
** Finds the objects that a user names: by a regular expression or an address.
** One thread.
*/
#ifndef LJP_TOOLS_HEAP_FIND_H
#define LJP_TOOLS_HEAP_FIND_H

#include "tools/heap/kinds.h"
#include "tools/heap/sites.h"

struct ljp_heap_found {
  uint8_t *bits; /* By node. */
  uint32_t count;
};

/* sites: NULL, or with the sites of this graph's nodes; what they do not want is
** not found.
**
** "0x7f12..." is the address of an object, as views and `ljprof dump` show it.
** Anything else is an extended regular expression: it finds strings by their
** contents, objects by their kind and by the line that allocated them, and what
** tables hold by its key. LJP_ERR_USE:
** the pattern is wrong, which is reported. */
enum ljp_status ljp_heap_find(const struct ljp_graph *g,
                              const struct ljp_heap_kinds *kinds,
                              const struct ljp_heap_sites *sites,
                              const char *pattern,
                              struct ljp_heap_found *found);
void ljp_heap_found_fini(struct ljp_heap_found *found);
/* False: it says that the pattern is wrong. */
bool ljp_heap_can_find(const char *pattern);

static inline bool ljp_heap_is_found(const struct ljp_heap_found *found,
                                     uint32_t node)
{
  return found->bits[node / 8] >> node % 8 & 1;
}

#endif
