/*
** The bound of a gain: what the work at one function may cost in all. Sets of
** lines, traces and functions are bitmaps, so a question is a few passes over
** nodes and rows.
*/
#include <string.h>

#include "tools/advise/advise.h"

struct bound {
  const struct advise_facts *a;
  uint32_t function; /* 0: all. */
  unsigned works;
  unsigned everywhere; /* Work that counts wherever it is done. */
  /* In the room of the facts: */
  uint8_t *lines;   /* Of the function: those with such work. */
  bool *trees;      /* Of traces, by root: those with such work of it. */
  uint8_t *callers; /* Functions into which the function is inlined. */
};

static uint32_t bound_line(const struct bound *b, uint32_t frame)
{
  return b->a->p->frames[frame].line & LJP_FRAME_LINE_MASK;
}

/* The root of the tree of traces that a node runs in; 0: none. */
static uint32_t bound_tree(const struct bound *b, uint32_t node)
{
  uint32_t trace = b->a->nodes[node].trace;
  uint32_t root = b->a->p->traces[trace].root;
  return root ? root : trace;
}

/* The frame of the innermost Lua function; 0: none. */
static uint32_t bound_frame(const struct bound *b, uint32_t node)
{
  uint32_t lua = b->a->nodes[node].lua;
  return lua ? b->a->p->nodes[lua].frame : 0;
}

static bool bound_is_here(const struct bound *b, uint32_t frame)
{
  return !b->function || b->a->p->frames[frame].function == b->function;
}

static void bound_mark(struct bound *b)
{
  const struct ljp_profile *p = b->a->p;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    uint32_t frame = bound_frame(b, row->node);
    if (!frame || !advise_is_time(b->a, row) || !bound_is_here(b, frame) ||
        !(b->works >> advise_row_work(b->a, row) & 1))
      continue;
    uint32_t line = bound_line(b, frame);
    b->lines[line / 8] |= (uint8_t)(1u << line % 8);
    b->trees[bound_tree(b, row->node)] = true;
  }
  b->trees[0] = false;
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->nodes[i].frame];
    uint32_t caller = bound_frame(b, p->nodes[i].parent);
    if (f->kind == LJP_FRAME_LUA_INLINED && f->function == b->function &&
        caller)
      b->callers[p->frames[caller].function] = 1;
  }
}

static struct advise_value bound_sum(const struct bound *b,
                                     struct advise_value *gc)
{
  const struct ljp_profile *p = b->a->p;
  struct advise_value sum = {0};
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    uint32_t frame = bound_frame(b, row->node); /* 0: outside Lua */
    if (!advise_is_time(b->a, row))
      continue;
    struct advise_value v = advise_row_value(b->a, row);
    uint32_t line = bound_line(b, frame), at = p->frames[frame].function;
    bool here = frame && bound_is_here(b, frame);
    bool near = b->trees[bound_tree(b, row->node)];
    enum advise_work work = advise_row_work(b->a, row);
    bool gc_work = work == WORK_GC;
    if (gc_work)
      near = near || here || b->callers[at];
    else
      near = near || (here && (b->lines[line / 8] >> line % 8 & 1));
    if (!near && !(b->everywhere >> work & 1))
      continue;
    advise_add(&sum, v);
    if (gc_work)
      advise_add(gc, v);
  }
  return sum;
}

struct advise_value advise_bound(const struct advise_facts *a,
                                 uint32_t function, unsigned works,
                                 unsigned everywhere, struct advise_value *gc)
{
  struct bound b = {
      .a = a, .function = function, .works = works, .everywhere = everywhere};
  const struct advise_room *r = &a->room;
  b.lines = memset(r->lines, 0, r->line_bytes);
  b.trees =
      memset(r->traces, 0, (a->p->trace_count + (size_t)1) * sizeof(bool));
  b.callers = memset(r->functions, 0, a->p->function_count + (size_t)1);
  *gc = (struct advise_value){0};
  bound_mark(&b);
  return bound_sum(&b, gc);
}
