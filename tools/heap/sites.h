/*
** Where objects were allocated, if the snapshot is in the file of a memory
** session. One thread.
*/
#ifndef LJP_TOOLS_HEAP_SITES_H
#define LJP_TOOLS_HEAP_SITES_H

#include "parsers/profile/profile.h"
#include "tools/heap/heap.h"
#include "tools/heap/ids.h"
#include "tools/heap/tree.h"

/* A line of Lua that allocated. */
struct ljp_heap_site {
  struct ljp_heap_group sums; /* Of the objects whose births are known. */
  double bytes, objects;      /* Sampled: what they stand for. */
  uint32_t frame;             /* Of the profile. */
};

struct ljp_heap_sites {
  struct ljp_profile *p; /* NULL: no session has recorded the snapshot's VM. */
  bool sampled;
  uint32_t *of; /* By node; LJP_HEAP_NO_GROUP: allocated before the session, or
                ** not sampled. */
  struct ljp_heap_site *list;
  uint32_t count, room;
  struct ljp_heap_ids ids;
};

/* file: that of the snapshot. On failure error says why. */
enum ljp_status ljp_heap_sites_init(struct ljp_heap_sites *sites,
                                    const struct ljp_graph *g, const char *file,
                                    char error[LJP_READER_ERROR_BYTES + 64]);
void ljp_heap_sites_fini(struct ljp_heap_sites *sites);

/* "remember app.lua:7". */
void ljp_heap_site_text(const struct ljp_heap_sites *sites, uint32_t site,
                        struct ljp_heap_text *t);

#endif
