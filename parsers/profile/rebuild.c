/*
** Rebuilding: from the tables of the pass to those that views see. Symbols are
** looked up; inlined C functions become nodes of their own; nodes at which
** nothing was counted are dropped; the totals are summed over the rows.
**
** A C function that Lua called has two frames where host frames are recorded:
** the guest's, which says what was called (`table.sort`, an address), and, as
** its child, the host's, which says where the code is
** (lj_cf_table_sort+0x123). Views see one frame: for a builtin the guest's,
** for another C function the host's with the guest's kind. Two frames are
** taken for one call only if they are neighbours and the symbols agree.
**
** Our own code (own_code.h) has no frames: its time counts at a frame
** LJP_FRAME_PROFILER, and what it allocates for the program, at the frame that
** called it.
**
** Labels are the outermost frames of the pass. Their nodes are taken off, and
** the contexts of the rows get the labels. One thread a profile.
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/intern.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/own_code.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/points.h"
#include "parsers/profile/tables.h"
#include "src/base/assert.h"

/* Our own code in the old tables, and labels. */
struct rebuild_own {
  uint8_t *kind;    /* enum ljp_own_code, by node */
  uint8_t *is_vm;   /* by module: it has the VM's assembly */
  uint32_t *labels; /* by node: of the events there; NULL: the file has none */
};

/* The address to look up for a frame; false: it has none. */
static bool rebuild_lookup_address(const struct ljp_profile *p,
                                   const struct ljp_profile_frame *f,
                                   uint32_t *module, uint64_t *address)
{
  if ((f->kind != LJP_FRAME_HOST && f->kind != LJP_FRAME_VM &&
       f->kind != LJP_FRAME_CFUNC) ||
      !f->module)
    return false;
  *module = p->modules[f->module].symbols;
  *address = f->offset - ((f->flags & LJP_PROFILE_CALLER) && f->offset);
  return true;
}

static enum ljp_status rebuild_resolve_symbols(struct ljp_profile *p)
{
  uint32_t module;
  uint64_t address;
  enum ljp_status status;
  for (uint32_t i = 0; i < p->frame_count; i++)
    if (rebuild_lookup_address(p, &p->frames[i], &module, &address) &&
        (status = ljp_symbols_want(p->symbols, module, address)) &&
        status != LJP_ERR_LIMIT)
      return status;
  status = ljp_symbols_resolve(p->symbols);
  return status == LJP_ERR_IO ? LJP_OK : status; /* No names, no error. */
}

static enum ljp_status rebuild_intern_text(struct ljp_profile *p, const char *s,
                                           uint32_t *id)
{
  return ljp_profile_intern_string(
      p, (struct ljp_str){s, (uint32_t)strnlen(s, LJP_STRING_MAX_BYTES)}, id);
}

static bool rebuild_same_name(const char *a, const char *b)
{
  bool part;
  size_t len = ljp_symbol_length(a, &part);
  return ljp_symbol_length(b, &part) == len && memcmp(a, b, len) == 0;
}

/* The symbol of a frame of machine code; NULL: none is known. */
static const struct ljp_symbol *
rebuild_symbol(const struct ljp_profile *p, const struct ljp_profile_frame *f)
{
  const struct ljp_symbol *symbol = NULL;
  uint32_t module;
  uint64_t address;
  if (rebuild_lookup_address(p, f, &module, &address))
    symbol = ljp_symbols_get(p->symbols, module, address);
  return symbol && symbol->count ? symbol : NULL;
}

/* Whether a symbol is LuaJIT's code of a builtin: in C, the C fallback of an
** assembly builtin, or in assembly. */
static bool rebuild_is_builtin_code(const char *symbol)
{
  return strncmp(symbol, "lj_cf_", 6) == 0 ||
         strncmp(symbol, "lj_ffh_", 7) == 0 ||
         strncmp(symbol, "lj_ff_", 6) == 0;
}

/* Whether a frame of machine code is the same call as its parent, the frame of
** a function that Lua called. (It is not if the function has made a tail call:
** then its own code is not on the stack.) */
static bool rebuild_is_same_call(const struct ljp_profile *p,
                                 const struct ljp_profile_frame *called,
                                 const struct ljp_profile_frame *code)
{
  const struct ljp_symbol *symbol, *entry;
  if ((code->kind != LJP_FRAME_HOST && code->kind != LJP_FRAME_VM) ||
      (called->kind != LJP_FRAME_BUILTIN && called->kind != LJP_FRAME_CFUNC) ||
      !(symbol = rebuild_symbol(p, code)))
    return false;
  const char *name = symbol->frames[symbol->count - 1].function;
  if (called->kind == LJP_FRAME_BUILTIN)
    return name && rebuild_is_builtin_code(name);
  if (called->module != code->module || called->offset > code->offset ||
      !(entry = rebuild_symbol(p, called)))
    return false;
  const char *known = entry->frames[entry->count - 1].function;
  return name && known && rebuild_same_name(name, known);
}

