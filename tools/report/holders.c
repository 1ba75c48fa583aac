/*
** Holders: what keeps the memory of a leak alive, if the file has a heap snapshot,
** too. Of the old objects that a group allocated and that the snapshot has, the way
** from a root on which nearly all of the bytes are, as far as it is the same; else
** that on which more than half of them are. It goes on where the next step loses
** little, so that a table is named, not the root that has it.
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/heap/graph_births.h"
#include "tools/heap/ways.h"
#include "tools/report/groups.h"

#define HOLDERS_MOST 0.9
#define HOLDERS_NEXT 0.95 /* Of the way before. */
enum { HOLDERS_STEPS = 64 /* Of a way; of longer ones, the last ones. */ };

/* What is held for a group on a way, or on one that continues it. */
struct held {
  uint32_t group, way;
  uint64_t bytes;
};

struct holders {
  const struct ljp_report *r;
  struct ljp_heap_kinds kinds;
  struct ljp_heap_ways ways;
  struct ljp_graph_births births;
  uint32_t *group_of; /* By node of the stack tree: group + 1; 0: none. */
  struct ljp_index index;
  struct held *list;
  uint32_t count, room;
};

static bool holders_add(struct holders *h, uint32_t group, uint32_t way,
                        uint64_t bytes)
{
  if (!ljp_index_reserve(&h->index))
    return false;
  uint32_t hash = ljp_hash_finish(ljp_hash_mix((uint64_t)group << 32 | way, 3));
  struct ljp_index_slot *slot = ljp_index_at(&h->index, hash);
  for (; slot->item; slot = ljp_index_next(&h->index, slot)) {
    struct held *held = &h->list[slot->item - 1];
    if (slot->hash == hash && held->group == group && held->way == way) {
      held->bytes += bytes;
      return true;
    }
  }
  if (!ljp_array_reserve(&h->list, h->count, &h->room, sizeof *h->list))
    return false;
  ljp_index_put(&h->index, slot, hash, h->count);
  h->list[h->count++] = (struct held){group, way, bytes};
  return true;
}

/* Adds the objects that are held. sums: by group, their bytes. */
static bool holders_collect(struct holders *h, uint64_t *sums)
{
  const struct ljp_graph *g = h->r->graph;
  const struct ljp_profile *p = h->r->p;
  for (uint32_t i = 1; i < g->count; i++) {
    const struct ljp_birth *birth = ljp_graph_birth(&h->births, i);
    if (!birth || !ljp_graph_is_held(g, i) ||
        birth->cycle + 2 > p->births.cycle)
      continue;
    uint32_t group = h->group_of[p->rows[birth->row].node];
    if (!group--)
      continue;
    uint64_t bytes = birth->weight ? birth->weight : ljp_graph_own(g, i);
    uint32_t way = ljp_heap_way(&h->ways, i), steps = 0;
    if (way == UINT32_MAX)
      return false;
    sums[group] += bytes;
    for (; way && steps < HOLDERS_STEPS;
         steps++, way = h->ways.list[way].parent)
      if (!holders_add(h, group, way, bytes))
        return false;
  }
  return true;
}

/* A part of the VM has no name in a way. */
static bool holders_is_vm(const struct holders *h, uint32_t way)
{
  const struct ljp_heap_way *of = &h->ways.list[way];
  return !of->parent && h->r->graph->type[of->example] > LJP_MEM_TYPE_TRACE;
}

/* One more step; false: no way goes on. */
static bool holders_continue(const struct holders *h, const uint64_t *sums,
                             struct ljp_holder *holders)
{
  bool any = false;
  for (uint32_t i = 0; i < h->count; i++) {
    const struct held *held = &h->list[i];
    struct ljp_holder *best = &holders[held->group];
    double share = (double)held->bytes / (double)sums[held->group];
    if (best->way && h->ways.list[held->way].parent == best->way &&
        share > 0.5 && share >= best->share * HOLDERS_NEXT) {
      best->way = held->way;
      best->share = share;
      any = true;
    }
  }
  return any;
}

/* The longest way with nearly all of the bytes, or with more than half. A way has
** a larger number than that which it continues. */
static void holders_choose(const struct holders *h, const uint64_t *sums,
                           struct ljp_holder *holders)
{
  for (uint32_t i = 0; i < h->count; i++) {
    const struct held *held = &h->list[i];
    struct ljp_holder *best = &holders[held->group];
    double share = (double)held->bytes / (double)sums[held->group];
    if (holders_is_vm(h, held->way))
      continue;
    bool most = share >= HOLDERS_MOST, had = best->share >= HOLDERS_MOST;
    if (share > 0.5 && (most != had ? most : held->way > best->way)) {
      best->way = held->way;
      best->share = share;
    }
  }
  while (holders_continue(h, sums, holders))
    ;
  for (uint32_t i = 0; i < h->count; i++) {
    struct ljp_holder *best = &holders[h->list[i].group];
    struct ljp_heap_text text = {.len = 0};
    if (best->text || best->way != h->list[i].way)
      continue;
    ljp_heap_way_text(&h->ways, best->way, &text);
    best->text = strndup(text.data, text.len);
  }
}

/* Groups of frames count at their own nodes; stacks are nodes. */
static bool holders_map_groups(struct holders *h,
                               const struct ljp_groups *groups)
{
  const struct ljp_report *r = h->r;
  h->group_of = calloc((size_t)r->p->node_count + 1, sizeof *h->group_of);
  if (!h->group_of)
    return false;
  for (uint32_t i = 0; groups->of_node && i < r->p->node_count; i++)
    h->group_of[i] = groups->of_node[i] + 1;
  for (uint32_t i = 0; r->by == LJP_BY_STACK && i < groups->count; i++)
    h->group_of[groups->first[i]] = i + 1;
  return true;
}

bool ljp_report_has_holders(const struct ljp_report *r)
{
  return r->graph && r->p->births.count &&
         r->select.measure == LJP_MEASURE_LEAKS &&
         (ljp_by_of_frame(r->by) || r->by == LJP_BY_STACK);
}

struct ljp_holder *ljp_report_holders(const struct ljp_report *r,
                                      const struct ljp_groups *groups)
{
  struct holders h = {.r = r};
  struct ljp_holder *holders =
      calloc((size_t)groups->count + 1, sizeof *holders);
  uint64_t *sums = calloc((size_t)groups->count + 1, sizeof *sums);
  bool births = holders && sums &&
                !ljp_graph_births_init(&h.births, r->graph, &r->p->births);
  bool ok = births && holders_map_groups(&h, groups) &&
            !ljp_heap_kinds_find(r->graph, &h.kinds) &&
            !ljp_heap_ways_init(&h.ways, r->graph, &h.kinds) &&
            holders_collect(&h, sums);
  if (ok)
    holders_choose(&h, sums, holders);
  if (births)
    ljp_graph_births_fini(&h.births);
  ljp_heap_ways_fini(&h.ways);
  ljp_heap_kinds_fini(&h.kinds);
  ljp_index_fini(&h.index);
  free(h.group_of);
  free(h.list);
  free(sums);
  if (ok)
    return holders;
  free(holders);
  return NULL;
}

void ljp_report_holders_free(struct ljp_holder *holders, uint32_t count)
{
  for (uint32_t i = 0; holders && i < count; i++)
    free(holders[i].text);
  free(holders);
}
