/*
** What was born between two snapshots and lives, who holds it, and what has grown
** by way and by kind.
*/
#include "tools/heap/diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/heap/gather.h"
#include "tools/heap/growth.h"
#include "tools/heap/match.h"
#include "tools/heap/ways.h"

struct diff {
  const struct ljp_heap_view *v[LJP_HEAP_SIDES];
  struct ljp_heap_show *s;
  uint32_t *same; /* NULL: the snapshots are not of the same VM. */
  bool exact;     /* By the session's record of all allocations. */
  uint64_t born, born_bytes, gone, gone_bytes;
};

/* -- What stands first ----------------------------------------------------- */

static void diff_count(struct diff *d)
{
  const struct ljp_graph *before = &d->v[LJP_HEAP_BEFORE]->graph;
  const struct ljp_graph *after = &d->v[LJP_HEAP_AFTER]->graph;
  uint64_t kept = 0, kept_bytes = 0;
  for (uint32_t i = 1; i < after->count; i++)
    if (!d->same[i] && ljp_graph_is_held(after, i)) {
      d->born++;
      d->born_bytes += ljp_graph_own(after, i);
    } else if (d->same[i]) {
      kept++;
      kept_bytes += ljp_graph_own(before, d->same[i]);
    }
  uint64_t all = d->v[LJP_HEAP_BEFORE]->totals.all_objects;
  uint64_t all_bytes = d->v[LJP_HEAP_BEFORE]->totals.all_bytes;
  d->gone = all > kept ? all - kept : 0;
  d->gone_bytes = all_bytes > kept_bytes ? all_bytes - kept_bytes : 0;
}

static void diff_show_side(const struct diff *d, enum ljp_heap_side side)
{
  const struct ljp_heap_view *v = d->v[side];
  struct ljp_heap_text t = {.len = 0};
  time_t seconds = (time_t)(v->graph.wall_ns / 1000000000);
  struct tm tm;
  char when[64] = "";
  ljp_heap_amount(&t, v->totals.all_bytes);
  if (v->graph.wall_ns && localtime_r(&seconds, &tm))
    strftime(when, sizeof when, ", taken %Y-%m-%d %H:%M:%S", &tm);
  ljp_heap_show_line(
      d->s, "%s %" PRIu64 " objects, %s%s%s",
      side == LJP_HEAP_BEFORE ? "Before:" : "After: ", v->totals.all_objects,
      t.data, when, ljp_heap_is_whole(v) ? "" : "; THIS SNAPSHOT IS DAMAGED");
}

static void diff_show_born(const struct diff *d)
{
  struct ljp_heap_text born = {.len = 0}, gone = {.len = 0};
  ljp_heap_amount(&born, d->born_bytes);
  ljp_heap_amount(&gone, d->gone_bytes);
  ljp_heap_show_line(d->s,
                     "Born in between and alive: %" PRIu64
                     " objects, %s; gone: %" PRIu64 ", %s (%s)",
                     d->born, born.data, d->gone, gone.data,
                     d->exact ? "exact, by the session's record of all "
                                "allocations"
                              : "likely, by address, type, contents and "
                                "order");
}

static void diff_show_sides(const struct diff *d)
{
  const struct ljp_graph *before = &d->v[LJP_HEAP_BEFORE]->graph;
  const struct ljp_graph *after = &d->v[LJP_HEAP_AFTER]->graph;
  diff_show_side(d, LJP_HEAP_BEFORE);
  diff_show_side(d, LJP_HEAP_AFTER);
  if (d->same && before->time_ns > after->time_ns)
    ljp_heap_show_line(d->s, "The first snapshot was taken after the second: "
                             "name the earlier one first.");
  else if (!d->same && before->pid != after->pid)
    ljp_heap_show_line(d->s,
                       "The snapshots are of different processes (%" PRIu64
                       " and %" PRIu64 "), so only sums are compared, no "
                       "objects.",
                       before->pid, after->pid);
  else if (!d->same)
    ljp_heap_show_line(d->s, "The snapshots are of different VMs, so only sums "
                             "are compared, no objects.");
}

