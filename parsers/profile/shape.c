/*
** The shape that views see: symbols looked up, inlined C functions as nodes
** of their own, nodes that nothing was counted at gone, functions numbered.
** Totals are the sums over the rows.
**
** A C function that Lua called has two frames where host frames are recorded:
** the guest's, which says what was called (`table.sort`, an address), and above
** it the host's, which says where it is (lj_cf_table_sort+0x123). Views see one:
** of a builtin the guest's; of another C function the host's, as the guest's
** kind. Two frames are one call only if they stand next to each other and the
** symbols say so.
*/
#include "parsers/profile/work.h"

#include <string.h>

/* The address that is looked up for a frame; false: none. */
static bool lookup(const struct ljp_profile *p,
                   const struct ljp_profile_frame *f, uint32_t *module,
                   uint64_t *address)
{
  if ((f->kind != LJP_FRAME_HOST && f->kind != LJP_FRAME_VM &&
       f->kind != LJP_FRAME_CFUNC) ||
      !f->module)
    return false;
  *module = p->modules[f->module].symbols;
  *address = f->offset - ((f->flags & LJP_PROFILE_CALLER) && f->offset);
  return true;
}

static enum ljp_status want_symbols(struct ljp_profile *p)
{
  uint32_t module;
  uint64_t address;
  enum ljp_status status;
  for (uint32_t i = 0; i < p->frame_count; i++)
    if (lookup(p, &p->frames[i], &module, &address) &&
        (status = ljp_symbols_want(p->symbols, module, address)) &&
        status != LJP_ERR_LIMIT)
      return status;
  status = ljp_symbols_resolve(p->symbols);
  return status == LJP_ERR_IO ? LJP_OK : status; /* Then without names. */
}

static enum ljp_status text(struct ljp_profile *p, const char *s, uint32_t *id)
{
  return ljp_profile_string(
      p, (struct ljp_str){s, (uint32_t)strnlen(s, LJP_STRING_MAX_BYTES)}, id);
}

/* Of a frame of machine code; NULL: nothing is known. */
static const struct ljp_symbol *symbol_of(const struct ljp_profile *p,
                                          const struct ljp_profile_frame *f)
{
  const struct ljp_symbol *symbol = NULL;
  uint32_t module;
  uint64_t address;
  if (lookup(p, f, &module, &address))
    symbol = ljp_symbols_get(p->symbols, module, address);
  return symbol && symbol->count ? symbol : NULL;
}

/* What LuaJIT calls the code of its builtins: in C, in C where the assembly
** gives up, in assembly. */
static bool is_of_builtin(const char *symbol)
{
  return strncmp(symbol, "lj_cf_", 6) == 0 ||
         strncmp(symbol, "lj_ffh_", 7) == 0 ||
         strncmp(symbol, "lj_ff_", 6) == 0;
}

/* Whether code, right above the frame of a function that Lua called, is that
** call. (A function whose last act was a call of another is not there.) */
static bool is_same_call(const struct ljp_profile *p,
                         const struct ljp_profile_frame *called,
                         const struct ljp_profile_frame *code)
{
  const struct ljp_symbol *symbol, *entry;
  if ((code->kind != LJP_FRAME_HOST && code->kind != LJP_FRAME_VM) ||
      (called->kind != LJP_FRAME_BUILTIN && called->kind != LJP_FRAME_CFUNC) ||
      !(symbol = symbol_of(p, code)))
    return false;
  const char *name = symbol->frames[symbol->count - 1].function;
  if (called->kind == LJP_FRAME_BUILTIN)
    return name && is_of_builtin(name);
  if (called->module != code->module || called->offset > code->offset ||
      !(entry = symbol_of(p, called)))
    return false;
  const char *known = entry->frames[entry->count - 1].function;
  return name && known && strcmp(name, known) == 0;
}

