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

/* A linked node: the next one up, and the least semidominator on the way there,
** this node's included. Before it is linked: its parent, and itself. */
struct search_up {
  uint32_t link, least;
};

struct search {
  const struct ljp_dominators_graph *graph;
  uint32_t count;       /* Nodes that are reached. */
  uint32_t *number;     /* By node; NONE: not reached. */
  uint32_t *node;       /* By number. */
  uint32_t *parent;     /* The same, in the tree; later: the dominator. */
  struct search_up *up; /* By number. */
  uint32_t *semi;
  uint32_t *stack;        /* Borrowed. */
  uint32_t *first, *from; /* Edges backwards: numbers, by node. */
};

static bool search_counts(const struct ljp_dominators_graph *g, uint32_t edge)
{
  return !(g->how[edge] & g->ignored);
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

/* Turns counts[i + 1], the number of edges to node i, into the place where these
** begin. False: no memory for the edges. */
static bool search_place_edges(struct search *s, uint32_t *counts)
{
  for (uint32_t i = 0; i < s->graph->count; i++)
    counts[i + 1] += counts[i];
  s->from =
      ljp_pages_items((size_t)counts[s->graph->count] + 1, sizeof *s->from);
  return s->from != NULL;
}

/* Turns around the edges between nodes that are reached. In the order of nodes,
** only the writes go to random places. */
static enum ljp_status search_turn_edges(struct search *s)
{
  enum { NEXT = 32, FROM = 12 };
  const struct ljp_dominators_graph *g = s->graph;
  const uint32_t all = g->first[g->count];
  s->first = ljp_pages_items((size_t)g->count + 2, sizeof *s->first);
  if (!s->first)
    return LJP_ERR_MEM;
  uint32_t *next = s->first + 1;
  for (uint32_t i = 0; i < g->count; i++) {
    for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
      if (e + NEXT < all)
        __builtin_prefetch(&next[g->target[e + NEXT] + 1], 1);
      if (search_counts(g, e) && s->number[i] != NONE)
        next[g->target[e] + 1]++;
    }
  }
  /* next[i] becomes where the edges to i begin; filling moves it to their end,
  ** which is first[i + 1]. */
  if (!search_place_edges(s, next))
    return LJP_ERR_MEM;
  for (uint32_t i = 0; i < g->count; i++) {
    uint32_t number = s->number[i];
    for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
      if (e + NEXT < all) {
        __builtin_prefetch(&next[g->target[e + NEXT]], 1);
        __builtin_prefetch(&s->from[next[g->target[e + FROM]]], 1);
      }
      if (search_counts(g, e) && number != NONE)
        s->from[next[g->target[e]]++] = number;
    }
  }
  return LJP_OK;
}

/* The least semidominator on the way up from v, without the first node below
** `linked`, where the way ends. Shortens the way. */
static uint32_t search_eval(struct search *s, uint32_t v, uint32_t linked)
{
  uint32_t depth = 0;
  if (s->up[v].link < linked)
    return s->up[v].least;
  while (s->up[v].link >= linked) {
    s->stack[depth++] = v;
    v = s->up[v].link;
  }
  const struct search_up above = s->up[v];
  uint32_t best = above.least;
  while (depth) {
    struct search_up *up = &s->up[s->stack[--depth]];
    up->link = above.link;
    if (best < up->least)
      up->least = best;
    else
      best = up->least;
  }
  return best;
}

/* The ways up that will be evaluated soon are walked ahead, all of them by one
** node at a time: so their reads, which miss the caches in large graphs, overlap. */
enum { WALKS = 64 };
struct search_walks {
  uint32_t count;
  uint32_t at[WALKS];
};

static void search_walk_ahead(const struct search *s,
                              struct search_walks *walks, uint32_t i)
{
  enum { FIRST = 32, FROM = 24, UP = 16 };
  for (uint32_t k = 0; k < walks->count; k++) {
    uint32_t link = s->up[walks->at[k]].link;
    if (link > i) {
      __builtin_prefetch(&s->up[link], 1);
      walks->at[k] = link;
    } else {
      walks->at[k--] = walks->at[--walks->count];
    }
  }
  if (i > FIRST)
    __builtin_prefetch(&s->first[s->node[i - FIRST]]);
  if (i > FROM)
    __builtin_prefetch(&s->from[s->first[s->node[i - FROM]]]);
  if (i <= UP)
    return;
  uint32_t node = s->node[i - UP], end = s->first[node + 1];
  for (uint32_t e = s->first[node]; e < end && walks->count < WALKS; e++) {
    if (s->from[e] <= i)
      continue;
    __builtin_prefetch(&s->up[s->from[e]], 1);
    walks->at[walks->count++] = s->from[e];
  }
}

static void search_dominators(struct search *s)
{
  struct search_walks walks = {.count = 0};
  for (uint32_t i = 0; i < s->count; i++)
    s->up[i] = (struct search_up){.link = s->parent[i], .least = i};
  for (uint32_t i = s->count - 1; i > 0; i--) {
    uint32_t least = s->parent[i], node = s->node[i];
    search_walk_ahead(s, &walks, i);
    for (uint32_t e = s->first[node]; e < s->first[node + 1]; e++) {
      uint32_t from = s->from[e];
      uint32_t semi = from <= i ? from : search_eval(s, from, i + 1);
      if (semi < least)
        least = semi;
    }
    s->semi[i] = s->up[i].least = least;
  }
  for (uint32_t i = 1; i < s->count; i++) {
    uint32_t up = s->parent[i];
    while (up > s->semi[i])
      up = s->parent[up];
    s->parent[i] = up;
  }
}

/* Frees what the results do not need. */
static void search_free_edges(struct search *s)
{
  free(s->number);
  free(s->up);
  free(s->semi);
  free(s->first);
  free(s->from);
  s->number = s->semi = s->first = s->from = NULL;
  s->up = NULL;
}

static bool search_take(const struct search *s, uint32_t **array)
{
  *array = ljp_pages_items((size_t)s->graph->count + 1, sizeof **array);
  return *array != NULL;
}

/* Numbers the nodes. Each array is taken when it is needed, and given back. */
static enum ljp_status search_init(struct search *s)
{
  if (!search_take(s, &s->number) || !search_take(s, &s->node) ||
      !search_take(s, &s->parent))
    return LJP_ERR_MEM;
  enum ljp_status status = search_number(s);
  if (!status)
    status = search_turn_edges(s);
  if (status)
    return status;
  free(s->number);
  s->number = NULL;
  s->up = ljp_pages_items(s->count, sizeof *s->up);
  return s->up && search_take(s, &s->semi) ? LJP_OK : LJP_ERR_MEM;
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
  if (!status) {
    search_dominators(&s);
    search_free_edges(&s);
    search_results(&s, dominator, retained);
  }
  search_free_edges(&s);
  free(s.node);
  free(s.parent);
  return status;
}