static void diff_show_numbers(const struct diff *d)
{
  const struct ljp_heap_totals *before = &d->v[LJP_HEAP_BEFORE]->totals;
  const struct ljp_heap_totals *after = &d->v[LJP_HEAP_AFTER]->totals;
  ljp_heap_show_number(d->s, "before_objects", before->all_objects);
  ljp_heap_show_number(d->s, "before_bytes", before->all_bytes);
  ljp_heap_show_number(d->s, "after_objects", after->all_objects);
  ljp_heap_show_number(d->s, "after_bytes", after->all_bytes);
  ljp_heap_show_bool(d->s, "complete",
                     ljp_heap_is_whole(d->v[LJP_HEAP_BEFORE]) &&
                         ljp_heap_is_whole(d->v[LJP_HEAP_AFTER]));
  ljp_heap_show_string(d->s, "identity",
                       d->exact  ? "exact"
                       : d->same ? "likely"
                                 : "none");
  if (!d->same)
    return;
  ljp_heap_show_number(d->s, "born_objects", d->born);
  ljp_heap_show_number(d->s, "born_bytes", d->born_bytes);
  ljp_heap_show_number(d->s, "gone_objects", d->gone);
  ljp_heap_show_number(d->s, "gone_bytes", d->gone_bytes);
}

/* -- Who holds what was born ----------------------------------------------- */

/* Of what was born, in what a node retains. */
struct diff_below {
  uint64_t *bytes;
  uint32_t *objects;
};

static void diff_add_child(struct diff_below *below, uint32_t up, uint32_t node)
{
  below->bytes[up] += below->bytes[node];
  below->objects[up] += below->objects[node];
}

/* Sums up the tree of dominators. */
static enum ljp_status diff_sum_born(const struct diff *d,
                                     struct diff_below *below)
{
  const struct ljp_graph *g = &d->v[LJP_HEAP_AFTER]->graph;
  struct ljp_heap_tree tree;
  enum ljp_status status = ljp_heap_tree_init(&tree, g);
  if (status)
    return status;
  for (uint32_t node = 0;;) {
    if (node && !d->same[node]) {
      below->bytes[node] = ljp_graph_own(g, node);
      below->objects[node] = 1;
    }
    if (tree.child[node]) {
      node = tree.child[node];
      continue;
    }
    while (node && !tree.sibling[node]) {
      diff_add_child(below, g->dominator[node], node);
      node = g->dominator[node];
    }
    if (!node)
      break;
    diff_add_child(below, g->dominator[node], node);
    node = tree.sibling[node];
  }
  ljp_heap_tree_fini(&tree);
  return LJP_OK;
}

static void diff_show_holder(const struct diff *d,
                             const struct diff_below *below,
                             const struct ljp_heap_gatherer *found)
{
  const struct ljp_graph *g = &d->v[LJP_HEAP_AFTER]->graph;
  struct ljp_heap_text path = {.len = 0}, what = {.len = 0};
  uint32_t node = found->node;
  ljp_heap_path(g, node, &path);
  ljp_heap_describe(g, node, &what);
  if (!d->same[node] && !d->s->json)
    ljp_heap_format(&what, " (new)");
  ljp_heap_row(d->s);
  ljp_heap_show_address(d->s, g->address[node]);
  ljp_heap_show_bool(d->s, "born", !d->same[node]);
  ljp_heap_cell_bytes(d->s, "born_bytes", found->bytes);
  ljp_heap_cell_count(d->s, "born_objects",
                      found->shared ? found->objects : below->objects[node]);
  ljp_heap_cell_text(d->s, "path", &path);
  ljp_heap_cell_gatherer(g, d->s, found, &what);
  ljp_heap_row_end(d->s);
}

static enum ljp_status diff_holders(const struct diff *d)
{
  const struct ljp_graph *g = &d->v[LJP_HEAP_AFTER]->graph;
  struct diff_below below = {calloc(g->count, sizeof *below.bytes),
                             calloc(g->count, sizeof *below.objects)};
  const struct ljp_heap_weights weights = {
      .g = g, .bytes = below.bytes, .without = d->same, .all = d->born_bytes};
  struct ljp_heap_gatherers found = {.list = NULL};
  enum ljp_status status =
      below.bytes && below.objects ? diff_sum_born(d, &below) : LJP_ERR_MEM;
  if (!status)
    status = ljp_heap_gather(&weights, &found);
  if (!status && !ljp_heap_gather_others(g, &found, d->v[LJP_HEAP_AFTER]->top))
    status = LJP_ERR_MEM;
  if (!status) {
    ljp_heap_gatherer_line(g, d->s, &found, "What holds the most of it");
    diff_show_sides(d);
    ljp_heap_table(d->s, "holders",
                   "      born    objects  who holds what was born");
    for (uint32_t i = 0; i < found.count && i < d->v[LJP_HEAP_AFTER]->top; i++)
      diff_show_holder(d, &below, &found.list[i]);
    ljp_heap_table_end(d->s);
  }
  ljp_heap_gatherers_fini(&found);
  free(below.bytes);
  free(below.objects);
  return status;
}

