/*
** Callers: which Lua function a builtin, a C function or the collector works for
** most. Their rows say it, since that function is what can be changed.
*/
#include <stdlib.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/base/pages.h"
#include "tools/report/groups.h"

/* What a group counts for one Lua function. */
struct pair {
  uint32_t group, function;
  uint64_t weight;
};

struct pairs {
  struct ljp_index index;
  struct pair *list;
  uint32_t count, room;
};

static bool callers_add(struct pairs *pairs, uint32_t group, uint32_t function,
                        uint64_t weight)
{
  if (!ljp_index_reserve(&pairs->index))
    return false;
  uint32_t hash =
      ljp_hash_finish(ljp_hash_mix((uint64_t)group << 32 | function, 2));
  struct ljp_index_slot *slot = ljp_index_at(&pairs->index, hash);
  for (; slot->item && slot->item <= pairs->count;
       slot = ljp_index_next(&pairs->index, slot)) {
    struct pair *pair = &pairs->list[slot->item - 1];
    if (slot->hash == hash && pair->group == group &&
        pair->function == function) {
      pair->weight += weight;
      return true;
    }
  }
  if (!ljp_array_reserve(&pairs->list, pairs->count, &pairs->room,
                         sizeof *pairs->list))
    return false;
  ljp_index_put(&pairs->index, slot, hash, pairs->count);
  pairs->list[pairs->count++] = (struct pair){group, function, weight};
  return true;
}

static bool callers_wanted(unsigned kind)
{
  return kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_CFUNC ||
         kind == LJP_FRAME_COLLECTOR;
}

/* Finds the pairs. lua: by node, room for the function of the innermost Lua
** frame + 1. */
static bool callers_find(const struct ljp_report *r,
                         const struct ljp_groups *groups, uint32_t *lua,
                         struct pairs *pairs)
{
  const struct ljp_profile *p = r->p;
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->nodes[i].frame];
    const struct ljp_value *self = ljp_select_node(&r->select, i);
    lua[i] =
        ljp_group_is_lua(f->kind) ? f->function + 1 : lua[p->nodes[i].parent];
    if (lua[i] && self->weight && callers_wanted(f->kind) &&
        !callers_add(pairs, groups->of_node[i], lua[i] - 1, self->weight))
      return false;
  }
  return true;
}

struct ljp_caller *ljp_report_callers(const struct ljp_report *r,
                                      const struct ljp_groups *groups)
{
  struct ljp_caller *callers =
      calloc((size_t)groups->count + 1, sizeof *callers);
  uint32_t *lua = ljp_pages_items(r->p->node_count, sizeof *lua);
  struct pairs pairs = {0};
  bool ok = callers && lua && callers_find(r, groups, lua, &pairs);
  for (uint32_t i = 0; ok && i < pairs.count; i++) {
    const struct pair *pair = &pairs.list[i];
    if (pair->weight > callers[pair->group].weight)
      callers[pair->group] = (struct ljp_caller){pair->function, pair->weight};
  }
  free(lua);
  free(pairs.list);
  ljp_index_fini(&pairs.index);
  if (!ok) {
    free(callers);
    return NULL;
  }
  return callers;
}
