/*
** See match.h.
*/
#include "tools/heap/match.h"

#include <stdlib.h>
#include <sys/random.h>

#include "parsers/base/index.h"

bool ljp_heap_same_vm(const struct ljp_graph *before,
                      const struct ljp_graph *after)
{
  /* The first object is the VM itself. */
  return before->pid == after->pid && before->head.vm == after->head.vm &&
         before->address[1] == after->address[1];
}

/* Nodes of the earlier snapshot, by address. */
struct match_table {
  uint32_t *slots;
  uint32_t mask;
  uint64_t seed;
};

static uint32_t match_slot(const struct match_table *t, uint64_t address)
{
  return ljp_hash_finish(ljp_hash_mix(t->seed, address)) & t->mask;
}

static enum ljp_status match_index(struct match_table *t,
                                   const struct ljp_graph *g)
{
  uint32_t count = 1024;
  while (count < UINT32_C(1) << 31 && count / 2 < g->count)
    count *= 2;
  t->mask = count - 1;
  t->slots = ljp_pages_items(count, sizeof *t->slots);
  if (!t->slots)
    return LJP_ERR_MEM;
  if (getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) < 0)
    t->seed = (uintptr_t)t->slots;
  for (uint32_t i = 1; i < g->count; i++) {
    uint32_t slot = match_slot(t, g->address[i]);
    while (t->slots[slot] && g->address[t->slots[slot]] != g->address[i])
      slot = (slot + 1) & t->mask;
    if (!t->slots[slot])
      t->slots[slot] = i;
  }
  return LJP_OK;
}

static uint32_t match_find(const struct match_table *t,
                           const struct ljp_graph *g, uint64_t address)
{
  uint32_t slot = match_slot(t, address);
  while (t->slots[slot] && g->address[t->slots[slot]] != address)
    slot = (slot + 1) & t->mask;
  return t->slots[slot];
}

static uint64_t match_proto(const struct ljp_graph *g, uint32_t function)
{
  uint32_t ref = ljp_graph_ref(g, function, LJP_HEAP_HOW_PROTOTYPE);
  return ref == UINT32_MAX ? 0 : g->address[g->target[ref]];
}

static bool match_is_same(const struct ljp_graph *a, uint32_t x,
                          const struct ljp_graph *b, uint32_t y)
{
  if (a->type[x] != b->type[y])
    return false;
  switch (b->type[y]) {
  case LJP_MEM_TYPE_STRING:
    return ljp_graph_own(a, x) == ljp_graph_own(b, y) &&
           ljp_str_same(ljp_graph_string(a, x), ljp_graph_string(b, y));
  case LJP_MEM_TYPE_FUNCTION:
    return a->detail[x] == b->detail[y] &&
           match_proto(a, x) == match_proto(b, y);
  case LJP_MEM_TYPE_PROTO:
    return ljp_graph_line(a, x) == ljp_graph_line(b, y) &&
           ljp_graph_own(a, x) == ljp_graph_own(b, y);
  case LJP_MEM_TYPE_CDATA:
    return a->detail[x] == b->detail[y] &&
           ljp_graph_own(a, x) == ljp_graph_own(b, y);
  }
  return true;
}

/* LuaJIT has these in one list, the youngest first. What is not here may have
** another place in it than its age: closed upvalues and what was finalized. */
static bool match_has_order(unsigned type)
{
  return type == LJP_MEM_TYPE_TABLE || type == LJP_MEM_TYPE_FUNCTION ||
         type == LJP_MEM_TYPE_PROTO || type == LJP_MEM_TYPE_THREAD;
}

enum ljp_status ljp_heap_match(const struct ljp_graph *before,
                               const struct ljp_graph *after, uint32_t **same)
{
  struct match_table table;
  uint32_t last = UINT32_MAX;
  bool new_seen = false;
  *same = calloc(after->count, sizeof **same);
  enum ljp_status status = *same ? match_index(&table, before) : LJP_ERR_MEM;
  if (status) {
    free(*same);
    *same = NULL;
    return status;
  }
  for (uint32_t i = after->count - 1; i > 0; i--) { /* The oldest first. */
    uint32_t was = match_find(&table, before, after->address[i]);
    bool order = match_has_order(after->type[i]);
    /* What survives keeps its place among the others. */
    if (was && !(order && (new_seen || was >= last)) &&
        match_is_same(before, was, after, i)) {
      (*same)[i] = was;
      last = order ? was : last;
    } else {
      new_seen |= order;
    }
  }
  free(table.slots);
  return LJP_OK;
}
