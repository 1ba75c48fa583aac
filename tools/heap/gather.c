/*
** See gather.h. The main child of an object is the one with most bytes, if these
** are three quarters of the object's. Main children form chains; a list is a part
** of a chain.
*/
#include "tools/heap/gather.h"

#include <stdlib.h>

#include "parsers/base/array.h"
#include "parsers/heap/dominators.h"

enum {
  SPREAD = 16,   /* All bytes / SPREAD count if they are of small objects. */
  LIST_STEPS = 8 /* From an object of a list to the next one, at most. */
};

struct gather {
  const struct ljp_graph *g;
  const uint64_t *bytes;
  uint64_t all;
  uint32_t *largest; /* By node: the child with most bytes; 0: none. */
  uint64_t *spread;  /* By node: bytes that are not of a large child. */
  uint32_t *chain;   /* Room for the longest one. */
  struct ljp_heap_gatherers *found;
};

/* 0: none. */
static uint32_t gather_main_child(const struct gather *a, uint32_t node)
{
  uint32_t child = a->largest[node];
  return child && a->bytes[child] >= a->bytes[node] / 4 * 3 ? child : 0;
}

static bool gather_is_large(const struct gather *a, uint32_t node)
{
  return a->bytes[node] > a->all / LJP_HEAP_GATHER_LEAST;
}

/* Parts of the VM are none. */
static bool gather_may_count(const struct gather *a, uint32_t node)
{
  return node && gather_is_large(a, node) &&
         a->g->type[node] <= LJP_MEM_TYPE_TRACE &&
         a->g->dominator[node] != LJP_DOMINATED_BY_NONE;
}

static bool gather_counts(const struct gather *a, uint32_t node)
{
  return gather_may_count(a, node) &&
         (!gather_main_child(a, node) || a->spread[node] > a->all / SPREAD);
}

static bool gather_put(struct gather *a, uint32_t node, bool list)
{
  struct ljp_heap_gatherers *f = a->found;
  if (!ljp_array_reserve(&f->list, f->count, &f->room, sizeof *f->list))
    return false;
  f->list[f->count++] = (struct ljp_heap_gatherer){
      .bytes = a->bytes[node], .node = node, .list = list};
  return true;
}

static void gather_children(struct gather *a)
{
  const struct ljp_graph *g = a->g;
  for (uint32_t i = 0; i < g->count; i++)
    a->spread[i] = a->bytes[i];
  for (uint32_t i = 1; i < g->count; i++) {
    uint32_t up = g->dominator[i];
    if (up == LJP_DOMINATED_BY_NONE)
      continue;
    if (a->bytes[i] > a->bytes[a->largest[up]] || !a->largest[up])
      a->largest[up] = a->bytes[i] ? i : 0;
    if (gather_is_large(a, i))
      a->spread[up] -= a->bytes[i];
  }
}

/* -- Lists ----------------------------------------------------------------- */

/* Are they of one type, and held in the same way? */
static bool gather_alike(const struct ljp_graph *g, uint32_t a, uint32_t b)
{
  uint32_t by_a = g->held_by[a], by_b = g->held_by[b];
  return g->type[a] == g->type[b] &&
         ljp_graph_how(g, by_a) == ljp_graph_how(g, by_b) &&
         (ljp_graph_how(g, by_a) != LJP_HEAP_HOW_FIELD ||
          g->name[by_a] == g->name[by_b]);
}

/* How many steps the next object of the list is away; 0: there is none. */
static uint32_t gather_step(const struct gather *a, uint32_t at, uint32_t end)
{
  for (uint32_t step = 1; step <= LIST_STEPS && at + step < end; step++)
    if (gather_alike(a->g, a->chain[at], a->chain[at + step]))
      return step;
  return 0;
}

/* The first object is held in another way than the others: one step before
** them. Between the objects may be others (upvalues): those repeat, too. */
static uint32_t gather_first(const struct gather *a, uint32_t at, uint32_t step)
{
  const uint8_t *type = a->g->type;
  for (uint32_t next = at + step; next-- > at;)
    if (next >= step && type[a->chain[next]] == type[a->chain[next - step]])
      return next - step;
  return at;
}