/* The node for what an old frame shows as, above parent. called: of the kind
** of the guest's frame that it is one call with; 0: of none. */
static enum ljp_status expand(struct ljp_profile *p,
                              const struct ljp_profile_frame *old,
                              uint8_t called, uint32_t parent, uint32_t *node)
{
  const struct ljp_symbol *symbol = symbol_of(p, old);
  struct ljp_profile_frame f = *old;
  enum ljp_status status;
  uint32_t frame, i = symbol ? symbol->count : 0;
  if (!symbol) {
    if ((status = ljp_profile_frame(p, &f, &frame)))
      return status;
    return ljp_profile_node(p, parent, frame, node);
  }
  *node = parent;
  if (called == LJP_FRAME_BUILTIN)
    i--; /* The builtin's frame is there. */
  while (i-- > 0) {
    const struct ljp_symbol_frame *s = &symbol->frames[i];
    bool outermost = i + 1 == symbol->count;
    f.kind = outermost && called ? called : old->kind;
    f.flags = old->flags;
    /* Which of the builtins that share code is above, its frame tells not. */
    if (!outermost && !(called == LJP_FRAME_BUILTIN && i + 2 == symbol->count))
      f.flags |= LJP_PROFILE_INLINED_C;
    f.line = s->line;
    if ((status = text(p, s->function, &f.name)) ||
        (status = text(p, s->file, &f.file)) ||
        (status = ljp_profile_frame(p, &f, &frame)) ||
        (status = ljp_profile_node(p, *node, frame, node)))
      return status;
  }
  return LJP_OK;
}

/* Adds what a row's memory holds. */
static void add_memory(struct ljp_profile_memory *to,
                       const struct ljp_profile_memory *from)
{
  to->alloc_objects += from->alloc_objects;
  to->alloc_bytes += from->alloc_bytes;
  to->free_events += from->free_events;
  to->free_objects += from->free_objects;
  to->free_bytes += from->free_bytes;
  to->realloc_events += from->realloc_events;
  to->moved_objects_in += from->moved_objects_in;
  to->moved_objects_out += from->moved_objects_out;
  to->live_objects += from->live_objects;
  to->live_bytes += from->live_bytes;
  to->peak_objects += from->peak_objects;
  to->peak_bytes += from->peak_bytes;
  to->temporary_objects += from->temporary_objects;
  to->temporary_bytes += from->temporary_bytes;
  to->old_objects += from->old_objects;
  to->old_bytes += from->old_bytes;
  to->recent_objects += from->recent_objects;
  to->recent_bytes += from->recent_bytes;
  to->slices |= from->slices;
}

static void add_estimates(struct ljp_profile_estimates *to,
                          const struct ljp_profile_estimates *from)
{
#define LJP_X(name) ljp_estimate_sum(&to->name, &from->name);
  LJP_ESTIMATES_LIST(LJP_X)
#undef LJP_X
}

/* What becomes of a node. */
enum {
  USED = 1,    /* It, or one above it, has rows. */
  NEEDED = 2,  /* As a node: not only by those that are one call with it. */
  ONE_CALL = 4 /* It is one with the node below it. */
};

static uint8_t *used_nodes(const struct ljp_profile *p)
{
  uint8_t *used = calloc(p->node_count, 1);
  if (!used)
    return NULL;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if (row->count || row->weight || row->memory)
      used[row->node] = USED | NEEDED;
  }
  for (uint32_t i = 0; i < p->trace_event_count; i++)
    used[p->trace_events[i].stack] = USED | NEEDED;
  for (uint32_t i = p->node_count; i-- > 1;) {
    uint32_t parent = p->nodes[i].parent;
    if (!used[i])
      continue;
    if (is_same_call(p, &p->frames[p->nodes[parent].frame],
                     &p->frames[p->nodes[i].frame]))
      used[i] |= ONE_CALL;
    else
      used[parent] |= NEEDED;
    used[parent] |= USED;
  }
  return used;
}

