/*
** The tree of dominators: who keeps what alive, level by level. Siblings of one
** kind become one row when they are many.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/heap/dominators.h"
#include "tools/heap/view.h"

enum { SIBLINGS = 3 /* More of one kind are merged. */ };

struct tree_node {
  uint32_t node, kind;
};

struct tree_row {
  uint64_t retained, own;
  uint32_t first, count; /* In the level's nodes. */
};

struct tree_level {
  struct tree_node *nodes;
  struct tree_row *rows;
  uint32_t node_count, node_room, row_count, row_room;
};

struct tree_view {
  const struct ljp_heap_view *v;
  const struct ljp_graph *g;
  const struct ljp_heap_kinds *kinds;
  struct ljp_heap_tree tree;
  struct ljp_heap_show *s;
};

/* The VM's parts are not shown as long as they hold something: what they hold
** stands in their place. */
static bool tree_is_part(const struct tree_view *t, uint32_t node)
{
  return t->g->type[node] > LJP_MEM_TYPE_TRACE && t->tree.child[node];
}

static bool tree_add_children(const struct tree_view *t,
                              struct tree_level *level, uint32_t node)
{
  for (uint32_t c = t->tree.child[node]; c; c = t->tree.sibling[c]) {
    if (node == 0 && tree_is_part(t, c))
      continue;
    if (!ljp_array_reserve(&level->nodes, level->node_count, &level->node_room,
                           sizeof *level->nodes))
      return false;
    level->nodes[level->node_count++] = (struct tree_node){c, t->kinds->of[c]};
  }
  return true;
}

