/*
** Facts: counts each sample of the profile once, at the line of its innermost
** Lua function, with the builtin or C function that the line called, and with
** the kind of work that the sample caught.
*/
#include <stdlib.h>

#include "parsers/base/array.h"
#include "tools/advise/advise.h"

static bool facts_make_nodes(struct advise_facts *a)
{
  const struct ljp_profile *p = a->p;
  a->frame_marks = calloc((size_t)p->frame_count + 1, sizeof *a->frame_marks);
  a->nodes = calloc((size_t)p->node_count + 1, sizeof *a->nodes);
  if (!a->frame_marks || !a->nodes)
    return false;
  for (uint32_t i = 0; i < p->frame_count; i++)
    a->frame_marks[i] = ljp_advise_marks(p, &p->frames[i]);
  for (uint32_t i = 1; i < p->node_count; i++) { /* Parents come first. */
    const struct ljp_profile_frame *f = &p->frames[p->nodes[i].frame];
    struct advise_node *n = &a->nodes[i];
    *n = a->nodes[p->nodes[i].parent];
    if (f->kind == LJP_FRAME_LUA || f->kind == LJP_FRAME_LUA_INLINED) {
      n->lua = i;
      n->callee = 0;
      n->marks = 0;
      n->compiled = f->kind == LJP_FRAME_LUA_INLINED;
      n->trace = n->compiled ? n->trace : 0;
    } else if (f->kind == LJP_FRAME_TRACE) {
      n->compiled = true;
      n->trace = f->trace;
      n->callee = 0;
      n->marks = 0;
    } else if (f->kind == LJP_FRAME_BUILTIN || f->kind == LJP_FRAME_CFUNC) {
      n->callee = n->callee ? n->callee : i;
    }
    n->marks |= a->frame_marks[p->nodes[i].frame];
  }
  return true;
}

static bool facts_make_room(struct advise_facts *a)
{
  const struct ljp_profile *p = a->p;
  struct advise_room *r = &a->room;
  uint32_t sums =
      p->function_count > p->frame_count ? p->function_count : p->frame_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < p->frame_count; i++) {
    uint32_t line = p->frames[i].line & LJP_FRAME_LINE_MASK;
    last = line > last ? line : last;
  }
  r->line_bytes = last / 8 + 1;
  r->nodes = malloc(((size_t)p->node_count + 1) * sizeof *r->nodes);
  r->more_nodes = malloc(((size_t)p->node_count + 1) * sizeof *r->more_nodes);
  r->functions = malloc(((size_t)p->function_count + 1) * sizeof *r->functions);
  r->traces = malloc(((size_t)p->trace_count + 1) * sizeof *r->traces);
  r->sums = malloc(((size_t)sums + 1) * sizeof *r->sums);
  r->lines = malloc(r->line_bytes);
  return r->nodes && r->more_nodes && r->functions && r->traces && r->sums &&
         r->lines;
}

bool advise_is_time(const struct advise_facts *a,
                    const struct ljp_profile_row *row)
{
  unsigned kind = a->p->contexts[row->context].kind;
  return kind == (a->wall ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU) &&
         a->p->frames[a->p->nodes[row->node].frame].kind != LJP_FRAME_PROFILER;
}

struct advise_value advise_row_value(const struct advise_facts *a,
                                     const struct ljp_profile_row *row)
{
  uint64_t interval = a->p->interval_ns[LJP_PRODUCER_WALL];
  struct advise_value v = {row->count, row->weight, row->count};
  if (a->p->contexts[row->context].state == LJP_VMSTATE_WAITING && interval &&
      row->weight / interval > v.looks)
    v.looks = row->weight / interval;
  return v;
}

