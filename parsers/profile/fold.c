/*
** The fold: from the native view of a profile to the Lua view. All other views
** are of whichever of the two the profile has, so they add up to the same.
**
** Frames of the program stay: Lua functions, builtins, and the C functions that
** Lua called, by lua_CFunction or FFI. Machine code (the VM, what a C function
** calls, the kernel) and traces have no frames of their own: what was counted
** there counts for the innermost frame of the program. There are three
** exceptions, since the program called none of them:
**
**   the collector      one frame, LJP_FRAME_COLLECTOR, above the frame that made
**                      it run; finalizers are above that frame
**   outside Lua        one frame, LJP_FRAME_OUTSIDE, for a stack that has no
**                      frame of the program
**   an unknown trace   keeps its frame if its functions are not known
**
** Frames of labels stay, below what is outside Lua, too.
**
** Where a stack is cut, what is below the program is the cut's. Frames that are
** no code ((no stack), [profiler] ...) stay.
**
** Files of Tarantool's memprof have one frame for each event, so there is nothing
** to fold: their views are equal.
**
** Invariants: each row is counted again at exactly one row. A profile in the Lua
** view does not change when it is folded. One thread a profile.
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/points.h"
#include "parsers/profile/tables.h"
#include "src/base/assert.h"

/* The builtin by which a Lua function calls a C function of the FFI. */
#define FFI_CALL "ffi.meta.__call"

/* What the fold does with a frame. */
enum fold_what {
  FOLD_KEEP,
  FOLD_FFI,       /* Keep; the C function that it calls replaces it. */
  FOLD_C,         /* Keep if Lua called it: if it has a caller. */
  FOLD_COLLECTOR, /* Where the collector begins. */
  FOLD_NATIVE,    /* Counts for the caller. */
  FOLD_CALLER     /* The same, and may have called a function of the FFI. */
};

struct fold {
  struct ljp_profile *p;
  struct ljp_tables old;
  uint8_t *what;  /* enum fold_what, by old frame. */
  uint8_t *is_vm; /* By module: it has the VM's assembly. */
  uint32_t *map;  /* From an old node to the new one, where it counts. */
};

static bool fold_starts(struct ljp_str s, const char *start)
{
  size_t len = strlen(start);
  return s.len >= len && memcmp(s.data, start, len) == 0;
}

static bool fold_equals(struct ljp_str s, const char *text)
{
  return s.len == strlen(text) && fold_starts(s, text);
}

/* Whether LuaJIT's function with this name does the collector's work. */
static bool fold_is_collector(struct ljp_str name)
{
  return fold_starts(name, "lj_gc_step") || fold_equals(name, "lj_gc_fullgc") ||
         fold_equals(name, "lj_gc_freeall") ||
         fold_starts(name, "lj_gc_finalize_");
}

static enum fold_what fold_classify(const struct fold *fold,
                                    const struct ljp_profile_frame *f)
{
  struct ljp_str name = ljp_profile_str(fold->p, f->name);
  switch (f->kind) {
  case LJP_FRAME_BUILTIN:
    return fold_equals(name, FFI_CALL) ? FOLD_FFI : FOLD_KEEP;
  case LJP_FRAME_CFUNC:
    return FOLD_C;
  case LJP_FRAME_HOST:
    if (fold_is_collector(name))
      return FOLD_COLLECTOR;
    return fold_equals(name, "lj_ccall_func") ||
                   (!f->name && fold->is_vm[f->module])
               ? FOLD_CALLER
               : FOLD_NATIVE;
  case LJP_FRAME_VM:
  case LJP_FRAME_TRACE:
    return FOLD_CALLER;
  case LJP_FRAME_KERNEL:
    return FOLD_NATIVE;
  default:
    return FOLD_KEEP;
  }
}

/* Whether the frame is a C function that the FFI calls, not a part of the FFI:
** none is inlined into the FFI's code. by: what calls it. (A host may have the VM
** linked into the module of its own functions.) */
static bool fold_is_foreign(const struct fold *fold, enum fold_what by,
                            const struct ljp_profile_frame *f)
{
  struct ljp_str name = ljp_profile_str(fold->p, f->name);
  if (f->kind != LJP_FRAME_HOST || f->flags & LJP_PROFILE_INLINED_C ||
      (by == FOLD_FFI && fold->is_vm[f->module]))
    return false;
  return f->name ? !fold_starts(name, "lj_") && !fold_starts(name, "ccall_")
                 : f->module && !fold->is_vm[f->module];
}

