/*
** Where objects were allocated, and with which labels, if the snapshot is in the
** file of a memory session. One thread.
*/
#ifndef LJP_TOOLS_HEAP_SITES_H
#define LJP_TOOLS_HEAP_SITES_H

#include "parsers/profile/profile.h"
#include "tools/heap/heap.h"
#include "tools/heap/ids.h"
#include "tools/heap/show.h"
#include "tools/heap/tree.h"

/* A line of Lua that allocated; with label_key a value of that key. */
struct ljp_heap_site {
  struct ljp_heap_group sums; /* Of the objects whose births are known. */
  double bytes, objects;      /* Sampled: what they stand for. */
  uint32_t name;              /* Of the profile: a frame, or a string. */
};

struct ljp_heap_sites {
  struct ljp_profile *p; /* NULL: no session has recorded the snapshot's VM. */
  bool sampled;
  bool labelled;         /* Only objects with certain labels have a site. */
  const char *label_key; /* NULL: sites are lines. */
  uint32_t *of; /* By node; LJP_HEAP_NO_GROUP: allocated before the session, or
                ** not sampled, or with other labels. */
  struct ljp_heap_site *list;
  uint32_t count, room;
  struct ljp_heap_ids ids;
};

/* file: that of the snapshot. wanted: of its members, labels and label_key. On
** failure error says why. */
enum ljp_status ljp_heap_sites_init(struct ljp_heap_sites *sites,
                                    const struct ljp_graph *g, const char *file,
                                    const struct ljp_profile_options *wanted,
                                    char error[LJP_READER_ERROR_BYTES + 64]);
void ljp_heap_sites_fini(struct ljp_heap_sites *sites);

/* Views leave out an object that was not allocated with the labels that the user
** asks for. */
static inline bool ljp_heap_sites_want(const struct ljp_heap_sites *sites,
                                       uint32_t node)
{
  return !sites->labelled || sites->of[node] != LJP_HEAP_NO_GROUP;
}

/* "remember app.lua:7", or the value of a label. */
void ljp_heap_site_text(const struct ljp_heap_sites *sites, uint32_t site,
                        struct ljp_heap_text *t);

/* Begins a table of sites with these heads of columns; the last cell of a row. */
void ljp_heap_sites_table(const struct ljp_heap_sites *sites,
                          struct ljp_heap_show *show, const char *heads);
void ljp_heap_sites_cell(const struct ljp_heap_sites *sites, uint32_t site,
                         struct ljp_heap_show *show);

#endif
