/*
** Numbers 0, 1, 2 ... for keys, in the order in which keys are met. One thread.
*/
#ifndef LJP_TOOLS_HEAP_IDS_H
#define LJP_TOOLS_HEAP_IDS_H

#include "parsers/base/index.h"

#define LJP_HEAP_NO_ID UINT32_MAX

struct ljp_heap_ids {
  uint64_t *keys;
  uint32_t count, room;
  struct ljp_index index;
};

/* The number of a key; LJP_HEAP_NO_ID: it has none. */
uint32_t ljp_heap_ids_find(const struct ljp_heap_ids *ids, uint64_t key);
/* The same; a new key gets the next number. LJP_HEAP_NO_ID: no memory. */
uint32_t ljp_heap_ids_add(struct ljp_heap_ids *ids, uint64_t key);
void ljp_heap_ids_fini(struct ljp_heap_ids *ids);

#endif
