/*
** Why objects are alive: the ways by which they are held, and what one or several
** of them keep alive.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/heap/dominators.h"
#include "parsers/profile/frame_name.h"
#include "tools/heap/find.h"
#include "tools/heap/ids.h"
#include "tools/heap/view.h"
#include "tools/heap/ways.h"

/* -- Rows: objects of one kind that are held in one way -------------------- */

struct paths_row {
  struct ljp_heap_group sums;
  uint32_t way, kind;
  uint32_t example;
};

struct paths_rows {
  struct paths_row *list;
  uint32_t count, room;
  struct ljp_heap_ids ids;
  uint32_t *of; /* By node. */
};

enum { GARBAGE = UINT32_MAX - 1 }; /* In place of a way. */

static bool paths_add(struct paths_rows *rows, uint32_t way, uint32_t kind,
                      uint32_t node)
{
  uint32_t id = ljp_heap_ids_add(&rows->ids, (uint64_t)way << 32 | kind);
  if (id == LJP_HEAP_NO_ID ||
      !ljp_array_reserve(&rows->list, id, &rows->room, sizeof *rows->list))
    return false;
  if (id == rows->count)
    rows->list[rows->count++] =
        (struct paths_row){.way = way, .kind = kind, .example = node};
  rows->of[node] = id;
  return true;
}

static enum ljp_status paths_group(const struct ljp_graph *g,
                                   struct ljp_heap_ways *ways,
                                   const struct ljp_heap_found *found,
                                   struct paths_rows *rows)
{
  rows->of = malloc(g->count * sizeof *rows->of);
  if (!rows->of)
    return LJP_ERR_MEM;
  memset(rows->of, 0xff, g->count * sizeof *rows->of);
  for (uint32_t i = 1; i < g->count; i++) {
    if (!ljp_heap_is_found(found, i))
      continue;
    uint32_t way = ljp_graph_is_held(g, i) ? ljp_heap_way(ways, i) : GARBAGE;
    if (way == UINT32_MAX || !paths_add(rows, way, ways->kinds->of[i], i))
      return LJP_ERR_MEM;
  }
  return LJP_OK;
}

static void paths_rows_fini(struct paths_rows *rows)
{
  free(rows->list);
  free(rows->of);
  ljp_heap_ids_fini(&rows->ids);
}

static int paths_by_retained(const void *a, const void *b)
{
  const struct paths_row *x = a, *y = b;
  if (x->sums.retained != y->sums.retained)
    return x->sums.retained < y->sums.retained ? 1 : -1;
  return x->example < y->example ? -1 : x->example > y->example;
}

/* -- --path ---------------------------------------------------------------- */