/* Gives a frame the name of a function. *inside: it is a part of the function of
** its parent's frame, and is no call of its own. */
static enum ljp_status rebuild_name_frame(struct ljp_profile *p,
                                          const char *function, uint32_t parent,
                                          struct ljp_profile_frame *f,
                                          bool *inside)
{
  struct ljp_str name = {function, 0};
  name.len = (uint32_t)ljp_symbol_length(function, inside);
  enum ljp_status status = ljp_profile_intern_string(p, name, &f->name);
  const struct ljp_profile_frame *up = &p->frames[p->nodes[parent].frame];
  *inside = *inside && !status &&
            (up->kind == LJP_FRAME_BUILTIN
                 ? rebuild_is_builtin_code(function)
                 : up->name == f->name && up->module == f->module);
  return status;
}

/* What a function's code is; up: the node of its caller. */
static uint8_t rebuild_own_function(const struct ljp_profile *p,
                                    const struct rebuild_own *own, uint8_t by,
                                    uint32_t up,
                                    const struct ljp_profile_frame *f)
{
  const struct ljp_profile_frame *caller = &p->frames[p->nodes[up].frame];
  const bool near = caller->module == f->module;
  return (uint8_t)ljp_own_function(by, own->is_vm[f->module],
                                   ljp_profile_str(p, near ? caller->name : 0),
                                   ljp_profile_str(p, f->name));
}

/* Adds an old frame to the new tree as a child of parent, with a node for each
** function inlined there. called: the kind of the guest's frame that is the
** same call; 0: there is none. *kind: the parent's enum ljp_own_code, then that
** of the frame. Our own code gets no node. */
static enum ljp_status rebuild_add_frame(struct ljp_profile *p,
                                         const struct rebuild_own *own,
                                         const struct ljp_profile_frame *old,
                                         uint8_t called, uint32_t parent,
                                         uint32_t *node, uint8_t *kind)
{
  const struct ljp_symbol *symbol = rebuild_symbol(p, old);
  struct ljp_profile_frame f = *old;
  enum ljp_status status;
  uint32_t frame, i = symbol ? symbol->count : 0;
  if (!symbol) {
    *kind = (uint8_t)ljp_own_frame(*kind, old->kind);
    *node = parent;
    if (*kind)
      return LJP_OK;
    if ((status = ljp_profile_intern_frame(p, &f, &frame)))
      return status;
    return ljp_profile_intern_node(p, parent, frame, node);
  }
  const struct ljp_symbol_frame *s = symbol->frames;
  bool outermost = true, inside;
  *node = parent;
  if (called == LJP_FRAME_BUILTIN) /* The builtin's own frame stands for it. */
    while (i-- > 1 && rebuild_same_name(s[i].function, s[i - 1].function))
      ;
  while (i-- > 0) {
    if (i && rebuild_same_name(s[i].function, s[i - 1].function))
      continue; /* It was split, and the part put back: that is no call. */
    f.kind = outermost && called == LJP_FRAME_CFUNC ? called : old->kind;
    f.flags = old->flags | (outermost ? 0 : LJP_PROFILE_INLINED_C);
    f.line = s[i].line;
    if ((status = rebuild_name_frame(p, s[i].function, *node, &f, &inside)))
      return status;
    if (inside)
      continue;
    if (!outermost || !called)
      *kind = rebuild_own_function(p, own, *kind, *node, &f);
    outermost = false;
    if (*kind)
      continue;
    if ((status = rebuild_intern_text(p, s[i].file, &f.file)) ||
        (status = ljp_profile_intern_frame(p, &f, &frame)) ||
        (status = ljp_profile_intern_node(p, *node, frame, node)))
      return status;
  }
  return LJP_OK;
}

/* What is known about a node of the pass. */
enum {
  USED = 1,     /* Something was counted at it or at a descendant. */
  NEEDED = 2,   /* It must stay a node: not only SAME_CALL children use it. */
  SAME_CALL = 4 /* It is the same call as its parent. */
};