/* -- What allocated it ----------------------------------------------------- */

struct diff_site {
  uint64_t bytes, objects;
  uint32_t site;
};

static int diff_by_site(const void *a, const void *b)
{
  const struct diff_site *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  return x->site < y->site ? -1 : x->site > y->site;
}

static enum ljp_status diff_sites(const struct diff *d)
{
  const struct ljp_heap_view *v = d->v[LJP_HEAP_AFTER];
  const struct ljp_heap_sites *sites = &v->sites;
  struct diff_site *list = calloc(sites->count + 1, sizeof *list);
  if (!list)
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < sites->count; i++)
    list[i].site = i;
  for (uint32_t i = 1; i < v->graph.count; i++) {
    if (d->same[i] || sites->of[i] == LJP_HEAP_NO_GROUP ||
        !ljp_graph_is_held(&v->graph, i))
      continue;
    list[sites->of[i]].objects++;
    list[sites->of[i]].bytes += ljp_graph_own(&v->graph, i);
  }
  qsort(list, sites->count, sizeof *list, diff_by_site);
  ljp_heap_sites_table(sites, d->s, "      born    objects");
  for (uint32_t i = 0; i < sites->count && i < v->top && list[i].objects; i++) {
    ljp_heap_row(d->s);
    ljp_heap_cell_bytes(d->s, "born_bytes", list[i].bytes);
    ljp_heap_cell_count(d->s, "born_objects", list[i].objects);
    ljp_heap_sites_cell(sites, list[i].site, d->s);
    ljp_heap_row_end(d->s);
  }
  ljp_heap_table_end(d->s);
  free(list);
  return LJP_OK;
}

/* -- Growth ---------------------------------------------------------------- */

struct diff_sides {
  struct ljp_heap_kinds kinds[LJP_HEAP_SIDES];
  struct ljp_heap_ways ways[LJP_HEAP_SIDES];
  struct ljp_heap_growth by_way, by_kind;
  uint32_t named[LJP_HEAP_SIDES]; /* Later kinds are told without paths. */
};

static bool diff_add_kinds(struct diff_sides *sides, const struct ljp_graph *g,
                           enum ljp_heap_side side)
{
  struct ljp_heap_kinds *kinds = &sides->kinds[side];
  bool ok = true;
  for (uint32_t i = 1; i < g->count; i++)
    if (ljp_graph_is_held(g, i)) {
      struct ljp_heap_group *sums = &kinds->list[kinds->of[i]].sums;
      sums->objects++;
      sums->own += ljp_graph_own(g, i);
    }
  uint32_t paths = LJP_HEAP_KIND_PATHS;
  for (uint32_t k = 0; ok && k < kinds->count; k++) {
    struct ljp_heap_text name = {.len = 0};
    sides->named[side] += paths > 0;
    ljp_heap_kind_name(g, &kinds->list[k], &paths, &name);
    ok = ljp_heap_growth_add(&sides->by_kind, &name, side, k,
                             kinds->list[k].sums.objects,
                             kinds->list[k].sums.own);
  }
  return ok;
}

static bool diff_add_ways(struct diff_sides *sides, const struct ljp_graph *g,
                          enum ljp_heap_side side)
{
  struct ljp_heap_ways *ways = &sides->ways[side];
  bool ok = true;
  for (uint32_t i = 1; ok && i < g->count; i++)
    if (ljp_graph_is_held(g, i))
      ok = ljp_heap_way(ways, i) != UINT32_MAX;
  struct ljp_heap_group *sums = ok ? calloc(ways->count, sizeof *sums) : NULL;
  ok = sums != NULL;
  for (uint32_t i = 1; ok && i < g->count; i++)
    if (ljp_graph_is_held(g, i)) {
      sums[ways->of[i]].objects++;
      sums[ways->of[i]].own += ljp_graph_own(g, i);
    }
  for (uint32_t way = 0; ok && way < ways->count; way++) {
    struct ljp_heap_text name = {.len = 0};
    if (!sums[way].objects)
      continue;
    ljp_heap_way_text(ways, way, &name);
    ok = ljp_heap_growth_add(&sides->by_way, &name, side, way,
                             sums[way].objects, sums[way].own);
  }
  free(sums);
  return ok;
}

