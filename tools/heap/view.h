/*
** The views of `ljprof heap`, and what they share: a loaded snapshot and the
** options. heap.c chooses the view.
*/
#ifndef LJP_TOOLS_HEAP_VIEW_H
#define LJP_TOOLS_HEAP_VIEW_H

#include "tools/heap/find.h"
#include "tools/heap/kinds.h"
#include "tools/heap/show.h"
#include "tools/heap/sites.h"

#define LJP_HEAP_MAX_TOP 1000u
#define LJP_HEAP_MAX_DEPTH 100u
enum { LJP_HEAP_TYPES = 32 };

struct ljp_heap_totals {
  uint64_t all_objects, all_bytes, garbage, garbage_bytes;
};

struct ljp_heap_view {
  struct ljp_graph graph;
  struct ljp_heap_totals totals;
  struct ljp_heap_sites sites; /* If a view wants them, and they are known. */
  uint32_t top;                /* Rows of a table, at most. */
  uint32_t depth;              /* Levels of a tree, at most. */
  const char *pattern;         /* A regular expression or an address. */
};

/* Sums, and the sentences or numbers that stand before each view. */
void ljp_heap_add_up(struct ljp_heap_view *v);
void ljp_heap_show_totals(const struct ljp_heap_view *v,
                          struct ljp_heap_show *s);
static inline bool ljp_heap_is_whole(const struct ljp_heap_view *v)
{
  return v->graph.ended && v->graph.end.objects == v->totals.all_objects;
}

/* The table "paths": the ways by which these objects are held. */
enum ljp_status ljp_heap_show_ways(const struct ljp_heap_view *v,
                                   const struct ljp_heap_kinds *kinds,
                                   const struct ljp_heap_found *found,
                                   struct ljp_heap_show *s);

/* Views. LJP_ERR_MEM; LJP_ERR_USE: the pattern is wrong, which is reported. */
enum ljp_status ljp_heap_overview(struct ljp_heap_view *v,
                                  struct ljp_heap_show *s);
enum ljp_status ljp_heap_paths(struct ljp_heap_view *v,
                               struct ljp_heap_show *s);
enum ljp_status ljp_heap_retained_by(struct ljp_heap_view *v,
                                     struct ljp_heap_show *s);
enum ljp_status ljp_heap_dominators(struct ljp_heap_view *v,
                                    struct ljp_heap_show *s);
enum ljp_status ljp_heap_coroutines(struct ljp_heap_view *v,
                                    struct ljp_heap_show *s);
enum ljp_status ljp_heap_show_sites(struct ljp_heap_view *v,
                                    struct ljp_heap_show *s);
enum ljp_status ljp_heap_strings(struct ljp_heap_view *v,
                                 struct ljp_heap_show *s);

#endif
