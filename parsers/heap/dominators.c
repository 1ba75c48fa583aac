/*
** See dominators.h. Nodes get numbers in the order of a depth-first search
** (root 0), and from there on everything is in these numbers: a node's
** dominator, its semidominator and its parent in the tree have smaller ones.
*/
#include "parsers/heap/dominators.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/pages.h"
#include "src/base/assert.h"

#define NONE UINT32_MAX
enum { EVALS = 16 };

struct search {
  const struct ljp_dominators_graph *graph;
  uint32_t count;   /* Nodes that are reached. */
  uint32_t *number; /* By node; NONE: not reached. */
  uint32_t *node;   /* By number. */
  uint32_t *parent; /* The same, in the tree; later: the dominator. */
  uint32_t *link, *semi;
  uint32_t *label;        /* number[], used again. */
  uint32_t *stack;        /* Borrowed. */
  uint32_t *first, *from; /* Edges backwards, by number. */
};

static bool search_counts(const struct ljp_dominators_graph *g, uint32_t edge)
{
  return !(g->how[edge] & g->ignored);
}

/* The most edges of a node for which memory is asked ahead. */
enum { MOST = 8 };

static void search_fetch_numbers(const struct search *s, uint32_t node)
{
  const struct ljp_dominators_graph *g = s->graph;
  uint32_t end = g->first[node + 1];
  for (uint32_t e = g->first[node], n = 0; e < end && n < MOST; e++, n++)
    __builtin_prefetch(&s->number[g->target[e]]);
}

/* An edge that has not been followed yet. */
struct search_edge {
  uint32_t target, parent; /* A node; the number of the other one. */
};

/* All edges of a node wait on one stack: reading them when the search comes back
** to the node would be slower. */
struct search_stack {
  struct search_edge *list;
  uint32_t count, room;
};

static bool search_push(const struct search *s, struct search_stack *stack,
                        uint32_t node, uint32_t number)
{
  const struct ljp_dominators_graph *g = s->graph;
  for (uint32_t e = g->first[node + 1]; e-- > g->first[node];) {
    uint32_t target = g->target[e];
    if (!search_counts(g, e))
      continue;
    if (!ljp_array_reserve(&stack->list, stack->count, &stack->room,
                           sizeof *stack->list))
      return false;
    stack->list[stack->count++] = (struct search_edge){target, number};
    __builtin_prefetch(&s->number[target]);
    __builtin_prefetch(&g->first[target]);
  }
  return true;
}

static void search_fetch_below(const struct search *s,
                               const struct search_stack *stack)
{
  enum { NUMBERS = 16, EDGES = 6 };
  const struct ljp_dominators_graph *g = s->graph;
  if (stack->count >= NUMBERS) {
    uint32_t node = stack->list[stack->count - NUMBERS].target;
    __builtin_prefetch(&s->number[node]);
    __builtin_prefetch(&g->first[node]);
  }
  if (stack->count >= EDGES) {
    uint32_t e = g->first[stack->list[stack->count - EDGES].target];
    __builtin_prefetch(&g->target[e]);
    __builtin_prefetch(&g->how[e]);
  }
}

static enum ljp_status search_number(struct search *s)
{
  struct search_stack stack = {.list = NULL};
  memset(s->number, 0xff, s->graph->count * sizeof *s->number);
  s->number[0] = s->node[0] = s->parent[0] = 0;
  s->count = 1;
  bool ok = search_push(s, &stack, 0, 0);
  while (ok && stack.count) {
    search_fetch_below(s, &stack);
    const struct search_edge edge = stack.list[--stack.count];
    if (s->number[edge.target] != NONE)
      continue;
    uint32_t number = s->count++;
    s->number[edge.target] = number;
    s->node[number] = edge.target;
    s->parent[number] = edge.parent;
    ok = search_push(s, &stack, edge.target, number);
  }
  free(stack.list);
  return ok ? LJP_OK : LJP_ERR_MEM;
}

/* Asks for what will be read soon about the edges of nodes: in large graphs each
** read misses the caches. */
static void search_fetch_ahead(const struct search *s, uint32_t i)
{
  enum { FIRST = 24, TARGETS = 16, NUMBERS = 8 };
  const struct ljp_dominators_graph *g = s->graph;
  if (i + FIRST < s->count)
    __builtin_prefetch(&g->first[s->node[i + FIRST]]);
  if (i + TARGETS < s->count) {
    uint32_t e = g->first[s->node[i + TARGETS]];
    __builtin_prefetch(&g->target[e]);
    __builtin_prefetch(&g->how[e]);
  }
  if (i + NUMBERS < s->count)
    search_fetch_numbers(s, s->node[i + NUMBERS]);
}

