/*
** See graph.h.
*/
#include "parsers/heap/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/pages.h"
#include "parsers/heap/dominators.h"
#include "parsers/heap/graph_read.h"

/* -- What nodes hold ------------------------------------------------------- */

struct ljp_str ljp_graph_text(const struct ljp_graph *g, uint32_t place)
{
  struct ljp_str text = {"", 0};
  if (place) {
    memcpy(&text.len, g->texts + place, sizeof text.len);
    text.data = g->texts + place + sizeof text.len;
  }
  return text;
}

struct ljp_str ljp_graph_string(const struct ljp_graph *g, uint32_t node)
{
  bool string = g->type[node] == LJP_MEM_TYPE_STRING;
  return ljp_graph_text(g, string ? g->detail[node] : 0);
}

uint32_t ljp_graph_line(const struct ljp_graph *g, uint32_t proto)
{
  uint32_t line = 0;
  if (g->type[proto] == LJP_MEM_TYPE_PROTO)
    memcpy(&line, ljp_graph_text(g, g->detail[proto]).data, sizeof line);
  return line;
}

struct ljp_str ljp_graph_upvalues(const struct ljp_graph *g, uint32_t proto)
{
  struct ljp_str names = {"", 0};
  if (g->type[proto] == LJP_MEM_TYPE_PROTO) {
    names = ljp_graph_text(g, g->detail[proto]);
    names.data += sizeof(uint32_t);
    names.len -= (uint32_t)sizeof(uint32_t);
  }
  return names;
}

struct ljp_str ljp_graph_builtin(const struct ljp_graph *g, uint32_t function)
{
  struct ljp_str name = {"", 0};
  if (g->type[function] == LJP_MEM_TYPE_FUNCTION && g->builtins &&
      g->detail[function] < LJP_GRAPH_MAX_BUILTINS) {
    name.data = g->builtins[g->detail[function]];
    name.len = (uint32_t)strlen(name.data);
  }
  return name;
}

uint64_t ljp_graph_own(const struct ljp_graph *g, uint32_t node)
{
  uint32_t low = 0, high = g->large_count;
  if (g->small_bytes[node] != UINT32_MAX)
    return g->small_bytes[node];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (g->large[middle].node < node)
      low = middle + 1;
    else
      high = middle;
  }
  return g->large[low].bytes;
}

uint32_t ljp_graph_ref(const struct ljp_graph *g, uint32_t node,
                       enum ljp_heap_how how)
{
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++)
    if (ljp_graph_how(g, e) == (unsigned)how)
      return e;
  return UINT32_MAX;
}

/* -- Dominators and shortest paths ----------------------------------------- */

static enum ljp_status graph_dominate(struct ljp_graph *g)
{
  g->dominator = ljp_pages_items(g->count, sizeof *g->dominator);
  g->retained = ljp_pages_items(g->count, sizeof *g->retained);
  if (!g->dominator || !g->retained)
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < g->count; i++)
    g->retained[i] = ljp_graph_own(g, i);
  const struct ljp_dominators_graph graph = {.count = g->count,
                                             .first = g->first,
                                             .target = g->target,
                                             .how = g->how,
                                             .ignored = LJP_HEAP_WEAK};
  return ljp_dominators(&graph, g->dominator, g->retained);
}

/* The search for paths in which references of a kind are followed. */
enum graph_search { GRAPH_TABLES, GRAPH_STACKS, GRAPH_TRACES, GRAPH_SEARCHES };

static unsigned graph_search(unsigned how)
{
  switch (how) {
  case LJP_HEAP_HOW_FRAME:
  case LJP_HEAP_HOW_LOCAL:
  case LJP_HEAP_HOW_SLOT:
    return GRAPH_STACKS;
  case LJP_HEAP_HOW_TRACE:
    return GRAPH_TRACES;
  }
  return GRAPH_TABLES;
}