/* USED and so on, by node; NULL: no memory. symbols: a frame has one. */
static uint8_t *rebuild_find_used(const struct ljp_profile *p, bool symbols)
{
  uint8_t *used = ljp_pages_items(p->node_count, 1);
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
    if (symbols && rebuild_is_same_call(p, &p->frames[p->nodes[parent].frame],
                                        &p->frames[p->nodes[i].frame]))
      used[i] |= SAME_CALL;
    else
      used[parent] |= NEEDED;
    used[parent] |= USED;
  }
  return used;
}

/* Frees what only the pass used. */
static void rebuild_free_indexes(struct ljp_profile_pass *pass)
{
  ljp_index_fini(&pass->frame_index);
  ljp_index_fini(&pass->node_index);
  ljp_index_fini(&pass->row_index);
  ljp_stack_map_clear(&pass->stacks);
  ljp_live_fini(&pass->live);
}

/* map: from a node of the pass to the new one; that of our own code, to the one
** of its caller; that of labels, to the root. */
static enum ljp_status rebuild_nodes(struct ljp_profile *p,
                                     const struct ljp_tables *old,
                                     const uint8_t *used, uint32_t *map,
                                     const struct rebuild_own *own)
{
  struct ljp_profile_frame root = {.kind = LJP_FRAME_ROOT};
  enum ljp_status status;
  uint32_t frame;
  if ((status = ljp_profile_intern_frame(p, &root, &frame)) ||
      (status = ljp_profile_intern_node(p, 0, frame, &map[0])))
    return status;
  for (uint32_t i = 1; i < old->node_count; i++) {
    const struct ljp_profile_node *node = &old->nodes[i];
    ljp_assert(node->parent < i);
    const struct ljp_profile_frame *f = &old->frames[node->frame];
    const struct ljp_profile_node *parent_node = &old->nodes[node->parent];
    uint8_t called =
        used[i] & SAME_CALL ? old->frames[parent_node->frame].kind : 0;
    uint32_t parent =
        map[called == LJP_FRAME_CFUNC ? parent_node->parent : node->parent];
    if (own->labels)
      own->labels[i] = ljp_labels_at(old, own->labels, i);
    if (f->kind == LJP_FRAME_LABELS)
      continue;
    /* LJP_NODE_TOO_MANY keeps its number: it may be needed while nodes are
    ** added. */
    if (i > LJP_NODE_TOO_MANY &&
        (!used[i] || (f->kind == LJP_FRAME_CFUNC && !(used[i] & NEEDED))))
      continue;
    own->kind[i] = own->kind[called == LJP_FRAME_CFUNC ? parent_node->parent
                                                       : node->parent];
    if ((status = rebuild_add_frame(p, own, f, called, parent, &map[i],
                                    &own->kind[i])))
      return status;
    ljp_assert(i != LJP_NODE_TOO_MANY || map[i] == i);
  }
  return LJP_OK;
}

/* -- Without symbols --------------------------------------------------------
** If no frame has a symbol, and there are no labels, different nodes stay
** different. Then the tables are only packed, where they are. */

static bool rebuild_has_symbols(const struct ljp_profile *p)
{
  for (uint32_t i = 0; i < p->frame_count; i++)
    if (rebuild_symbol(p, &p->frames[i]))
      return true;
  return false;
}

/* Drops the nodes that are not used, and numbers frames by their first use.
** map: as for rebuild_nodes(). */
static enum ljp_status rebuild_pack_nodes(struct ljp_profile *p,
                                          const uint8_t *used, uint32_t *map)
{
  struct ljp_profile_frame *old = p->frames;
  struct ljp_profile_frame *frames = malloc(p->frame_count * sizeof *frames);
  uint32_t *frame_map = calloc(p->frame_count, sizeof *frame_map); /* + 1 */
  uint32_t frame_count = 0, node_count = 0;
  uint32_t same = 0; /* From this node on none was dropped. */
  if (!frames || !frame_map) {
    free(frames);
    free(frame_map);
    return LJP_ERR_MEM;
  }
  for (uint32_t i = 0; i < p->node_count; i++) {
    struct ljp_profile_node node = p->nodes[i];
    if (i > LJP_NODE_TOO_MANY && !used[i]) {
      same = i + 1;
      continue;
    }
    if (!frame_map[node.frame]) {
      frames[frame_count] = old[node.frame];
      frame_map[node.frame] = ++frame_count;
    }
    map[i] = node_count;
    node.parent =
        node.parent >= same ? node.parent - (i - node_count) : map[node.parent];
    node.frame = frame_map[node.frame] - 1;
    p->nodes[node_count++] = node;
  }
  free(frame_map);
  free(old);
  p->frames = frames;
  p->frame_count = frame_count;
  p->node_count = node_count;
  return LJP_OK;
}

