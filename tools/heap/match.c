/*
** See match.h.
*/
#include "tools/heap/match.h"

#include <stdlib.h>

#include "parsers/heap/addresses.h"
#include "parsers/profile/births.h"

bool ljp_heap_same_vm(const struct ljp_graph *before,
                      const struct ljp_graph *after)
{
  /* The first object is the VM itself. */
  return before->pid == after->pid && before->head.vm == after->head.vm &&
         before->address[1] == after->address[1];
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

static enum ljp_status match_begin(const struct ljp_graph *before,
                                   const struct ljp_graph *after,
                                   struct ljp_heap_addresses *table,
                                   uint32_t **same)
{
  *same = calloc(after->count, sizeof **same);
  enum ljp_status status =
      *same ? ljp_heap_addresses_init(table, before->address, before->count)
            : LJP_ERR_MEM;
  if (status) {
    free(*same);
    *same = NULL;
  }
  return status;
}

enum ljp_status ljp_heap_match_births(const struct ljp_graph *before,
                                      const struct ljp_births *births_before,
                                      const struct ljp_graph *after,
                                      const struct ljp_births *births_after,
                                      uint32_t **same)
{
  struct ljp_heap_addresses table;
  enum ljp_status status = match_begin(before, after, &table, same);
  for (uint32_t i = 1; !status && i < after->count; i++) {
    const struct ljp_birth *b =
        ljp_births_find(births_after, after->address[i]);
    uint32_t was = ljp_heap_address(&table, after->address[i]);
    if (!(b && b->event > births_before->before) &&
        before->type[was] == after->type[i])
      (*same)[i] = was;
  }
  if (!status)
    ljp_heap_addresses_fini(&table);
  return status;
}

enum ljp_status ljp_heap_match(const struct ljp_graph *before,
                               const struct ljp_graph *after, uint32_t **same)
{
  struct ljp_heap_addresses table;
  uint32_t last = UINT32_MAX;
  bool new_seen = false;
  enum ljp_status status = match_begin(before, after, &table, same);
  if (status)
    return status;
  for (uint32_t i = after->count - 1; i > 0; i--) { /* The oldest first. */
    uint32_t was = ljp_heap_address(&table, after->address[i]);
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
  ljp_heap_addresses_fini(&table);
  return LJP_OK;
}