/* Adds a C function that the program called. Its places are one frame. */
static enum ljp_status fold_add_c(struct ljp_profile *p, uint32_t parent,
                                  const struct ljp_profile_frame *old,
                                  uint32_t *node)
{
  struct ljp_profile_frame f = {.kind = LJP_FRAME_CFUNC,
                                .name = old->name,
                                .file = old->file,
                                .module = old->module,
                                .flags = old->flags & LJP_PROFILE_UNKNOWN};
  enum ljp_status status;
  uint32_t frame;
  if (!f.name && old->kind == LJP_FRAME_CFUNC)
    f.offset = old->offset; /* Where the function begins. */
  if ((status = ljp_profile_intern_frame(p, &f, &frame)))
    return status;
  return ljp_profile_intern_node(p, parent, frame, node);
}

/* Adds a frame of a kind of the profile's own. */
static enum ljp_status fold_add_own(struct ljp_profile *p, uint32_t parent,
                                    uint8_t kind, uint32_t *node)
{
  struct ljp_profile_frame f = {.kind = kind};
  enum ljp_status status;
  uint32_t frame;
  if (p->frames[p->nodes[parent].frame].kind == kind) {
    *node = parent;
    return LJP_OK;
  }
  if ((status = ljp_profile_intern_frame(p, &f, &frame)))
    return status;
  return ljp_profile_intern_node(p, parent, frame, node);
}

/* The frame of the program at a node, or what replaces it; 0: there is none. */
static uint32_t fold_program(const struct ljp_profile *p, uint32_t node)
{
  return p->frames[p->nodes[node].frame].kind == LJP_FRAME_LABELS ? 0 : node;
}

/* Finds the new node at which a node of the old tree counts. */
static enum ljp_status fold_node(struct fold *fold, uint32_t i)
{
  struct ljp_profile *p = fold->p;
  const struct ljp_profile_node *old = &fold->old.nodes[i];
  const struct ljp_profile_frame *f = &fold->old.frames[old->frame];
  uint32_t called_by = fold->old.nodes[old->parent].frame;
  uint32_t parent = fold->map[old->parent], *node = &fold->map[i], frame;
  const struct ljp_profile_frame *at = &p->frames[p->nodes[parent].frame];
  enum ljp_status status;
  *node = parent;
  switch ((enum fold_what)fold->what[old->frame]) {
  case FOLD_KEEP:
  case FOLD_FFI:
    if ((status = ljp_profile_intern_frame(p, f, &frame)))
      return status;
    return ljp_profile_intern_node(p, parent, frame, node);
  case FOLD_C:
    return fold_program(p, parent) ? fold_add_c(p, parent, f, node) : LJP_OK;
  case FOLD_COLLECTOR:
    return fold_add_own(p, parent, LJP_FRAME_COLLECTOR, node);
  case FOLD_NATIVE:
    if (at->kind == LJP_FRAME_BUILTIN &&
        fold_classify(fold, at) == FOLD_FFI && /* Rare: no table is needed. */
        (fold->what[called_by] == FOLD_FFI ||
         fold->what[called_by] == FOLD_CALLER) &&
        fold_is_foreign(fold, fold->what[called_by], f)) {
      uint32_t caller = p->nodes[parent].parent;
      return fold_add_c(p, fold_program(p, caller) ? caller : parent, f, node);
    }
    break;
  case FOLD_CALLER:
    break;
  }
  return LJP_OK;
}

/* The frame of a trace in the stack, which has no frame of the program. NULL:
** there is none. */
static const struct ljp_profile_frame *fold_find_trace(const struct fold *fold,
                                                       uint32_t node)
{
  for (; node; node = fold->old.nodes[node].parent) {
    const struct ljp_profile_frame *f =
        &fold->old.frames[fold->old.nodes[node].frame];
    if (f->kind == LJP_FRAME_TRACE)
      return f;
  }
  return NULL;
}