/* Asks for what the search will read soon: in large heaps each read misses the
** caches. */
static void graph_fetch_ahead(const struct ljp_graph *g, const uint32_t *queue,
                              uint32_t head, uint32_t tail)
{
  enum { FIRST = 24, TARGETS = 16, HOLDERS = 8, MOST = 8 };
  if (head + FIRST < tail)
    __builtin_prefetch(&g->first[queue[head + FIRST]]);
  if (head + TARGETS < tail) {
    uint32_t e = g->first[queue[head + TARGETS]];
    __builtin_prefetch(&g->target[e]);
    __builtin_prefetch(&g->how[e]);
  }
  if (head + HOLDERS < tail) {
    uint32_t node = queue[head + HOLDERS], end = g->first[node + 1];
    for (uint32_t e = g->first[node], n = 0; e < end && n < MOST; e++, n++)
      __builtin_prefetch(&g->holder[g->target[e]]);
  }
}

struct graph_paths {
  struct ljp_graph *g;
  uint32_t *queue, tail;
  uint8_t *later; /* By node: has references for a later search. */
};

static void graph_follow(struct graph_paths *p, uint32_t node, unsigned search)
{
  struct ljp_graph *g = p->g;
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    uint32_t to = g->target[e];
    if (g->how[e] & LJP_HEAP_WEAK || g->holder[to] != UINT32_MAX)
      continue;
    if (graph_search(g->how[e]) > search) {
      p->later[node / 8] |= (uint8_t)(1u << node % 8);
      continue;
    }
    g->holder[to] = node;
    g->held_by[to] = e;
    p->queue[p->tail++] = to;
  }
}

/* Breadth first. A way through a stack is taken only where there is no other:
** what is also in a table will stay there when the function has returned. A way
** through compiled code, which holds its constants, comes last: nobody looks for
** them there, and the code may go at any time. */
static enum ljp_status graph_find_paths(struct ljp_graph *g)
{
  struct graph_paths p = {.g = g,
                          .queue = malloc(g->count * sizeof *p.queue),
                          .tail = 1,
                          .later = calloc(g->count / 8 + 1, 1)};
  g->holder = ljp_pages_items(g->count, sizeof *g->holder);
  g->held_by = ljp_pages_items(g->count, sizeof *g->held_by);
  bool ok = p.queue && p.later && g->holder && g->held_by;
  if (ok) {
    memset(g->holder, 0xff, g->count * sizeof *g->holder);
    g->holder[0] = g->held_by[0] = p.queue[0] = 0;
  }
  for (unsigned search = 0; ok && search < GRAPH_SEARCHES; search++) {
    const uint32_t before = search ? p.tail : 0;
    for (uint32_t head = 0; head < p.tail; head++) {
      uint32_t node = p.queue[head];
      if (head < before && !(p.later[node / 8] >> node % 8 & 1))
        continue;
      graph_fetch_ahead(g, p.queue, head, p.tail);
      graph_follow(&p, node, search);
    }
  }
  free(p.queue);
  free(p.later);
  return ok ? LJP_OK : LJP_ERR_MEM;
}

static enum ljp_status graph_load(struct ljp_graph *g,
                                  const struct ljp_graph_source *source,
                                  uint32_t number)
{
  memset(g, 0, sizeof *g);
  enum ljp_status status = ljp_graph_read(g, source, number);
  if (!status)
    status = graph_dominate(g);
  if (!status)
    status = graph_find_paths(g);
  if (status && !g->error[0])
    snprintf(g->error, sizeof g->error, "%s", ljp_status_text(status));
  return status;
}

enum ljp_status ljp_graph_load(struct ljp_graph *g, const char *path,
                               uint32_t number)
{
  return graph_load(g, &(struct ljp_graph_source){.path = path}, number);
}

enum ljp_status ljp_graph_load_memory(struct ljp_graph *g, const void *data,
                                      size_t size, uint32_t number)
{
  const struct ljp_graph_source source = {.data = data, .size = size};
  return graph_load(g, &source, number);
}

void ljp_graph_fini(struct ljp_graph *g)
{
  free(g->address);
  free(g->small_bytes);
  free(g->type);
  free(g->flags);
  free(g->detail);
  free(g->large);
  free(g->first);
  free(g->target);
  free(g->how);
  free(g->name);
  free(g->texts);
  free(g->builtins);
  free(g->ctypes);
  free(g->dominator);
  free(g->retained);
  free(g->holder);
  free(g->held_by);
}
