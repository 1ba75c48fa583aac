/*
** Growth: objects and bytes by name (of a kind, of a way) in two snapshots. Names,
** not nodes, since the snapshots have nodes of their own. One thread.
*/
#ifndef LJP_TOOLS_HEAP_GROWTH_H
#define LJP_TOOLS_HEAP_GROWTH_H

#include "tools/heap/heap.h"
#include "tools/heap/ids.h"

enum ljp_heap_side { LJP_HEAP_BEFORE, LJP_HEAP_AFTER, LJP_HEAP_SIDES };

struct ljp_heap_growth_row {
  uint64_t name; /* A hash. */
  uint64_t objects[LJP_HEAP_SIDES], bytes[LJP_HEAP_SIDES];
  uint32_t
      example; /* What was added under this name last: its number, its side. */
  uint8_t side;
};

struct ljp_heap_growth {
  struct ljp_heap_growth_row *list;
  uint32_t count, room;
  struct ljp_heap_ids ids;
};

/* False: no memory. */
bool ljp_heap_growth_add(struct ljp_heap_growth *growth,
                         const struct ljp_heap_text *name,
                         enum ljp_heap_side side, uint32_t example,
                         uint64_t objects, uint64_t bytes);
void ljp_heap_growth_fini(struct ljp_heap_growth *growth);

/* What has grown most comes first, what has shrunk most last. */
void ljp_heap_growth_sort(struct ljp_heap_growth *growth);

#endif
