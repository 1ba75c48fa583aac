/*
** Gathering where nothing holds memory alone: objects that several others hold are
** dominated by none of these, so no sum of the tree of dominators shows them. On the
** tree of shortest paths each object has one holder. There an object counts that has
** many small ones below itself, most of which would stay without it.
*/
#include <stdlib.h>

#include "parsers/base/array.h"
#include "parsers/heap/dominators.h"
#include "tools/heap/gather.h"

enum {
  MANY = 64, /* One that has more than 1 / MANY is not small. */
  KNOWN = 64 /* Steps up in which one that holds the same is looked for. */
};

static uint64_t shared_own(const struct ljp_heap_weights *w, uint32_t node)
{
  return w->without && w->without[node] ? 0 : ljp_graph_own(w->g, node);
}

/* By node, of what is below it on shortest paths. */
struct shared_sums {
  uint64_t *bytes;
  uint32_t *objects;
  uint64_t *small; /* Bytes below its small children. */
};

static void shared_add_child(struct shared_sums *s, uint32_t up, uint32_t node)
{
  s->bytes[up] += s->bytes[node];
  s->objects[up] += s->objects[node];
}

/* false: no memory. */
static bool shared_add_up(const struct ljp_heap_weights *w,
                          struct shared_sums *s)
{
  const struct ljp_graph *g = w->g;
  uint32_t *waits = calloc(g->count, sizeof *waits); /* For so many children. */
  if (!waits)
    return false;
  for (uint32_t i = 1; i < g->count; i++) {
    if (!ljp_graph_is_held(g, i))
      continue;
    waits[g->holder[i]]++;
    s->bytes[i] = shared_own(w, i);
    s->objects[i] = !(w->without && w->without[i]);
  }
  for (uint32_t i = 1; i < g->count; i++) {
    if (!ljp_graph_is_held(g, i))
      continue;
    for (uint32_t node = i; node && !waits[node]; node = g->holder[node]) {
      waits[node] = UINT32_MAX;
      shared_add_child(s, g->holder[node], node);
      waits[g->holder[node]]--;
    }
  }
  free(waits);
  return true;
}

static bool shared_counts(const struct ljp_heap_weights *w,
                          const struct shared_sums *s, uint32_t node)
{
  uint64_t held = s->bytes[node];
  return held > w->all / LJP_HEAP_GATHER_LEAST && s->small[node] >= held / 2 &&
         w->bytes[node] < held / 2 && w->g->type[node] <= LJP_MEM_TYPE_TRACE &&
         w->g->dominator[node] != LJP_DOMINATED_BY_NONE;
}

static bool shared_is_root(const struct ljp_graph *g, uint32_t node)
{
  return ljp_graph_how(g, g->held_by[node]) == LJP_HEAP_HOW_ROOT ||
         ljp_heap_is_loaded(g, node);
}

/* Has one been found that holds nearly the same alone? Roots tell little. */
static bool shared_is_known(const struct ljp_heap_weights *w,
                            const struct ljp_heap_gatherers *f,
                            const struct shared_sums *s, uint32_t node)
{
  uint32_t up = w->g->dominator[node], steps = 0;
  for (; up && !shared_is_root(w->g, up) && steps < KNOWN &&
         w->bytes[up] / 4 * 3 <= s->bytes[node];
       up = w->g->dominator[up], steps++)
    for (uint32_t i = 0; i < f->count; i++)
      if (f->list[i].node == up && f->list[i].bytes >= s->bytes[node] / 4 * 3)
        return true;
  return false;
}

static bool shared_put(struct ljp_heap_gatherers *f,
                       const struct shared_sums *s, uint32_t node)
{
  const struct ljp_heap_gatherer shared = {.bytes = s->bytes[node],
                                           .objects = s->objects[node],
                                           .node = node,
                                           .shared = true};
  for (uint32_t i = 0; i < f->count; i++)
    if (f->list[i].node == node) {
      f->list[i] = shared;
      return true;
    }
  if (!ljp_array_reserve(&f->list, f->count, &f->room, sizeof *f->list))
    return false;
  f->list[f->count++] = shared;
  return true;
}

bool ljp_heap_gather_shared(const struct ljp_heap_weights *w,
                            struct ljp_heap_gatherers *found)
{
  const struct ljp_graph *g = w->g;
  struct shared_sums s = {.bytes = calloc(g->count, sizeof *s.bytes),
                          .objects = calloc(g->count, sizeof *s.objects)};
  bool ok = s.bytes && s.objects && shared_add_up(w, &s);
  s.small = ok ? calloc(g->count, sizeof *s.small) : NULL;
  ok = s.small != NULL;
  for (uint32_t i = 1; ok && i < g->count; i++)
    if (ljp_graph_is_held(g, i) && s.bytes[i] < s.bytes[g->holder[i]] / MANY)
      s.small[g->holder[i]] += s.bytes[i];
  for (uint32_t i = 1; ok && i < g->count; i++)
    if (shared_counts(w, &s, i) && !shared_is_known(w, found, &s, i))
      ok = shared_put(found, &s, i);
  free(s.bytes);
  free(s.objects);
  free(s.small);
  return ok;
}