static void paths_show(const struct ljp_heap_view *v,
                       const struct ljp_heap_ways *ways,
                       struct paths_rows *rows, struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  if (rows->count)
    qsort(rows->list, rows->count, sizeof *rows->list, paths_by_retained);
  ljp_heap_table(s, "paths",
                 "  retained        own    objects  held by, and what it is");
  for (uint32_t i = 0; i < rows->count && i < v->top; i++) {
    const struct paths_row *row = &rows->list[i];
    struct ljp_heap_text path = {.len = 0}, what = {.len = 0};
    bool one = row->sums.objects == 1;
    if (one || row->way == GARBAGE)
      ljp_heap_path(g, row->example, &path);
    else
      ljp_heap_way_text(ways, row->way, &path);
    if (one)
      ljp_heap_describe(g, row->example, &what);
    else
      ljp_heap_kind_text(g, &ways->kinds->list[row->kind], &what);
    ljp_heap_row(s);
    ljp_heap_show_address(s, g->address[row->example]);
    ljp_heap_cell_bytes(s, "retained", row->sums.retained);
    ljp_heap_cell_bytes(s, "own", row->sums.own);
    ljp_heap_cell_count(s, "objects", row->sums.objects);
    ljp_heap_cell_text(s, "path", &path);
    ljp_heap_cell_text(s, "kind", &what);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
  if (rows->count > v->top)
    ljp_heap_show_line(s, "%" PRIu32 " further ways: --top N shows more",
                       rows->count - v->top);
}

enum ljp_status ljp_heap_show_ways(const struct ljp_heap_view *v,
                                   const struct ljp_heap_kinds *kinds,
                                   const struct ljp_heap_found *found,
                                   struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  struct ljp_heap_ways ways;
  struct ljp_heap_tree tree;
  struct paths_rows rows = {.list = NULL};
  enum ljp_status status = ljp_heap_ways_init(&ways, g, kinds);
  if (status)
    return status;
  status = paths_group(g, &ways, found, &rows);
  if (!status)
    status = ljp_heap_tree_init(&tree, g);
  if (!status) {
    ljp_heap_tree_add_up(&tree, g, rows.of, rows.list, sizeof *rows.list);
    ljp_heap_tree_fini(&tree);
    paths_show(v, &ways, &rows, s);
  }
  paths_rows_fini(&rows);
  ljp_heap_ways_fini(&ways);
  return status;
}

static void paths_head(const struct ljp_heap_view *v,
                       const struct ljp_heap_found *found,
                       struct ljp_heap_show *s)
{
  ljp_heap_show_totals(v, s);
  ljp_heap_show_number(s, "found", found->count);
  ljp_heap_show_line(s, "%" PRIu32 " objects match '%s'", found->count,
                     v->pattern);
}

static uint32_t paths_only_one(const struct ljp_heap_view *v,
                               const struct ljp_heap_found *found)
{
  uint32_t node = 0;
  if (found->count == 1)
    while (!ljp_heap_is_found(found, node) && node + 1 < v->graph.count)
      node++;
  return node;
}

static void paths_birth_labels(const struct ljp_profile *p, uint32_t labels,
                               struct ljp_heap_show *s)
{
  const struct ljp_profile_labels *set = &p->labels[labels];
  struct ljp_heap_text line = {.len = 0};
  ljp_heap_lines(s, "labels");
  if (labels && labels < LJP_LABELS_OWN) {
    ljp_heap_format(&line, "%s", s->json ? "" : "labels ");
    ljp_heap_bytes(&line, ljp_profile_str(p, p->label_texts[labels]), 300);
    ljp_heap_lines_add(s, &line);
  }
  for (uint32_t i = 0; i < set->count; i++) {
    const struct ljp_profile_label_pair *pair = &p->label_pairs[set->first + i];
    line.len = 0;
    ljp_heap_format(&line, "%s", s->json ? "" : "label ");
    ljp_heap_bytes(&line, ljp_profile_str(p, pair->key), 300);
    ljp_heap_format(&line, "=");
    ljp_heap_bytes(&line, ljp_profile_str(p, pair->value), 300);
    ljp_heap_lines_add(s, &line);
  }
  ljp_heap_lines_end(s);
}

/* The stack that allocated an object, with which labels, and how long ago. */
static void paths_birth(const struct ljp_heap_view *v, uint32_t node,
                        struct ljp_heap_show *s)
{
  const struct ljp_profile *p = v->sites.p;
  const struct ljp_birth *b =
      ljp_births_find(&p->births, v->graph.address[node]);
  if (!b)
    return;
  uint64_t born_ns = (uint64_t)b->ms * 1000000;
  uint64_t age_ns =
      p->births.time_ns > born_ns ? p->births.time_ns - born_ns : 0;
  struct ljp_heap_text age = {.len = 0};
  ljp_heap_format(&age, "%.3f s", (double)age_ns / 1e9);
  ljp_heap_table(s, "births",
                 b->weight
                     ? "       age   survived  allocated by (it was sampled)"
                     : "       age   survived  allocated by");
  ljp_heap_row(s);
  ljp_heap_show_number(s, "event", b->event);
  ljp_heap_show_bool(s, "sampled", b->weight != 0);
  ljp_heap_show_number(s, "age_ns", age_ns);
  if (!s->json)
    ljp_heap_cell_word(s, "age", age.data);
  ljp_heap_cell_count(s, "survived", p->births.cycle - b->cycle);
  ljp_heap_lines(s, "stack");
  for (uint32_t at = p->rows[b->row].node; at; at = p->nodes[at].parent) {
    char name[LJP_FRAME_NAME_BYTES];
    struct ljp_heap_text line = {.len = 0};
    ljp_frame_name(p, p->nodes[at].frame, LJP_NAME_LINES, name, sizeof name);
    ljp_heap_bytes(&line, ljp_str(name, strlen(name)), sizeof line.data);
    ljp_heap_lines_add(s, &line);
  }
  ljp_heap_lines_end(s);
  paths_birth_labels(p, p->contexts[p->rows[b->row].context].labels, s);
  ljp_heap_row_end(s);
  ljp_heap_table_end(s);
}

enum ljp_status ljp_heap_paths(struct ljp_heap_view *v, struct ljp_heap_show *s)
{
  struct ljp_heap_kinds kinds;
  struct ljp_heap_found found = {.bits = NULL};
  enum ljp_status status = ljp_heap_kinds_find(&v->graph, &kinds);
  if (!status)
    status = ljp_heap_find(&v->graph, &kinds, v->sites.p ? &v->sites : NULL,
                           v->pattern, &found);
  if (!status) {
    paths_head(v, &found, s);
    status = ljp_heap_show_ways(v, &kinds, &found, s);
    uint32_t node = paths_only_one(v, &found);
    if (!status && node && v->sites.p)
      paths_birth(v, node, s);
  }
  ljp_heap_found_fini(&found);
  ljp_heap_kinds_fini(&kinds);
  return status;
}

/* -- --retained-by --------------------------------------------------------- */

/* What can be reached from the roots without the objects that were found: the rest
** would go with them. An entry whose weak key goes is removed, so what its value
** alone keeps alive goes with a later collection. */
struct paths_reach {
  const struct ljp_graph *g;
  const struct ljp_heap_found *found;
  uint8_t *reached, *before; /* By node; in this collection, in the last one. */
  uint32_t *stack;
  uint32_t count;
};

enum { COLLECTIONS = 100 };

static bool reach_has(const uint8_t *bits, uint32_t node)
{
  return bits[node / 8] >> node % 8 & 1;
}

static bool reach_holds(const struct paths_reach *r, uint32_t node, uint32_t e)
{
  const struct ljp_graph *g = r->g;
  const uint32_t key = g->name[e];
  if (g->how[e] & LJP_HEAP_WEAK)
    return false;
  if (!r->before || !(g->flags[node] & LJP_HEAP_WEAK_KEYS) ||
      ljp_graph_how(g, e) != LJP_HEAP_HOW_FIELD)
    return true;
  return g->type[key] == LJP_MEM_TYPE_STRING || !ljp_graph_is_held(g, key) ||
         reach_has(r->before, key);
}

/* One collection. */
static void reach_mark(struct paths_reach *r)
{
  const struct ljp_graph *g = r->g;
  uint32_t depth = 0;
  memset(r->reached, 0, g->count / 8 + 1);
  r->reached[0] = 1;
  r->count = 1;
  r->stack[depth++] = 0;
  while (depth) {
    uint32_t node = r->stack[--depth];
    for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
      uint32_t to = g->target[e];
      if (reach_has(r->reached, to) || ljp_heap_is_found(r->found, to) ||
          !reach_holds(r, node, e))
        continue;
      r->reached[to / 8] |= (uint8_t)(1u << to % 8);
      r->count++;
      r->stack[depth++] = to;
    }
  }
}

