/*
** What a snapshot holds: what keeps the most alive, kinds and types.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/heap/dominators.h"
#include "parsers/stream/names.h"
#include "tools/heap/gather.h"
#include "tools/heap/view.h"

/* -- What stands before each view ------------------------------------------ */

void ljp_heap_add_up(struct ljp_heap_view *v)
{
  const struct ljp_graph *g = &v->graph;
  struct ljp_heap_totals *t = &v->totals;
  memset(t, 0, sizeof *t);
  for (uint32_t i = 1; i < g->count; i++) {
    uint64_t own = ljp_graph_own(g, i);
    t->all_objects++;
    t->all_bytes += own;
    if (g->dominator[i] == LJP_DOMINATED_BY_NONE) {
      t->garbage++;
      t->garbage_bytes += own;
    }
  }
}

static void overview_damage(const struct ljp_heap_view *v,
                            struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  const struct ljp_heap_totals *t = &v->totals;
  bool any = g->head.taken == LJP_HEAP_TAKEN_MOMENT;
  if (t->all_bytes != g->head.heap_bytes && ljp_heap_is_whole(v))
    ljp_heap_show_line(
        s, "%" PRId64 " bytes %s", (int64_t)(g->head.heap_bytes - t->all_bytes),
        any ? "were not found" : "are held by C functions that were running");
  if (any && ljp_heap_is_whole(v))
    ljp_heap_show_line(s,
                       "The heap was copied at any moment, not where it is "
                       "whole; %" PRIu64 " references lead nowhere",
                       g->missing_refs);
  else if (!ljp_heap_is_whole(v) || g->missing_refs)
    ljp_heap_show_line(
        s, "The snapshot is damaged: %s; %" PRIu64 " references lead nowhere",
        !g->ended               ? "its end is missing"
        : !ljp_heap_is_whole(v) ? "objects are missing"
                                : "objects are not known",
        g->missing_refs);
}

/* What has the labels that the user asks for. */
static void overview_labelled(const struct ljp_heap_view *v,
                              struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  struct ljp_heap_text bytes = {.len = 0};
  uint64_t objects = 0, own = 0;
  if (!v->sites.labelled)
    return;
  for (uint32_t i = 1; i < g->count; i++)
    if (ljp_heap_sites_want(&v->sites, i)) {
      objects++;
      own += ljp_graph_own(g, i);
    }
  ljp_heap_amount(&bytes, own);
  ljp_heap_show_number(s, "labelled_objects", objects);
  ljp_heap_show_number(s, "labelled_bytes", own);
  ljp_heap_show_line(s,
                     "Only %" PRIu64 " of them are shown, %s: those that%s "
                     "were allocated with the labels",
                     objects, bytes.data,
                     v->sites.sampled ? " were sampled and" : "");
}

void ljp_heap_show_totals(const struct ljp_heap_view *v,
                          struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  const struct ljp_heap_totals *t = &v->totals;
  struct ljp_heap_text all = {.len = 0}, garbage = {.len = 0};
  ljp_heap_amount(&all, t->all_bytes);
  ljp_heap_amount(&garbage, t->garbage_bytes);
  if (g->snapshots > 1 && g->processes > 1)
    ljp_heap_show_line(s,
                       "Snapshot %" PRIu32 " of %" PRIu32 ", VM %" PRIu64
                       ", process %" PRIu64,
                       g->number, g->snapshots, g->head.vm, g->pid);
  else if (g->snapshots > 1)
    ljp_heap_show_line(s, "Snapshot %" PRIu32 " of %" PRIu32 ", VM %" PRIu64,
                       g->number, g->snapshots, g->head.vm);
  ljp_heap_show_line(
      s, "%" PRIu64 " objects, %s; %" PRIu64 " of them are garbage, %s",
      t->all_objects, all.data, t->garbage, garbage.data);
  overview_damage(v, s);
  ljp_heap_show_number(s, "snapshot", g->number);
  ljp_heap_show_number(s, "snapshots", g->snapshots);
  ljp_heap_show_number(s, "vm", g->head.vm);
  ljp_heap_show_number(s, "pid", g->pid);
  ljp_heap_show_number(s, "objects", t->all_objects);
  ljp_heap_show_number(s, "bytes", t->all_bytes);
  ljp_heap_show_number(s, "heap_bytes", g->head.heap_bytes);
  ljp_heap_show_number(s, "garbage_objects", t->garbage);
  ljp_heap_show_number(s, "garbage_bytes", t->garbage_bytes);
  ljp_heap_show_bool(s, "any_moment", g->head.taken == LJP_HEAP_TAKEN_MOMENT);
  ljp_heap_show_bool(s, "complete", ljp_heap_is_whole(v));
  overview_labelled(v, s);
}

/* -- The biggest retainers ------------------------------------------------- */