/* Moves an old row to its new node. */
static enum ljp_status fold_row(struct fold *fold, struct ljp_profile_row *row)
{
  struct ljp_profile *p = fold->p;
  const uint32_t old = row->node;
  uint32_t *node = &row->node;
  const struct ljp_profile_context *c = &p->contexts[row->context];
  unsigned kind = fold->old.frames[fold->old.nodes[old].frame].kind;
  const struct ljp_profile_frame *trace;
  enum ljp_status status;
  uint32_t frame;
  *node = fold->map[old];
  if (c->state == LJP_VMSTATE_GC && c->kind != LJP_PRODUCER_MEMORY &&
      kind <= LJP_FRAME_KERNEL)
    return fold_add_own(p, *node, LJP_FRAME_COLLECTOR, node);
  if (fold_program(p, *node) || !old)
    return LJP_OK;
  if (!(trace = fold_find_trace(fold, old)))
    return fold_add_own(p, *node, LJP_FRAME_OUTSIDE, node);
  if ((status = ljp_profile_intern_frame(p, trace, &frame)))
    return status;
  return ljp_profile_intern_node(p, *node, frame, node);
}

/* Makes the new tables. row_map: as for ljp_profile_fold(). */
static enum ljp_status fold_tables(struct fold *fold, uint32_t *row_map)
{
  struct ljp_profile_frame root = {.kind = LJP_FRAME_ROOT};
  const struct ljp_tables *old = &fold->old;
  enum ljp_status status;
  uint32_t frame;
  for (uint32_t i = 0; i < old->frame_count; i++) {
    const struct ljp_profile_frame *f = &old->frames[i];
    if (f->kind == LJP_FRAME_VM)
      fold->is_vm[f->module] = f->module != 0;
    fold->p->folded |= f->kind == LJP_FRAME_HOST || f->kind == LJP_FRAME_VM;
  }
  for (uint32_t i = 0; i < old->frame_count; i++)
    fold->what[i] = (uint8_t)fold_classify(fold, &old->frames[i]);
  if ((status = ljp_profile_intern_frame(fold->p, &root, &frame)) ||
      (status = ljp_profile_intern_node(fold->p, 0, frame, &fold->map[0])))
    return status;
  for (uint32_t i = 1; i < old->node_count; i++)
    if ((status = fold_node(fold, i)))
      return status;
  for (uint32_t i = 0; i < old->row_count; i++)
    if ((status = fold_row(fold, &old->rows[i])))
      return status;
  return ljp_tables_move_rows(fold->p, old, row_map);
}

static enum ljp_status fold_profile(struct fold *fold, uint32_t *row_map)
{
  struct ljp_profile *p = fold->p;
  enum ljp_status status = fold_tables(fold, row_map);
  free(p->functions);
  p->functions = NULL;
  p->function_count = 0;
  if (status || (status = ljp_profile_number_functions(p)))
    return status;
  for (uint32_t i = 0; i < p->point_count; i++)
    p->points[i].row = row_map[p->points[i].row];
  ljp_profile_move_births(p, row_map);
  for (uint32_t i = 0; i < p->trace_event_count; i++)
    p->trace_events[i].stack = fold->map[p->trace_events[i].stack];
  ljp_profile_merge_points(p);
  return LJP_OK;
}

enum ljp_status ljp_profile_fold(struct ljp_profile *p, uint32_t *row_map)
{
  struct fold fold = {.p = p};
  uint32_t *own_map = NULL;
  enum ljp_status status = LJP_ERR_MEM;
  ljp_assert(!p->pass);
  p->options.lua_view = true;
  if (p->recorded_by && p->has_memory) {
    for (uint32_t i = 0; row_map && i < p->row_count; i++)
      row_map[i] = i;
    return LJP_OK;
  }
  fold.what = malloc((size_t)p->frame_count + 1);
  fold.is_vm = calloc((size_t)p->module_count + 1, 1);
  fold.map = ljp_pages_items(p->node_count, sizeof *fold.map);
  if (!row_map)
    row_map = own_map =
        ljp_pages_items((size_t)p->row_count + 1, sizeof *own_map);
  p->pass = calloc(1, sizeof *p->pass);
  if (fold.what && fold.is_vm && fold.map && row_map && p->pass) {
    ljp_tables_take(p, &fold.old);
    status = fold_profile(&fold, row_map);
    ljp_index_fini(&p->pass->frame_index);
    ljp_index_fini(&p->pass->node_index);
    ljp_index_fini(&p->pass->row_index);
    ljp_tables_free(&fold.old);
  }
  free(p->pass);
  p->pass = NULL;
  free(fold.what);
  free(fold.is_vm);
  free(fold.map);
  free(own_map);
  return status;
}
