/*
** See graph_ctypes.h.
*/
#include "parsers/heap/graph_ctypes.h"

#include "parsers/base/array.h"

/* LJP_OK with *type NULL: the number cannot be one. */
static enum ljp_status ctypes_at(struct ljp_graph *g, uint64_t number,
                                 struct ljp_graph_ctype **type)
{
  *type = NULL;
  if (number >= LJP_GRAPH_MAX_CTYPES)
    return LJP_OK;
  while (g->ctype_count <= number) {
    if (!ljp_array_reserve(&g->ctypes, g->ctype_count, &g->ctype_room,
                           sizeof *g->ctypes))
      return LJP_ERR_MEM;
    g->ctypes[g->ctype_count++] = (struct ljp_graph_ctype){.kind = 0};
  }
  *type = g->ctypes ? &g->ctypes[number] : NULL;
  return LJP_OK;
}

enum ljp_status ljp_graph_ctypes_take(struct ljp_graph *g,
                                      const struct ljp_rec_heap_type *t)
{
  struct ljp_graph_ctype *type;
  if (t->snapshot != g->head.snapshot)
    return LJP_OK;
  enum ljp_status status = ctypes_at(g, t->number, &type);
  if (type)
    *type = (struct ljp_graph_ctype){
        .bytes = t->bytes,
        .of = t->of < LJP_GRAPH_MAX_CTYPES ? (uint32_t)t->of : 0,
        .kind = t->kind <= UINT8_MAX ? (uint8_t)t->kind : 0};
  return status;
}

enum ljp_status ljp_graph_ctypes_name(struct ljp_graph *g)
{
  uint32_t e = g->first[g->ctypes_at], end = g->first[g->ctypes_at + 1];
  enum ljp_status status = LJP_OK;
  struct ljp_graph_ctype *type;
  for (; g->ctypes_at && e < end && !status; e++) {
    if (ljp_graph_how(g, e) != LJP_HEAP_HOW_TYPE_NAME)
      continue;
    status = ctypes_at(g, g->name[e], &type);
    if (type)
      type->name = g->target[e];
  }
  for (uint32_t i = 0; g->ctypes && i < g->ctype_count; i++) {
    const struct ljp_graph_ctype *alias = &g->ctypes[i];
    if (alias->kind != LJP_HEAP_CTYPE_TYPEDEF || alias->of >= g->ctype_count)
      continue;
    type = &g->ctypes[alias->of];
    if (type->name || type->kind < LJP_HEAP_CTYPE_STRUCT ||
        type->kind > LJP_HEAP_CTYPE_ENUM)
      continue;
    type->name = alias->name;
    type->defined = true;
  }
  return status;
}
