/*
** See graph_refs.h.
*/
#include "parsers/heap/graph_refs.h"

#include <stdlib.h>

static bool refs_grow(void *array, size_t item_bytes, size_t room)
{
  void *grown = realloc(*(void **)array, room * item_bytes);
  if (!grown)
    return false;
  *(void **)array = grown;
  return true;
}

static enum ljp_status refs_put(struct ljp_graph *g, uint32_t target,
                                unsigned how, uint32_t name)
{
  if (g->ref_count == g->ref_room) {
    size_t room = g->ref_room ? g->ref_room * 2 : 4096;
    if (room > UINT32_MAX || !refs_grow(&g->target, sizeof *g->target, room) ||
        !refs_grow(&g->name, sizeof *g->name, room) ||
        !refs_grow(&g->how, sizeof *g->how, room))
      return LJP_ERR_MEM;
    g->ref_room = room;
  }
  g->target[g->ref_count] = target;
  g->name[g->ref_count] = name;
  g->how[g->ref_count++] = (uint8_t)how;
  return LJP_OK;
}

/* Does this node keep itself alive? */
static bool refs_is_root(const struct ljp_graph *g, uint32_t node)
{
  bool part = g->type[node] > LJP_MEM_TYPE_TRACE;
  bool held = g->flags[node] & (LJP_HEAP_PINNED | LJP_HEAP_FINAL);
  /* The main thread is pinned, and a root of the VM, too. */
  return part || (held && g->type[node] != LJP_MEM_TYPE_THREAD);
}

/* Takes room for all references at once, in large pages, since they will be read
** in random order. Then adds those of node 0. */
static enum ljp_status refs_put_roots(struct ljp_graph *g)
{
  enum ljp_status status = LJP_OK;
  size_t room = g->ref_count;
  for (uint32_t i = 1; i < g->count; i++)
    room += refs_is_root(g, i);
  g->ref_count = 0;
  if (room && room < UINT32_MAX) {
    g->target = ljp_pages_items(room, sizeof *g->target);
    g->name = ljp_pages_items(room, sizeof *g->name);
    g->how = ljp_pages_items(room, sizeof *g->how);
    if (!g->target || !g->name || !g->how)
      return LJP_ERR_MEM;
    g->ref_room = room;
  }
  for (uint32_t i = 1; i < g->count && !status; i++)
    if (refs_is_root(g, i))
      status = refs_put(g, i, LJP_HEAP_HOW_ROOT, UINT32_MAX);
  return status;
}

enum ljp_status ljp_graph_refs_begin(struct ljp_graph_refs *t,
                                     struct ljp_graph *g)
{
  enum ljp_status status =
      ljp_heap_addresses_init(&t->nodes, g->address, g->count);
  return status ? status : refs_put_roots(g);
}

void ljp_graph_refs_find(struct ljp_graph_refs *t, struct ljp_graph *g)
{
  uint32_t place[LJP_GRAPH_TARGETS];
  for (unsigned i = 0; i < t->count; i++)
    ljp_heap_addresses_fetch_page(&t->nodes, t->list[i].address);
  for (unsigned i = 0; i < t->count; i++) {
    place[i] = ljp_heap_address_place(&t->nodes, t->list[i].address);
    if (place[i] != UINT32_MAX)
      __builtin_prefetch(&t->nodes.objects[place[i]]);
  }
  for (unsigned i = 0; i < t->count; i++) {
    uint32_t node = place[i] == UINT32_MAX ? 0 : t->nodes.objects[place[i]];
    g->target[t->list[i].ref] = node;
    if (t->list[i].key)
      g->name[t->list[i].ref + 1] = node;
    g->missing_refs += !node;
  }
  t->count = 0;
}

void ljp_graph_refs_pair(struct ljp_graph_refs *t, struct ljp_graph *g)
{
  if (t->count > LJP_GRAPH_TARGETS - 2)
    ljp_graph_refs_find(t, g);
}

enum ljp_status ljp_graph_refs_add(struct ljp_graph_refs *t,
                                   struct ljp_graph *g, uint64_t address,
                                   unsigned how, uint32_t name, bool key)
{
  if (t->count == LJP_GRAPH_TARGETS)
    ljp_graph_refs_find(t, g);
  ljp_heap_addresses_fetch(&t->nodes, address);
  t->list[t->count].address = address;
  t->list[t->count].ref = (uint32_t)g->ref_count;
  t->list[t->count++].key = key;
  return refs_put(g, 0, how, name);
}

void ljp_graph_refs_drop_missing(struct ljp_graph *g)
{
  uint32_t to = 0;
  for (uint32_t i = 0, e = 0; i < g->count; i++) {
    uint32_t end = g->first[i + 1];
    g->first[i] = to;
    for (; e < end; e++) {
      if (!g->target[e])
        continue;
      g->target[to] = g->target[e];
      g->name[to] = g->name[e];
      g->how[to++] = g->how[e];
    }
  }
  g->first[g->count] = to;
  g->ref_count = to;
}