/* Drops the rows at which nothing was counted. */
static void rebuild_pack_rows(struct ljp_profile *p, const uint32_t *map,
                              uint32_t *row_map)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    struct ljp_profile_row row = p->rows[i];
    if (!row.count && !row.weight && !row.memory)
      continue;
    row.node = map[row.node];
    row_map[i] = count;
    if (row.memory)
      p->memory[row.memory].row = count;
    p->rows[count++] = row;
  }
  p->row_count = count;
}

static void rebuild_sum_totals(struct ljp_profile *p)
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
      ljp_tables_add_memory(&t->memory, &p->memory[row->memory]);
    if (row->memory && p->estimates)
      ljp_tables_add_estimates(&t->estimates, &p->estimates[row->memory]);
  }
}

/* Gives an old row its new node. */
static enum ljp_status rebuild_row(struct ljp_profile *p,
                                   const struct ljp_tables *old,
                                   struct ljp_profile_row *row,
                                   const uint32_t *map,
                                   const struct rebuild_own *own)
{
  struct ljp_profile_frame f = {.kind = LJP_FRAME_PROFILER};
  const bool ours = own->kind[row->node] &&
                    p->contexts[row->context].kind != LJP_PRODUCER_MEMORY;
  const uint32_t labels = own->labels ? own->labels[row->node] : 0;
  enum ljp_status status;
  uint32_t frame;
  row->node = map[row->node];
  if (labels && (status = ljp_labels_move_row(p, old, row, labels, &row->node)))
    return status;
  if (!ours)
    return LJP_OK;
  if ((status = ljp_profile_intern_frame(p, &f, &frame)))
    return status;
  return ljp_profile_intern_node(p, row->node, frame, &row->node);
}

/* Makes the new tables. map, row_map: zero. */
static enum ljp_status rebuild_tables(struct ljp_profile *p,
                                      const uint8_t *used, uint32_t *map,
                                      uint32_t *row_map)
{
  struct ljp_tables old;
  enum ljp_status status = LJP_ERR_MEM;
  struct rebuild_own own = {calloc(p->node_count, 1),
                            calloc((size_t)p->module_count + 1, 1), NULL};
  if (p->has_labels)
    own.labels = ljp_pages_items(p->node_count, sizeof *own.labels);
  ljp_tables_take(p, &old);
  if (own.kind && own.is_vm && (own.labels || !p->has_labels)) {
    for (uint32_t i = 0; i < old.frame_count; i++)
      if (old.frames[i].kind == LJP_FRAME_VM)
        own.is_vm[old.frames[i].module] = old.frames[i].module != 0;
    status = rebuild_nodes(p, &old, used, map, &own);
    for (uint32_t i = 0; i < old.row_count && !status; i++)
      status = rebuild_row(p, &old, &old.rows[i], map, &own);
    if (!status)
      status = ljp_tables_move_rows(p, &old, row_map);
  }
  free(own.kind);
  free(own.is_vm);
  free(own.labels);
  ljp_tables_free(&old);
  return status;
}

enum ljp_status ljp_profile_rebuild(struct ljp_profile *p)
{
  enum ljp_status status = rebuild_resolve_symbols(p);
  uint32_t *map = NULL, *row_map = NULL;
  uint8_t *used = NULL;
  if (status)
    return status;
  const bool symbols = rebuild_has_symbols(p);
  const bool tables = symbols || p->has_labels;
  used = rebuild_find_used(p, symbols);
  map = ljp_pages_items(p->node_count, sizeof *map);
  row_map = ljp_pages_items((size_t)p->row_count + 1, sizeof *row_map);
  if (!used || !map || !row_map) {
    status = LJP_ERR_MEM;
    goto out;
  }
  rebuild_free_indexes(p->pass);
  if (tables) {
    status = rebuild_tables(p, used, map, row_map);
  } else if (!(status = rebuild_pack_nodes(p, used, map))) {
    rebuild_pack_rows(p, map, row_map);
  }
  if (status || (status = ljp_profile_number_functions(p)))
    goto out;
  for (uint32_t i = 0; i < p->point_count; i++)
    p->points[i].row = row_map[p->points[i].row];
  ljp_profile_move_births(p, row_map);
  for (uint32_t i = 0; i < p->trace_event_count; i++)
    p->trace_events[i].stack = map[p->trace_events[i].stack];
  ljp_profile_merge_points(p);
  rebuild_sum_totals(p);
out:
  free(used);
  free(map);
  free(row_map);
  return status;
}