/* Collections until nothing more goes. *settled: false if more may go. NULL: no
** memory. */
static uint8_t *paths_reach(const struct ljp_graph *g,
                            const struct ljp_heap_found *found, bool *settled)
{
  const size_t bytes = g->count / 8 + 1;
  struct paths_reach r = {.g = g,
                          .found = found,
                          .reached = malloc(bytes),
                          .stack = malloc(g->count * sizeof *r.stack)};
  uint8_t *other = malloc(bytes);
  const bool ok = r.reached && r.stack && other;
  uint32_t last = 0;
  *settled = !ok;
  for (unsigned i = 0; !*settled && i < COLLECTIONS; i++) {
    reach_mark(&r);
    *settled = r.count == last;
    last = r.count;
    r.before = r.reached;
    r.reached = other;
    other = r.before;
  }
  free(r.stack);
  free(r.reached); /* Of the collection before. */
  if (!ok)
    free(other);
  return ok ? other : NULL;
}

static void retained_show(const struct ljp_heap_view *v,
                          struct ljp_heap_kinds *kinds,
                          const struct ljp_heap_group *all, bool settled,
                          struct ljp_heap_show *s)
{
  struct ljp_heap_text bytes = {.len = 0};
  ljp_heap_amount(&bytes, all->own);
  ljp_heap_show_number(s, "retained", all->own);
  ljp_heap_show_number(s, "retained_objects", all->objects);
  ljp_heap_show_bool(s, "at_least", !settled);
  ljp_heap_show_line(s,
                     "If nothing held them, %s%" PRIu64 " objects would go: %s",
                     settled ? "" : "at least ", all->objects, bytes.data);
  ljp_heap_kinds_sort(kinds);
  ljp_heap_table(s, "kinds", "       own    objects  kind");
  for (uint32_t i = 0; i < kinds->count && i < v->top; i++) {
    const struct ljp_heap_kind *kind = &kinds->list[i];
    struct ljp_heap_text what = {.len = 0};
    if (!kind->sums.objects)
      break;
    ljp_heap_kind_text(&v->graph, kind, &what);
    ljp_heap_row(s);
    ljp_heap_cell_bytes(s, "own", kind->sums.own);
    ljp_heap_cell_count(s, "objects", kind->sums.objects);
    ljp_heap_cell_text(s, "kind", &what);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
}

enum ljp_status ljp_heap_retained_by(struct ljp_heap_view *v,
                                     struct ljp_heap_show *s)
{
  const struct ljp_graph *g = &v->graph;
  struct ljp_heap_kinds kinds;
  struct ljp_heap_found found = {.bits = NULL};
  struct ljp_heap_group all = {.objects = 0};
  enum ljp_status status = ljp_heap_kinds_find(g, &kinds);
  if (!status)
    status = ljp_heap_find(g, &kinds, v->sites.p ? &v->sites : NULL, v->pattern,
                           &found);
  bool settled = true;
  uint8_t *reached = status ? NULL : paths_reach(g, &found, &settled);
  if (!status && !reached)
    status = LJP_ERR_MEM;
  for (uint32_t i = 1; !status && i < g->count; i++) {
    if (!ljp_graph_is_held(g, i) || reached[i / 8] >> i % 8 & 1)
      continue;
    struct ljp_heap_group *sums = &kinds.list[kinds.of[i]].sums;
    uint64_t own = ljp_graph_own(g, i);
    sums->objects++;
    sums->own += own;
    all.objects++;
    all.own += own;
  }
  if (!status) {
    paths_head(v, &found, s);
    retained_show(v, &kinds, &all, settled, s);
  }
  free(reached);
  ljp_heap_found_fini(&found);
  ljp_heap_kinds_fini(&kinds);
  return status;
}