/* As it was named when it was counted. */
static void diff_kind_text(const struct diff *d, const struct diff_sides *sides,
                           const struct ljp_heap_growth_row *row,
                           struct ljp_heap_text *name)
{
  uint32_t paths = row->example < sides->named[row->side] ? 1 : 0;
  ljp_heap_kind_name(&d->v[row->side]->graph,
                     &sides->kinds[row->side].list[row->example], &paths, name);
}

static void diff_show_growth(const struct diff *d, struct diff_sides *sides,
                             bool ways)
{
  struct ljp_heap_growth *growth = ways ? &sides->by_way : &sides->by_kind;
  ljp_heap_growth_sort(growth);
  ljp_heap_table(d->s, ways ? "paths" : "kinds",
                 ways
                     ? "    change    objects  what grew, by the way it is held"
                     : "    change    objects  what grew, by kind");
  for (uint32_t i = 0, shown = 0;
       i < growth->count && shown < d->v[LJP_HEAP_AFTER]->top; i++) {
    const struct ljp_heap_growth_row *row = &growth->list[i];
    struct ljp_heap_text name = {.len = 0};
    int64_t bytes =
        (int64_t)(row->bytes[LJP_HEAP_AFTER] - row->bytes[LJP_HEAP_BEFORE]);
    int64_t objects =
        (int64_t)(row->objects[LJP_HEAP_AFTER] - row->objects[LJP_HEAP_BEFORE]);
    if (bytes <= 0)
      break;
    if (ways)
      ljp_heap_way_text(&sides->ways[row->side], row->example, &name);
    else
      diff_kind_text(d, sides, row, &name);
    ljp_heap_row(d->s);
    ljp_heap_cell_change(d->s, "change_bytes", bytes);
    ljp_heap_cell_count_change(d->s, "change_objects", objects);
    ljp_heap_cell_text(d->s, ways ? "path" : "kind", &name);
    ljp_heap_row_end(d->s);
    shown++;
  }
  ljp_heap_table_end(d->s);
}

static enum ljp_status diff_growth(const struct diff *d)
{
  struct diff_sides sides;
  memset(&sides, 0, sizeof sides);
  enum ljp_status status = LJP_OK;
  for (unsigned side = 0; !status && side < LJP_HEAP_SIDES; side++) {
    const struct ljp_graph *g = &d->v[side]->graph;
    status = ljp_heap_kinds_find(g, &sides.kinds[side]);
    if (!status)
      status = ljp_heap_ways_init(&sides.ways[side], g, &sides.kinds[side]);
    if (!status &&
        (!diff_add_kinds(&sides, g, side) || !diff_add_ways(&sides, g, side)))
      status = LJP_ERR_MEM;
  }
  if (!status) {
    diff_show_growth(d, &sides, true);
    diff_show_growth(d, &sides, false);
  }
  for (unsigned side = 0; side < LJP_HEAP_SIDES; side++) {
    ljp_heap_ways_fini(&sides.ways[side]);
    ljp_heap_kinds_fini(&sides.kinds[side]);
  }
  ljp_heap_growth_fini(&sides.by_way);
  ljp_heap_growth_fini(&sides.by_kind);
  return status;
}

/* Has the session recorded every allocation? Both snapshots are in its file. */
static bool diff_is_exact(const struct ljp_heap_view *v)
{
  const struct ljp_profile *p = v->sites.p;
  return p && p->births.found && !v->sites.sampled && !p->totals.lost_all &&
         !p->totals.swallowed;
}

enum ljp_status ljp_heap_diff(struct ljp_heap_view *before,
                              struct ljp_heap_view *after,
                              struct ljp_heap_show *s)
{
  struct diff d = {.v = {before, after}, .s = s};
  enum ljp_status status = LJP_OK;
  if (ljp_heap_same_vm(&before->graph, &after->graph)) {
    d.exact = diff_is_exact(before) && diff_is_exact(after);
    status = d.exact ? ljp_heap_match_births(
                           &before->graph, &before->sites.p->births,
                           &after->graph, &after->sites.p->births, &d.same)
                     : ljp_heap_match(&before->graph, &after->graph, &d.same);
    if (!status)
      diff_count(&d);
  }
  if (!status) {
    diff_show_numbers(&d);
    if (d.same) {
      diff_show_born(&d);
      status = diff_holders(&d);
    } else {
      diff_show_sides(&d);
    }
    if (!status && d.exact)
      status = diff_sites(&d);
  }
  if (!status)
    status = diff_growth(&d);
  free(d.same);
  return status;
}