enum advise_work advise_row_work(const struct advise_facts *a,
                                 const struct ljp_profile_row *row)
{
  const struct advise_node *n = &a->nodes[row->node];
  unsigned state = a->p->contexts[row->context].state, marks = n->marks;
  if (state == LJP_VMSTATE_GC || (marks & MARK_GC))
    return WORK_GC;
  if (state == LJP_VMSTATE_RECORD || state == LJP_VMSTATE_OPT ||
      state == LJP_VMSTATE_ASM)
    return WORK_COMPILER;
  if (state == LJP_VMSTATE_WAITING)
    return marks & MARK_LOCK ? WORK_LOCK : WORK_WAIT;
  if (marks & MARK_KERNEL)
    return WORK_KERNEL;
  if (n->lua && (marks & MARK_THROW))
    return WORK_THROW;
  if (state == LJP_VMSTATE_EXIT || (marks & MARK_EXIT))
    return WORK_EXIT;
  if (!n->lua)
    return WORK_OTHER;
  if (marks & MARK_CALLBACK)
    return WORK_CALLBACK;
  if (marks & MARK_GROW)
    return WORK_GROW;
  if (marks & MARK_LENGTH)
    return WORK_LENGTH;
  if (marks & MARK_NEXT)
    return WORK_NEXT;
  if (n->callee)
    return WORK_CALLED;
  if (marks & MARK_CLOSURE)
    return WORK_CLOSURE;
  if (marks & MARK_TABLE)
    return WORK_TABLE;
  if (marks & MARK_STRING)
    return WORK_STRING;
  return n->compiled ? WORK_COMPILED : WORK_INTERPRETED;
}

/* Finds or makes a cell. NULL: out of memory. */
static struct advise_cell *facts_cell(struct advise_facts *a,
                                      const struct advise_cell *key)
{
  uint32_t hash = ljp_hash_finish(
      ljp_hash_mix(ljp_hash_mix((uint64_t)key->frame << 32 | key->callee, 0),
                   (uint64_t)key->work << 1 | key->copies));
  if (!ljp_index_reserve(&a->cell_index))
    return NULL;
  struct ljp_index_slot *slot = ljp_index_at(&a->cell_index, hash);
  for (; slot->item; slot = ljp_index_next(&a->cell_index, slot)) {
    struct advise_cell *c = &a->cells[slot->item - 1];
    if (slot->hash == hash && c->frame == key->frame &&
        c->callee == key->callee && c->work == key->work &&
        c->copies == key->copies)
      return c;
  }
  if (!ljp_array_reserve(&a->cells, a->cell_count, &a->cell_room,
                         sizeof *a->cells))
    return NULL;
  ljp_index_put(&a->cell_index, slot, hash, a->cell_count);
  a->cells[a->cell_count] = *key;
  return &a->cells[a->cell_count++];
}

static bool facts_count(struct advise_facts *a)
{
  const struct ljp_profile *p = a->p;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if (!advise_is_time(a, row))
      continue;
    const struct advise_node *n = &a->nodes[row->node];
    struct advise_value v = advise_row_value(a, row);
    struct advise_cell key = {.frame = n->lua ? p->nodes[n->lua].frame : 0,
                              .callee =
                                  n->callee ? p->nodes[n->callee].frame : 0,
                              .work = (uint8_t)advise_row_work(a, row),
                              .copies = (n->marks & MARK_COPY) != 0};
    struct advise_cell *c = facts_cell(a, &key);
    if (!c)
      return false;
    advise_add(&c->value, v);
    advise_add(&a->works[key.work], v);
    advise_add(&a->all, v);
    if (key.work == WORK_GC && n->lua && (n->marks & MARK_FREE))
      advise_add(&a->freed, v);
    if (key.work == WORK_GC && n->lua && (n->marks & MARK_LIVE))
      advise_add(&a->marked, v);
  }
  return true;
}

bool ljp_advise_collect(const struct ljp_profile *p, struct advise_facts *a)
{
  *a = (struct advise_facts){.p = p, .wall = !p->totals.samples};
  if (facts_make_nodes(a) && facts_make_room(a) && facts_count(a) &&
      ljp_advise_collect_memory(a) && ljp_advise_collect_traces(a))
    return true;
  ljp_advise_facts_fini(a);
  return false;
}

void ljp_advise_facts_fini(struct advise_facts *a)
{
  free(a->frame_marks);
  free(a->nodes);
  free(a->cells);
  free(a->sites);
  free(a->aborts);
  free(a->room.nodes);
  free(a->room.more_nodes);
  free(a->room.functions);
  free(a->room.traces);
  free(a->room.sums);
  free(a->room.lines);
  ljp_index_fini(&a->cell_index);
  ljp_index_fini(&a->site_index);
  *a = (struct advise_facts){0};
}