static void overview_row(const struct ljp_graph *g,
                         const struct ljp_heap_gatherer *found,
                         struct ljp_heap_show *s)
{
  struct ljp_heap_text what = {.len = 0}, path = {.len = 0};
  ljp_heap_path(g, found->node, &path);
  ljp_heap_describe(g, found->node, &what);
  ljp_heap_row(s);
  ljp_heap_show_address(s, g->address[found->node]);
  ljp_heap_cell_bytes(s, "retained",
                      s->json ? g->retained[found->node] : found->bytes);
  if (s->json && found->shared)
    ljp_heap_show_number(s, "held", found->bytes);
  ljp_heap_cell_bytes(s, "own", ljp_graph_own(g, found->node));
  ljp_heap_cell_text(s, "path", &path);
  ljp_heap_cell_gatherer(g, s, found, &what);
  ljp_heap_row_end(s);
}

static enum ljp_status overview_retainers(const struct ljp_heap_view *v,
                                          struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  const struct ljp_heap_weights weights = {
      .g = g, .bytes = g->retained, .all = v->totals.all_bytes};
  struct ljp_heap_gatherers found;
  enum ljp_status status = ljp_heap_gather(&weights, &found);
  if (!status && !ljp_heap_gather_others(g, &found, v->top)) {
    ljp_heap_gatherers_fini(&found);
    status = LJP_ERR_MEM;
  }
  if (status)
    return status;
  ljp_heap_gatherer_line(g, s, &found, "What keeps the most alive");
  ljp_heap_table(s, "retainers",
                 "  retained        own  what keeps the most alive");
  for (uint32_t i = 0; i < found.count && i < v->top; i++)
    overview_row(g, &found.list[i], s);
  ljp_heap_table_end(s);
  ljp_heap_gatherers_fini(&found);
  return LJP_OK;
}

/* -- Kinds and types ------------------------------------------------------- */

/* Begins a row. */
static void overview_sums(struct ljp_heap_show *s,
                          const struct ljp_heap_group *sums)
{
  ljp_heap_row(s);
  ljp_heap_cell_bytes(s, "retained", sums->retained);
  ljp_heap_cell_bytes(s, "own", sums->own);
  ljp_heap_cell_count(s, "objects", sums->objects);
}

static enum ljp_status overview_kinds(const struct ljp_heap_view *v,
                                      const struct ljp_heap_tree *tree,
                                      struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  struct ljp_heap_kinds kinds;
  enum ljp_status status = ljp_heap_kinds_find(g, &kinds);
  if (status) {
    ljp_heap_kinds_fini(&kinds);
    return status;
  }
  ljp_heap_tree_add_up(tree, g, kinds.of, kinds.list, sizeof *kinds.list);
  ljp_heap_kinds_sort(&kinds);
  ljp_heap_table(s, "kinds", "  retained        own    objects  kind");
  for (uint32_t i = 0; i < kinds.count && i < v->top; i++) {
    const struct ljp_heap_kind *kind = &kinds.list[i];
    struct ljp_heap_text what = {.len = 0};
    ljp_heap_kind_text(g, kind, &what);
    overview_sums(s, &kind->sums);
    ljp_heap_cell_text(s, "kind", &what);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
  ljp_heap_kinds_fini(&kinds);
  return LJP_OK;
}

struct overview_type {
  struct ljp_heap_group sums;
  unsigned type;
};

static int overview_by_own(const void *a, const void *b)
{
  const struct overview_type *x = a, *y = b;
  if (x->sums.own != y->sums.own)
    return x->sums.own < y->sums.own ? 1 : -1;
  return x->type < y->type ? -1 : x->type > y->type;
}

static enum ljp_status overview_types(const struct ljp_heap_view *v,
                                      const struct ljp_heap_tree *tree,
                                      struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  struct overview_type types[LJP_HEAP_TYPES];
  uint32_t *of = malloc(g->count * sizeof *of);
  if (!of)
    return LJP_ERR_MEM;
  for (unsigned i = 0; i < LJP_HEAP_TYPES; i++)
    types[i] = (struct overview_type){.type = i};
  of[0] = LJP_HEAP_NO_GROUP;
  for (uint32_t i = 1; i < g->count; i++)
    of[i] = g->type[i] % LJP_HEAP_TYPES;
  ljp_heap_tree_add_up(tree, g, of, types, sizeof *types);
  free(of);
  qsort(types, LJP_HEAP_TYPES, sizeof *types, overview_by_own);
  ljp_heap_table(s, "types", "  retained        own    objects  type");
  for (unsigned i = 0; i < LJP_HEAP_TYPES; i++) {
    const char *name = ljp_name_mem_type(types[i].type);
    struct ljp_heap_text text = {.len = 0};
    if (!types[i].sums.objects)
      continue;
    ljp_heap_format(&text, "%s", name ? name : "?");
    overview_sums(s, &types[i].sums);
    ljp_heap_cell_text(s, "type", &text);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
  return LJP_OK;
}

enum ljp_status ljp_heap_overview(struct ljp_heap_view *v,
                                  struct ljp_heap_show *s)
{
  struct ljp_heap_tree tree;
  ljp_heap_show_totals(v, s);
  enum ljp_status status = overview_retainers(v, s);
  if (!status)
    status = ljp_heap_tree_init(&tree, &v->graph);
  if (status)
    return status;
  status = overview_kinds(v, &tree, s);
  if (!status)
    status = overview_types(v, &tree, s);
  ljp_heap_tree_fini(&tree);
  return status;
}