static int tree_by_kind(const void *a, const void *b)
{
  const struct tree_node *x = a, *y = b;
  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static int tree_by_retained(const void *a, const void *b)
{
  const struct tree_row *x = a, *y = b;
  if (x->retained != y->retained)
    return x->retained < y->retained ? 1 : -1;
  return x->first < y->first ? -1 : x->first > y->first;
}

static bool tree_make_rows(const struct tree_view *t, struct tree_level *level)
{
  uint32_t n = level->node_count;
  if (n)
    qsort(level->nodes, n, sizeof *level->nodes, tree_by_kind);
  for (uint32_t i = 0, end; i < n; i = end) {
    for (end = i; end < n && level->nodes[end].kind == level->nodes[i].kind;)
      end++;
    uint32_t step = end - i > SIBLINGS ? end - i : 1;
    for (uint32_t from = i; from < end; from += step) {
      struct tree_row row = {.first = from, .count = step};
      for (uint32_t k = from; k < from + step; k++) {
        row.retained += t->g->retained[level->nodes[k].node];
        row.own += ljp_graph_own(t->g, level->nodes[k].node);
      }
      if (!ljp_array_reserve(&level->rows, level->row_count, &level->row_room,
                             sizeof *level->rows))
        return false;
      level->rows[level->row_count++] = row;
    }
  }
  if (level->row_count)
    qsort(level->rows, level->row_count, sizeof *level->rows, tree_by_retained);
  return true;
}

static void tree_show_row(const struct tree_view *t,
                          const struct tree_level *level,
                          const struct tree_row *row, uint32_t depth)
{
  const struct ljp_graph *g = t->g;
  struct ljp_heap_text path = {.len = 0}, what = {.len = 0};
  uint32_t node = level->nodes[row->first].node;
  ljp_heap_row(t->s);
  ljp_heap_show_number(t->s, "depth", depth);
  if (row->count == 1) {
    ljp_heap_show_address(t->s, g->address[node]);
    if (depth && ljp_graph_is_held(g, node) &&
        g->holder[node] == g->dominator[node])
      ljp_heap_step(g, g->holder[node], g->held_by[node], &path);
    else
      ljp_heap_path(g, node, &path);
    ljp_heap_describe(g, node, &what);
  } else {
    ljp_heap_format(&path, "%" PRIu32 " x", row->count);
    ljp_heap_kind_text(g, &t->kinds->list[level->nodes[row->first].kind],
                       &what);
  }
  ljp_heap_cell_bytes(t->s, "retained", row->retained);
  ljp_heap_cell_bytes(t->s, "own", row->own);
  ljp_heap_show_number(t->s, "objects", row->count);
  ljp_heap_cell_indent(t->s, depth);
  ljp_heap_cell_text(t->s, "path", &path);
  ljp_heap_cell_text(t->s, "kind", &what);
  ljp_heap_row_end(t->s);
}

/* What is left out of a level. */
static void tree_show_rest(const struct tree_view *t,
                           const struct tree_level *level, uint32_t shown,
                           uint32_t depth)
{
  uint64_t retained = 0, own = 0, objects = 0;
  struct ljp_heap_text path = {.len = 0}, what = {.len = 0};
  for (uint32_t i = shown; i < level->row_count; i++) {
    retained += level->rows[i].retained;
    own += level->rows[i].own;
    objects += level->rows[i].count;
  }
  if (!objects || retained < t->v->totals.all_bytes / 1000)
    return;
  ljp_heap_format(&path, "%" PRIu64 " x", objects);
  ljp_heap_format(&what, "smaller ones");
  ljp_heap_row(t->s);
  ljp_heap_show_number(t->s, "depth", depth);
  ljp_heap_cell_bytes(t->s, "retained", retained);
  ljp_heap_cell_bytes(t->s, "own", own);
  ljp_heap_show_number(t->s, "objects", objects);
  ljp_heap_cell_indent(t->s, depth);
  ljp_heap_cell_text(t->s, "path", &path);
  ljp_heap_cell_text(t->s, "kind", &what);
  ljp_heap_row_end(t->s);
}

/* Recursive, at most LJP_HEAP_MAX_DEPTH levels. nodes: what was merged into one
** row. */
static bool tree_show(const struct tree_view *t, const struct tree_node *nodes,
                      uint32_t count, uint32_t depth)
{
  struct tree_level level = {.nodes = NULL};
  uint32_t shown = 0;
  bool ok = true;
  for (uint32_t i = 0; ok && i < count; i++)
    ok = tree_add_children(t, &level, nodes[i].node);
  ok = ok && tree_make_rows(t, &level);
  for (; ok && shown < level.row_count && shown < t->v->top; shown++) {
    const struct tree_row *row = &level.rows[shown];
    if (row->retained < t->v->totals.all_bytes / 100)
      break;
    tree_show_row(t, &level, row, depth);
    if (depth + 1 < t->v->depth)
      ok = tree_show(t, level.nodes + row->first, row->count, depth + 1);
  }
  if (ok)
    tree_show_rest(t, &level, shown, depth);
  free(level.nodes);
  free(level.rows);
  return ok;
}

/* Node 0, and the parts in whose place it shows what they hold. */
static bool tree_show_all(const struct tree_view *t)
{
  struct tree_level roots = {.nodes = NULL};
  bool ok = true;
  for (uint32_t c = 0; ok && c < t->g->count; c++) {
    if (c && !(t->g->dominator[c] == 0 && tree_is_part(t, c)))
      continue;
    ok = ljp_array_reserve(&roots.nodes, roots.node_count, &roots.node_room,
                           sizeof *roots.nodes);
    if (ok)
      roots.nodes[roots.node_count++] = (struct tree_node){c, 0};
  }
  ok = ok && tree_show(t, roots.nodes, roots.node_count, 0);
  free(roots.nodes);
  return ok;
}

enum ljp_status ljp_heap_dominators(struct ljp_heap_view *v,
                                    struct ljp_heap_show *s)
{
  struct ljp_heap_kinds kinds;
  struct tree_view t = {.v = v, .g = &v->graph, .kinds = &kinds, .s = s};
  enum ljp_status status = ljp_heap_kinds_find(t.g, &kinds);
  if (!status)
    status = ljp_heap_tree_init(&t.tree, t.g);
  if (!status) {
    ljp_heap_show_totals(v, s);
    ljp_heap_table(s, "dominators",
                   "  retained        own  what keeps it alive alone");
    if (!tree_show_all(&t))
      status = LJP_ERR_MEM;
    ljp_heap_table_end(s);
    ljp_heap_tree_fini(&t.tree);
  }
  ljp_heap_kinds_fini(&kinds);
  return status;
}