/* The old tables; they are read while the new ones are made in p. */
struct old {
  struct ljp_profile_frame *frames;
  struct ljp_profile_node *nodes;
  struct ljp_profile_row *rows;
  struct ljp_profile_memory *memory;
  struct ljp_profile_estimates *estimates;
  uint32_t node_count, row_count;
};

static void set_aside(struct ljp_profile *p, struct old *old)
{
  struct ljp_profile_work *w = p->work;
  *old = (struct old){p->frames,    p->nodes,      p->rows,     p->memory,
                      p->estimates, p->node_count, p->row_count};
  p->frames = NULL;
  p->nodes = NULL;
  p->rows = NULL;
  p->memory = NULL;
  p->estimates = NULL;
  p->frame_count = p->node_count = p->row_count = p->memory_count = 0;
  w->frame_room = w->node_room = w->row_room = w->memory_room = 0;
  w->estimate_room = 0;
  ljp_index_fini(&w->frame_index);
  ljp_index_fini(&w->node_index);
  ljp_index_fini(&w->row_index);
  for (size_t i = 0; i < LJP_MAP_PAGES; i++) {
    free(w->map[i]);
    w->map[i] = NULL;
  }
  ljp_live_fini(&w->live);
}

static enum ljp_status make_nodes(struct ljp_profile *p, const struct old *old,
                                  const uint8_t *used, uint32_t *map)
{
  struct ljp_profile_frame root = {.kind = LJP_FRAME_ROOT};
  enum ljp_status status;
  uint32_t frame;
  if ((status = ljp_profile_frame(p, &root, &frame)) ||
      (status = ljp_profile_node(p, 0, frame, &map[0])))
    return status;
  for (uint32_t i = 1; i < old->node_count; i++) {
    const struct ljp_profile_node *node = &old->nodes[i];
    const struct ljp_profile_frame *f = &old->frames[node->frame];
    const struct ljp_profile_node *below = &old->nodes[node->parent];
    uint8_t called = used[i] & ONE_CALL ? old->frames[below->frame].kind : 0;
    uint32_t parent =
        map[called == LJP_FRAME_CFUNC ? below->parent : node->parent];
    /* The place of what is too many, by its number, in case there will be. */
    if (i > LJP_NODE_TOO_MANY &&
        (!used[i] || (f->kind == LJP_FRAME_CFUNC && !(used[i] & NEEDED))))
      continue;
    if ((status = expand(p, f, called, parent, &map[i])))
      return status;
  }
  return LJP_OK;
}

static enum ljp_status make_rows(struct ljp_profile *p, const struct old *old,
                                 const uint32_t *map, uint32_t *row_map)
{
  enum ljp_status status;
  uint32_t memory;
  if ((status = ljp_profile_no_memory(p)))
    return status;
  for (uint32_t i = 0; i < old->row_count; i++) {
    const struct ljp_profile_row *row = &old->rows[i];
    if (!row->count && !row->weight && !row->memory)
      continue;
    if ((status =
             ljp_profile_row(p, map[row->node], row->context, &row_map[i])))
      return status;
    p->rows[row_map[i]].count += row->count;
    p->rows[row_map[i]].weight += row->weight;
    if (!row->memory)
      continue;
    if ((status = ljp_profile_row_memory(p, row_map[i], &memory)))
      return status;
    add_memory(&p->memory[memory], &old->memory[row->memory]);
    if (!old->estimates)
      continue;
    if ((status = ljp_profile_estimates(p)))
      return status;
    add_estimates(&p->estimates[memory], &old->estimates[row->memory]);
  }
  return LJP_OK;
}

/* What makes frames one function, as a frame with only that. */
static struct ljp_profile_frame identity(const struct ljp_profile_frame *f)
{
  struct ljp_profile_frame id = {.kind = f->kind,
                                 .name = f->name,
                                 .file = f->file,
                                 .first_line = f->first_line,
                                 .module = f->module};
  switch (f->kind) {
  case LJP_FRAME_LUA_INLINED:
    id.kind = LJP_FRAME_LUA;
    /* Fall through. */
  case LJP_FRAME_LUA:
    if (f->flags & LJP_PROFILE_UNKNOWN)
      id.offset = f->offset;
    break;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    id.kind = LJP_FRAME_HOST;
    if (!f->name)
      id.offset = f->offset;
    break;
  default:
    id.offset = f->offset;
  }
  return id;
}

