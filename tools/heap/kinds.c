/*
** See kinds.h. Strings are interned in the VM, so tables have the same keys if
** they refer to the same objects as keys, in any order.
*/
#include "tools/heap/kinds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/heap/dominators.h"
#include "parsers/stream/names.h"

enum {
  SHAPE_KEYS = 16, /* A table with more is a map. */
  MAX_KINDS = LJP_HEAP_KIND_PATHS,
  PATH_STEPS = 64 /* A path that is longer counts for several. */
};

/* What the key of a kind is made of, besides the type. */
enum { KIND_EMPTY = 1, KIND_ITEMS, KIND_MAP, KIND_REST };

static uint64_t kinds_mix(uint64_t a, uint64_t b)
{
  unsigned __int128 product =
      (unsigned __int128)(a ^ UINT64_C(0x9e3779b97f4a7c15)) *
      (b ^ UINT64_C(0xd6e8feb86659fd93));
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t kinds_table(const struct ljp_graph *g, uint32_t node)
{
  uint64_t sum = 0;
  unsigned keys = 0, others = 0, metatable = 0;
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    unsigned how = ljp_graph_how(g, e);
    if (how == LJP_HEAP_HOW_METATABLE) {
      metatable = g->target[e];
    } else if (how == LJP_HEAP_HOW_KEY &&
               g->type[g->target[e]] == LJP_MEM_TYPE_STRING) {
      if (++keys > SHAPE_KEYS)
        break;
      sum += kinds_mix(g->target[e], 1);
    } else if (how != LJP_HEAP_HOW_FIELD) {
      others++;
    }
  }
  if (metatable)
    return kinds_mix(metatable, 3);
  if (keys > SHAPE_KEYS)
    return KIND_MAP;
  if (keys)
    return kinds_mix(sum, 2);
  return others ? KIND_ITEMS : KIND_EMPTY;
}

/* The function with which a coroutine began: that of its outermost frame, or
** the one that waits on its stack to be called first. */
static uint32_t kinds_outermost(const struct ljp_graph *g, uint32_t thread)
{
  uint32_t slot = ljp_graph_ref(g, thread, LJP_HEAP_HOW_SLOT);
  for (uint32_t e = g->first[thread + 1]; e > g->first[thread]; e--)
    if (ljp_graph_how(g, e - 1) == LJP_HEAP_HOW_FRAME)
      return g->target[e - 1];
  if (slot != UINT32_MAX && g->type[g->target[slot]] == LJP_MEM_TYPE_FUNCTION)
    return g->target[slot];
  return 0;
}

static uint64_t kinds_key(const struct ljp_graph *g, uint32_t node)
{
  uint32_t function;
  uint64_t detail = 0;
  switch (g->type[node]) {
  case LJP_MEM_TYPE_TABLE:
    detail = kinds_table(g, node);
    break;
  case LJP_MEM_TYPE_FUNCTION:
    detail = ljp_heap_follow(g, node, LJP_HEAP_HOW_PROTOTYPE);
    break;
  case LJP_MEM_TYPE_THREAD:
    function = kinds_outermost(g, node);
    detail =
        function ? ljp_heap_follow(g, function, LJP_HEAP_HOW_PROTOTYPE) : 0;
    break;
  case LJP_MEM_TYPE_CDATA:
    detail = g->detail[node];
    break;
  }
  return kinds_mix(detail + 1, g->type[node]);
}

/* -- Collecting them ------------------------------------------------------- */

struct kinds_search {
  struct ljp_heap_kinds *kinds;
  uint32_t *slots, slot_count; /* By key: index + 1. */
};

static bool kinds_grow(struct kinds_search *s)
{
  struct ljp_heap_kinds *k = s->kinds;
  uint32_t count = s->slot_count ? s->slot_count * 2 : 1024;
  uint32_t *slots = calloc(count, sizeof *slots);
  struct ljp_heap_kind *list =
      slots ? realloc(k->list, count / 2 * sizeof *list) : NULL;
  if (!list) {
    free(slots);
    return false;
  }
  free(s->slots);
  s->slots = slots;
  s->slot_count = count;
  k->list = list;
  k->room = count / 2;
  for (uint32_t i = 0; i < k->count; i++) {
    uint32_t slot = (uint32_t)k->list[i].key & (count - 1);
    while (slots[slot])
      slot = (slot + 1) & (count - 1);
    slots[slot] = i + 1;
  }
  return true;
}

/* Kinds beyond the limit become one. */
static bool kinds_put(struct kinds_search *s, uint64_t key, uint32_t node)
{
  struct ljp_heap_kinds *k = s->kinds;
  if ((!s->slots || k->count == k->room) && !kinds_grow(s))
    return false;
  uint32_t slot = (uint32_t)key & (s->slot_count - 1);
  while (s->slots[slot] && k->list[s->slots[slot] - 1].key != key)
    slot = (slot + 1) & (s->slot_count - 1);
  if (!s->slots[slot] && k->count >= MAX_KINDS &&
      key != kinds_mix(KIND_REST + 1, 0))
    return kinds_put(s, kinds_mix(KIND_REST + 1, 0), node);
  if (!s->slots[slot]) {
    k->list[k->count] = (struct ljp_heap_kind){.key = key, .example = node};
    s->slots[slot] = ++k->count;
  }
  k->of[node] = s->slots[slot] - 1;
  return true;
}