/* The lists in a chain. Those that lose less than a quarter of their bytes only
** lead to what is at their end. */
static bool gather_lists(struct gather *a, uint32_t end)
{
  for (uint32_t at = 0; at < end; at++) {
    uint32_t step = gather_step(a, at, end), last = at, count = 1;
    if (!step)
      continue;
    uint32_t first = gather_first(a, at, step);
    for (; (step = gather_step(a, last, end)) != 0; last += step)
      count++;
    uint32_t node = a->chain[first];
    at = last;
    if (count > 2 && gather_may_count(a, node) && !gather_counts(a, node) &&
        a->bytes[a->chain[last]] < a->bytes[node] / 4 * 3 &&
        !gather_put(a, node, true))
      return false;
  }
  return true;
}

static bool gather_chains(struct gather *a)
{
  const struct ljp_graph *g = a->g;
  for (uint32_t i = 0; i < g->count; i++) {
    uint32_t up = g->dominator[i], end = 0;
    if (up == LJP_DOMINATED_BY_NONE || !gather_is_large(a, i) ||
        (i && gather_main_child(a, up) == i))
      continue;
    for (uint32_t node = i; node || !end; node = gather_main_child(a, node))
      a->chain[end++] = node;
    if (!gather_lists(a, end))
      return false;
  }
  return true;
}

/* -- All of them ----------------------------------------------------------- */

static int gather_by_bytes(const void *a, const void *b)
{
  const struct ljp_heap_gatherer *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  return x->node < y->node ? -1 : x->node > y->node;
}

enum ljp_status ljp_heap_gather(const struct ljp_heap_weights *w,
                                struct ljp_heap_gatherers *found)
{
  const struct ljp_graph *g = w->g;
  struct gather a = {.g = g, .bytes = w->bytes, .all = w->all, .found = found};
  *found = (struct ljp_heap_gatherers){.list = NULL};
  a.largest = calloc(g->count, sizeof *a.largest);
  a.spread = malloc(g->count * sizeof *a.spread);
  a.chain = malloc(g->count * sizeof *a.chain);
  bool ok = a.largest && a.spread && a.chain;
  if (ok)
    gather_children(&a);
  for (uint32_t i = 1; ok && i < g->count; i++)
    if (gather_counts(&a, i))
      ok = gather_put(&a, i, false);
  ok = ok && gather_chains(&a);
  free(a.largest);
  free(a.spread);
  free(a.chain);
  ok = ok && ljp_heap_gather_shared(w, found);
  if (!ok)
    ljp_heap_gatherers_fini(found);
  else if (found->count)
    qsort(found->list, found->count, sizeof *found->list, gather_by_bytes);
  return ok ? LJP_OK : LJP_ERR_MEM;
}

void ljp_heap_gatherers_fini(struct ljp_heap_gatherers *found)
{
  free(found->list);
  *found = (struct ljp_heap_gatherers){.list = NULL};
}

void ljp_heap_cell_gatherer(const struct ljp_graph *g, struct ljp_heap_show *s,
                            const struct ljp_heap_gatherer *gatherer,
                            struct ljp_heap_text *object)
{
  if (gatherer->list && !s->json)
    ljp_heap_format(object, ", first of a list");
  struct ljp_heap_text other = {.len = 0};
  if (gatherer->other)
    ljp_heap_path(g, gatherer->other, &other);
  if (gatherer->shared && !s->json)
    ljp_heap_format(object, ", not alone%s%s", other.len ? ": also " : "",
                    other.data);
  ljp_heap_cell_text(s, "object", object);
  ljp_heap_show_bool(s, "list", gatherer->list);
  ljp_heap_show_bool(s, "alone", !gatherer->shared);
  if (other.len && s->json)
    ljp_heap_cell_text(s, "also", &other);
}

void ljp_heap_gatherer_line(const struct ljp_graph *g, struct ljp_heap_show *s,
                            const struct ljp_heap_gatherers *found,
                            const char *what)
{
  struct ljp_heap_text path = {.len = 0}, bytes = {.len = 0};
  if (!found->count)
    return;
  ljp_heap_path(g, found->list[0].node, &path);
  ljp_heap_amount(&bytes, found->list[0].bytes);
  ljp_heap_show_line(s, "%s: %s, %s", what, path.data, bytes.data);
}
