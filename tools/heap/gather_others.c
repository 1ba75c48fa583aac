/*
** Who else holds what a gatherer does not hold alone. One of its objects, from the
** middle, stands for all; of the other objects that refer to it, the one with the
** shortest path from a root is told.
*/
#include <stdlib.h>

#include "tools/heap/gather.h"

/* What no file can exceed: rows for which others are looked for, others of each,
** and steps of a path. */
enum { MOST = 16, MOST_OTHERS = 1000, MOST_STEPS = 10000 };

struct others_row {
  struct ljp_heap_gatherer *row;
  /* That others hold, too: strings, which many have for other reasons, and the
  ** rest. */
  uint32_t objects[2], seen[2], examples[2];
  uint32_t example;
  uint32_t others, best_steps;
};

struct others {
  const struct ljp_graph *g;
  struct others_row rows[MOST];
  uint32_t count;
  uint8_t *bits; /* By node: it is a gatherer or, later, an example. */
};

static bool others_has(const struct others *o, uint32_t node)
{
  return o->bits[node / 8] >> node % 8 & 1;
}

static void others_flip(struct others *o, uint32_t node)
{
  o->bits[node / 8] ^= (uint8_t)(1u << node % 8);
}

/* The row of an object that its gatherer does not hold alone: a child of it on
** shortest paths, or a child's. NULL: none. */
static struct others_row *others_row_of(struct others *o, uint32_t node)
{
  const struct ljp_graph *g = o->g;
  if (!ljp_graph_is_held(g, node) || g->dominator[node] == g->holder[node])
    return NULL;
  uint32_t up = g->holder[node];
  if (up && !others_has(o, up))
    up = g->dominator[node] == g->holder[up] ? 0 : g->holder[up];
  for (uint32_t i = 0; up && others_has(o, up) && i < o->count; i++)
    if (o->rows[i].row->node == up)
      return &o->rows[i];
  return NULL;
}

static void others_examples(struct others *o)
{
  for (uint32_t i = 0; i < o->count; i++)
    others_flip(o, o->rows[i].row->node);
  for (unsigned pass = 0; pass < 2; pass++)
    for (uint32_t i = 1; i < o->g->count; i++) {
      struct others_row *r = others_row_of(o, i);
      unsigned which = o->g->type[i] != LJP_MEM_TYPE_STRING;
      if (r && pass == 0)
        r->objects[which]++;
      else if (r && r->seen[which]++ == r->objects[which] / 2)
        r->examples[which] = i;
    }
  for (uint32_t i = 0; i < o->count; i++)
    others_flip(o, o->rows[i].row->node);
  for (uint32_t i = 0; i < o->count; i++) {
    struct others_row *r = &o->rows[i];
    r->example = r->examples[r->examples[1] != 0];
    if (r->example && !others_has(o, r->example))
      others_flip(o, r->example);
  }
}

/* The steps from a root; UINT32_MAX: too many, or the way leads over the row or its
** example. */
static uint32_t others_steps(const struct ljp_graph *g, uint32_t node,
                             const struct others_row *r)
{
  uint32_t steps = 0;
  for (; node; node = g->holder[node], steps++)
    if (node == r->row->node || node == r->example || steps == MOST_STEPS)
      return UINT32_MAX;
  return steps;
}

static void others_look_at(struct others *o, uint32_t from, uint32_t target)
{
  for (uint32_t i = 0; i < o->count; i++) {
    struct others_row *r = &o->rows[i];
    if (r->example != target || r->others == MOST_OTHERS)
      continue;
    r->others++;
    uint32_t steps = others_steps(o->g, from, r);
    if (steps < r->best_steps) {
      r->best_steps = steps;
      r->row->other = from;
    }
  }
}

bool ljp_heap_gather_others(const struct ljp_graph *g,
                            struct ljp_heap_gatherers *found, uint32_t shown)
{
  struct others o = {.g = g};
  for (uint32_t i = 0; i < found->count && i < shown && o.count < MOST; i++)
    if (found->list[i].shared)
      o.rows[o.count++] =
          (struct others_row){.row = &found->list[i], .best_steps = UINT32_MAX};
  if (!o.count)
    return true;
  o.bits = calloc(g->count / 8 + 1, 1);
  if (!o.bits)
    return false;
  others_examples(&o);
  for (uint32_t from = 1; from < g->count; from++)
    for (uint32_t e = g->first[from];
         ljp_graph_is_held(g, from) && e < g->first[from + 1]; e++)
      if (others_has(&o, g->target[e]) && !(g->how[e] & LJP_HEAP_WEAK))
        others_look_at(&o, from, g->target[e]);
  free(o.bits);
  return true;
}