static int kinds_by_own(const void *a, const void *b)
{
  const struct ljp_heap_kind *x = a, *y = b;
  if (x->sums.own != y->sums.own)
    return x->sums.own < y->sums.own ? 1 : -1;
  return x->example < y->example ? -1 : x->example > y->example;
}

enum ljp_status ljp_heap_kinds_find(const struct ljp_graph *g,
                                    struct ljp_heap_kinds *kinds)
{
  struct kinds_search s = {.kinds = kinds};
  *kinds = (struct ljp_heap_kinds){.list = NULL};
  kinds->of = malloc(g->count * sizeof *kinds->of);
  bool ok = kinds->of != NULL;
  if (ok)
    kinds->of[0] = LJP_HEAP_NO_KIND;
  for (uint32_t i = 1; ok && i < g->count; i++)
    ok = kinds_put(&s, kinds_key(g, i), i);
  free(s.slots);
  return ok ? LJP_OK : LJP_ERR_MEM;
}

void ljp_heap_kinds_sort(struct ljp_heap_kinds *kinds)
{
  free(kinds->of);
  kinds->of = NULL;
  if (kinds->count)
    qsort(kinds->list, kinds->count, sizeof *kinds->list, kinds_by_own);
}

void ljp_heap_kinds_fini(struct ljp_heap_kinds *kinds)
{
  free(kinds->list);
  free(kinds->of);
}

/* -- Text ------------------------------------------------------------------ */

static uint32_t kinds_path_cost(const struct ljp_graph *g, uint32_t node)
{
  uint32_t steps = 0;
  for (uint32_t at = node; at && ljp_graph_is_held(g, node); at = g->holder[at])
    steps++;
  return 1 + steps / PATH_STEPS;
}

/* The metatable's __name, if it has one. */
static void kinds_metatable(const struct ljp_graph *g, uint32_t metatable,
                            uint32_t *paths, struct ljp_heap_text *t)
{
  static const char name[] = "__name";
  for (uint32_t e = g->first[metatable]; e < g->first[metatable + 1]; e++) {
    if (ljp_graph_how(g, e) != LJP_HEAP_HOW_FIELD)
      continue;
    struct ljp_str key = ljp_graph_string(g, g->name[e]);
    struct ljp_str value = ljp_graph_string(g, g->target[e]);
    if (key.len == sizeof name - 1 && !memcmp(key.data, name, key.len) &&
        g->type[g->target[e]] == LJP_MEM_TYPE_STRING) {
      ljp_heap_format(t, "table ");
      ljp_heap_bytes(t, value, 60);
      return;
    }
  }
  ljp_heap_format(t, *paths ? "table with the metatable "
                            : "table with a metatable");
  if (*paths) {
    uint32_t cost = kinds_path_cost(g, metatable);
    ljp_heap_path(g, metatable, t);
    *paths -= cost < *paths ? cost : *paths;
  }
}

void ljp_heap_kind_name(const struct ljp_graph *g,
                        const struct ljp_heap_kind *kind, uint32_t *paths,
                        struct ljp_heap_text *t)
{
  uint32_t node = kind->example, function;
  if (kind->key == kinds_mix(KIND_REST + 1, 0)) {
    ljp_heap_format(t, "objects of more than %d kinds", MAX_KINDS);
    return;
  }
  const char *type = ljp_name_mem_type(g->type[node]);
  switch (g->type[node]) {
  case LJP_MEM_TYPE_TABLE:
    for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++)
      if (ljp_graph_how(g, e) == LJP_HEAP_HOW_METATABLE) {
        kinds_metatable(g, g->target[e], paths, t);
        return;
      }
    if (kind->key == kinds_mix(KIND_ITEMS + 1, LJP_MEM_TYPE_TABLE))
      ljp_heap_format(t, "table of items");
    else if (kind->key == kinds_mix(KIND_MAP + 1, LJP_MEM_TYPE_TABLE))
      ljp_heap_format(t, "table with more than %d keys", SHAPE_KEYS);
    else if (kind->key == kinds_mix(KIND_EMPTY + 1, LJP_MEM_TYPE_TABLE))
      ljp_heap_format(t, "table of plain values, or empty");
    else
      ljp_heap_describe_table(g, node, false, t);
    break;
  case LJP_MEM_TYPE_FUNCTION:
    if (ljp_heap_follow(g, node, LJP_HEAP_HOW_PROTOTYPE))
      ljp_heap_describe(g, node, t);
    else
      ljp_heap_format(t, "builtins and C functions");
    break;
  case LJP_MEM_TYPE_THREAD:
    function = kinds_outermost(g, node);
    ljp_heap_format(t, "coroutine");
    if (function) {
      ljp_heap_format(t, " of ");
      ljp_heap_describe(g, function, t);
    }
    break;
  case LJP_MEM_TYPE_CDATA:
    ljp_heap_format(t, "cdata ");
    ljp_heap_describe_ctype(g, g->detail[node], t);
    break;
  default:
    ljp_heap_format(t, "%s", type ? type : "object of an unknown type");
  }
}

void ljp_heap_kind_text(const struct ljp_graph *g,
                        const struct ljp_heap_kind *kind,
                        struct ljp_heap_text *t)
{
  uint32_t paths = 1;
  ljp_heap_kind_name(g, kind, &paths, t);
}