/* Edges backwards, between nodes that are reached. */
static enum ljp_status search_turn_edges(struct search *s)
{
  const struct ljp_dominators_graph *g = s->graph;
  s->first = ljp_pages_items((size_t)s->count + 2, sizeof *s->first);
  if (!s->first)
    return LJP_ERR_MEM;
  uint32_t *next = s->first + 1;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < s->count; i++) {
      uint32_t node = s->node[i];
      search_fetch_ahead(s, i);
      for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
        if (!search_counts(g, e))
          continue;
        uint32_t to = s->number[g->target[e]];
        if (pass)
          s->from[next[to]++] = i;
        else
          next[to + 1]++;
      }
    }
    if (pass)
      break;
    /* next[i] becomes where the edges of i begin; filling moves it to their
    ** end, which is first[i + 1]. */
    for (uint32_t i = 0; i < s->count; i++)
      next[i + 1] += next[i];
    s->from = malloc(((size_t)next[s->count] + 1) * sizeof *s->from);
    if (!s->from)
      return LJP_ERR_MEM;
  }
  return LJP_OK;
}

/* The node with the least semidominator on the way from v up to, and without,
** the first node below `linked`; the way gets shorter. */
static uint32_t search_eval(struct search *s, uint32_t v, uint32_t linked)
{
  uint32_t depth = 0;
  if (s->link[v] < linked)
    return s->label[v];
  while (s->link[v] >= linked) {
    s->stack[depth++] = v;
    v = s->link[v];
  }
  uint32_t above = v, best = s->label[v];
  while (depth) {
    v = s->stack[--depth];
    s->link[v] = s->link[above];
    if (s->semi[best] < s->semi[s->label[v]])
      s->label[v] = best;
    else
      best = s->label[v];
    above = v;
  }
  return s->label[v];
}

static void search_dominators(struct search *s)
{
  s->label = s->number; /* Nobody asks for a node's number any more. */
  for (uint32_t i = 0; i < s->count; i++) {
    s->link[i] = s->parent[i];
    s->label[i] = s->semi[i] = i;
  }
  for (uint32_t i = s->count - 1; i > 0; i--) {
    uint32_t least = s->parent[i];
    for (uint32_t e = s->first[i]; e < s->first[i + 1]; e++) {
      uint32_t from = s->from[e];
      if (e >= EVALS) { /* Later ones stand before. */
        __builtin_prefetch(&s->link[s->from[e - EVALS]]);
        __builtin_prefetch(&s->label[s->from[e - EVALS]]);
      }
      uint32_t semi = from <= i ? from : s->semi[search_eval(s, from, i + 1)];
      if (semi < least)
        least = semi;
    }
    s->semi[i] = least;
  }
  for (uint32_t i = 1; i < s->count; i++) {
    uint32_t up = s->parent[i];
    while (up > s->semi[i])
      up = s->parent[up];
    s->parent[i] = up;
  }
}

static void search_fini(struct search *s)
{
  free(s->number);
  free(s->node);
  free(s->parent);
  free(s->link);
  free(s->semi);
  free(s->first);
  free(s->from);
}

static bool search_take(const struct search *s, uint32_t **array)
{
  *array = ljp_pages_items((size_t)s->graph->count + 1, sizeof **array);
  return *array != NULL;
}

/* Numbers the nodes; then come the arrays that the numbering does not need. */
static enum ljp_status search_init(struct search *s)
{
  if (!search_take(s, &s->number) || !search_take(s, &s->node) ||
      !search_take(s, &s->parent))
    return LJP_ERR_MEM;
  enum ljp_status status = search_number(s);
  if (status)
    return status;
  return search_take(s, &s->link) && search_take(s, &s->semi) ? LJP_OK
                                                              : LJP_ERR_MEM;
}

/* From the leaves to the root. */
static void search_results(const struct search *s, uint32_t *dominator,
                           uint64_t *retained)
{
  enum { AHEAD = 16 };
  for (uint32_t i = 0; i < s->graph->count; i++)
    dominator[i] = LJP_DOMINATED_BY_NONE;
  dominator[0] = 0;
  for (uint32_t i = s->count - 1; i > 0; i--) {
    if (i > AHEAD) {
      __builtin_prefetch(&retained[s->node[i - AHEAD]]);
      __builtin_prefetch(&dominator[s->node[i - AHEAD]]);
      __builtin_prefetch(&retained[s->node[s->parent[i - AHEAD]]]);
    }
    uint32_t node = s->node[i], up = s->node[s->parent[i]];
    dominator[node] = up;
    retained[up] += retained[node];
  }
}

enum ljp_status ljp_dominators(const struct ljp_dominators_graph *graph,
                               uint32_t *dominator, uint64_t *retained)
{
  struct search s = {.graph = graph, .stack = dominator};
  ljp_assert(graph->count > 0);
  enum ljp_status status = search_init(&s);
  if (!status)
    status = search_turn_edges(&s);
  if (!status) {
    search_dominators(&s);
    search_results(&s, dominator, retained);
  }
  search_fini(&s);
  return status;
}