static enum ljp_status make_functions(struct ljp_profile *p)
{
  /* The frame table is done with its index: it serves for functions now. A
  ** function's identity is a frame that may itself be none of the profile. */
  struct ljp_profile_work *w = p->work;
  struct ljp_profile_frame *ids = NULL;
  uint32_t room = 0, count = 0;
  enum ljp_status status = LJP_OK;
  ljp_index_fini(&w->frame_index);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    struct ljp_profile_frame id = identity(&p->frames[i]);
    uint64_t h = ljp_hash_mix(w->strings.seed, id.offset);
    h = ljp_hash_mix(h, (uint64_t)id.name << 32 | id.file);
    h = ljp_hash_mix(h, (uint64_t)id.first_line << 32 | id.module);
    uint32_t hash = ljp_hash_finish(ljp_hash_mix(h, id.kind));
    if (!ljp_index_reserve(&w->frame_index) ||
        !ljp_array_reserve(&ids, count, &room, sizeof *ids) ||
        !ljp_array_reserve(&p->functions, count, &w->function_room,
                           sizeof *p->functions)) {
      status = LJP_ERR_MEM;
      break;
    }
    struct ljp_index_slot *slot = ljp_index_at(&w->frame_index, hash);
    for (; slot->item; slot = ljp_index_next(&w->frame_index, slot))
      if (slot->hash == hash &&
          ljp_profile_same_frame(&ids[slot->item - 1], &id))
        break;
    if (!slot->item) {
      ljp_index_put(&w->frame_index, slot, hash, count);
      p->functions[count].frame = i;
      ids[count++] = id;
    }
    p->frames[i].function = slot->item - 1;
  }
  p->function_count = count;
  free(ids);
  return status;
}

static void sum_up(struct ljp_profile *p)
{
  struct ljp_profile_totals *t = &p->totals;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    switch (p->contexts[row->context].kind) {
    case LJP_PRODUCER_CPU:
      t->samples += row->count;
      t->cpu_ns += row->weight;
      break;
    case LJP_PRODUCER_WALL:
      t->wall_samples += row->count;
      t->wall_ns += row->weight;
      break;
    }
    if (row->memory)
      add_memory(&t->memory, &p->memory[row->memory]);
    if (row->memory && p->estimates)
      add_estimates(&t->estimates, &p->estimates[row->memory]);
  }
}

enum ljp_status ljp_profile_shape(struct ljp_profile *p)
{
  enum ljp_status status = want_symbols(p);
  struct old old = {0};
  uint32_t *map = NULL, *row_map = NULL;
  uint8_t *used = NULL;
  if (status)
    return status;
  used = used_nodes(p);
  map = calloc(p->node_count, sizeof *map);
  row_map = calloc((size_t)p->row_count + 1, sizeof *row_map);
  if (!used || !map || !row_map) {
    status = LJP_ERR_MEM;
    goto out;
  }
  set_aside(p, &old);
  if ((status = make_nodes(p, &old, used, map)) ||
      (status = make_rows(p, &old, map, row_map)) ||
      (status = make_functions(p)))
    goto out;
  for (uint32_t i = 0; i < p->point_count; i++)
    p->points[i].row = row_map[p->points[i].row];
  for (uint32_t i = 0; i < p->trace_event_count; i++)
    p->trace_events[i].stack = map[p->trace_events[i].stack];
  ljp_profile_points_merge(p);
  sum_up(p);
out:
  free(used);
  free(map);
  free(row_map);
  free(old.frames);
  free(old.nodes);
  free(old.rows);
  free(old.memory);
  free(old.estimates);
  return status;
}
