/*
** Divides the collector's CPU time among allocation sites. Each sample of the
** collector falls into a phase of its VM: what marks is paid in proportion to
** the bytes that outlived a collection, what sweeps in proportion to the blocks
** that a sweep met. Blocks from before the session pay for the rest of the heap.
**
** Samples and phases come from different threads, in blocks of their own. So
** both are kept, and put together when the files have been read.
*/
#include "parsers/profile/gc_cost.h"

#include <stdlib.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"

/* A sample of CPU time in the collector. Times are since the origin. */
struct ljp_gc_sample {
  uint64_t time_ns, weight;
  uint32_t vm;
};

/* A VM changed from marking to sweeping or back. */
struct ljp_gc_turn {
  uint64_t time_ns;
  uint32_t vm;
  bool sweeps;
};

/* What is known about a VM; the sums are over what was recorded. */
struct ljp_gc_vm {
  bool seen, sweeps; /* A phase was read; the newest one sweeps. */
  uint32_t context;  /* Of a sample, + 1. */
  uint64_t cycle, newest_heap;
  double heap; /* Bytes that outlived a collection, over all collections. */
  /* The most that blocks from before the session can be of it. */
  double first_heap, oldest;
  /* CPU time; `rest` is not placed: beyond the limits, or no phase is known. */
  uint64_t mark_ns, sweep_ns, rest_ns;
  double bytes, objects, freed, live; /* Over memory[]. */
  double marked, swept;               /* With older blocks. */
  double exact;                       /* Time that its sites have so far ... */
  uint64_t given;                     /* ... in whole nanoseconds. */
  uint32_t last;                      /* In memory[]: that has some of it. */
};

/* NULL: out of memory. */
static struct ljp_gc_vm *gc_cost_vm(struct ljp_profile *p, uint32_t vm)
{
  struct ljp_profile_pass *pass = p->pass;
  while (pass->gc_vm_count <= vm) {
    if (!ljp_array_reserve(&pass->gc_vms, pass->gc_vm_count, &pass->gc_vm_room,
                           sizeof *pass->gc_vms))
      return NULL;
    pass->gc_vms[pass->gc_vm_count++] = (struct ljp_gc_vm){0};
  }
  return &pass->gc_vms[vm];
}

enum ljp_status ljp_gc_cost_add(struct ljp_profile *p, uint64_t time_ns,
                                uint32_t context, uint64_t weight)
{
  struct ljp_profile_pass *pass = p->pass;
  uint32_t vm = p->contexts[context].vm;
  struct ljp_gc_vm *v = gc_cost_vm(p, vm);
  if (!v)
    return LJP_ERR_MEM;
  v->context = context + 1;
  p->gc_cost.samples++;
  if (pass->gc_sample_count >= LJP_PROFILE_MAX_POINTS) {
    v->rest_ns += weight;
    return LJP_OK;
  }
  if (!ljp_array_reserve(&pass->gc_samples, pass->gc_sample_count,
                         &pass->gc_sample_room, sizeof *pass->gc_samples))
    return LJP_ERR_MEM;
  pass->gc_samples[pass->gc_sample_count++] =
      (struct ljp_gc_sample){.time_ns = time_ns, .weight = weight, .vm = vm};
  return LJP_OK;
}

static bool gc_cost_sweeps(uint64_t phase)
{
  return phase == LJP_GC_SWEEPSTRING || phase == LJP_GC_SWEEP ||
         phase == LJP_GC_FINALIZE || phase == LJP_GC_CLOSED;
}

enum ljp_status ljp_gc_cost_phase(struct ljp_profile *p, uint32_t vm,
                                  const struct ljp_rec_gc *gc)
{
  struct ljp_profile_pass *pass = p->pass;
  struct ljp_gc_vm *v = gc_cost_vm(p, vm);
  if (!v)
    return LJP_ERR_MEM;
  bool sweeps = gc_cost_sweeps(gc->phase), turns = v->sweeps != sweeps;
  if (!v->seen)
    v->first_heap = (double)gc->heap_bytes;
  if (v->seen && gc->cycle > v->cycle) {
    double cycles = (double)(gc->cycle - v->cycle);
    v->heap += (double)gc->heap_bytes * cycles;
    v->oldest += v->first_heap * cycles;
  }
  turns |= !v->seen;
  v->seen = true;
  v->sweeps = sweeps;
  v->cycle = gc->cycle;
  v->newest_heap = gc->heap_bytes;
  if (!turns)
    return LJP_OK;
  /* The last one that is kept says from when on time is not placed. */
  if (pass->gc_turn_count > LJP_PROFILE_MAX_POINTS)
    return LJP_OK;
  if (!ljp_array_reserve(&pass->gc_turns, pass->gc_turn_count,
                         &pass->gc_turn_room, sizeof *pass->gc_turns))
    return LJP_ERR_MEM;
  pass->gc_turns[pass->gc_turn_count++] = (struct ljp_gc_turn){
      .time_ns = ljp_profile_since(p, gc->time_ns), .vm = vm, .sweeps = sweeps};
  return LJP_OK;
}

static int gc_cost_order(uint32_t vm, uint32_t other_vm, uint64_t time,
                         uint64_t other_time)
{
  return vm != other_vm ? (vm > other_vm) - (vm < other_vm)
                        : (time > other_time) - (time < other_time);
}

static int gc_cost_order_samples(const void *a, const void *b)
{
  const struct ljp_gc_sample *x = a, *y = b;
  return gc_cost_order(x->vm, y->vm, x->time_ns, y->time_ns);
}

/* At the same time the later phase holds: a change to marking ends a collection
** that had nothing to sweep. */
static int gc_cost_order_turns(const void *a, const void *b)
{
  const struct ljp_gc_turn *x = a, *y = b;
  int order = gc_cost_order(x->vm, y->vm, x->time_ns, y->time_ns);
  return order ? order : y->sweeps - x->sweeps;
}

/* Sums up the time of both kinds of phases. A sample before the first phase of
** its VM belongs to the phase that comes before that one. */
static void gc_cost_sum_time(struct ljp_profile_pass *pass)
{
  uint64_t limit = UINT64_MAX;
  uint32_t at = 0;
  if (pass->gc_turn_count > LJP_PROFILE_MAX_POINTS)
    limit = pass->gc_turns[--pass->gc_turn_count].time_ns;
  if (pass->gc_turn_count)
    qsort(pass->gc_turns, pass->gc_turn_count, sizeof *pass->gc_turns,
          gc_cost_order_turns);
  if (pass->gc_sample_count)
    qsort(pass->gc_samples, pass->gc_sample_count, sizeof *pass->gc_samples,
          gc_cost_order_samples);
  for (uint32_t i = 0; i < pass->gc_sample_count; i++) {
    const struct ljp_gc_sample *s = &pass->gc_samples[i];
    const struct ljp_gc_turn *turns = pass->gc_turns;
    struct ljp_gc_vm *v = &pass->gc_vms[s->vm];
    while (at < pass->gc_turn_count &&
           gc_cost_order(turns[at].vm, s->vm, turns[at].time_ns, s->time_ns) <=
               0)
      at++;
    bool after = at && turns[at - 1].vm == s->vm;
    bool before = at < pass->gc_turn_count && turns[at].vm == s->vm;
    if ((!after && !before) || s->time_ns >= limit)
      v->rest_ns += s->weight;
    else if (after ? turns[at - 1].sweeps : !turns[at].sweeps)
      v->sweep_ns += s->weight;
    else
      v->mark_ns += s->weight;
  }
}

/* -- The division ---------------------------------------------------------- */

/* Sums up the work of each VM for the known blocks, then adds that for older
** ones, which are taken to be as large. */
static enum ljp_status gc_cost_sum_work(struct ljp_profile *p)
{
  struct ljp_profile_pass *pass = p->pass;
  for (uint32_t i = 1; i < p->memory_count; i++) {
    const struct ljp_profile_memory *m = &p->memory[i];
    struct ljp_gc_vm *v = gc_cost_vm(p, m->vm);
    if (!v)
      return LJP_ERR_MEM;
    v->bytes += (double)m->marked_bytes;
    v->objects += (double)m->marked_objects;
    v->freed += (double)m->free_objects;
    v->live += (double)m->live_bytes;
  }
  for (uint32_t i = 0; i < pass->gc_vm_count; i++) {
    struct ljp_gc_vm *v = &pass->gc_vms[i];
    double older = v->heap > v->bytes ? v->heap - v->bytes : 0;
    if (p->sampled_memory && older > v->oldest)
      older = v->oldest; /* The rest is the error of the estimates. */
    double older_objects = v->bytes > 0 ? older * v->objects / v->bytes : 0;
    v->marked = v->bytes + older;
    v->swept = v->objects + v->freed + older_objects;
    if (v->marked <= 0) /* The first collection has not ended. */
      v->live =
          v->live > (double)v->newest_heap ? v->live : (double)v->newest_heap;
    else
      v->live = 0;
  }
  return LJP_OK;
}

/* Gives time to a site. The sum of all is rounded, not each, so that nothing is
** left over. */
static void gc_cost_give(struct ljp_profile *p, uint32_t memory, double ns)
{
  struct ljp_profile_memory *m = &p->memory[memory];
  struct ljp_gc_vm *v = &p->pass->gc_vms[m->vm];
  uint64_t all = v->mark_ns + v->sweep_ns;
  v->exact += ns;
  double whole = v->exact + 0.5;
  uint64_t sum = whole >= (double)all ? all : (uint64_t)whole;
  if (sum <= v->given)
    return;
  m->gc_ns = sum - v->given;
  v->given = sum;
  v->last = memory;
}

static void gc_cost_divide(struct ljp_profile *p)
{
  for (uint32_t i = 1; i < p->memory_count; i++) {
    const struct ljp_profile_memory *m = &p->memory[i];
    const struct ljp_gc_vm *v = &p->pass->gc_vms[m->vm];
    double ns = 0;
    if (v->marked > 0)
      ns += (double)v->mark_ns * (double)m->marked_bytes / v->marked;
    else if (v->live > 0)
      ns += (double)v->mark_ns * (double)m->live_bytes / v->live;
    if (v->swept > 0)
      ns += (double)v->sweep_ns *
            ((double)m->marked_objects + (double)m->free_objects) / v->swept;
    gc_cost_give(p, i, ns);
  }
}

/* Adds time to the row of a node for a VM. */
static enum ljp_status gc_cost_rest(struct ljp_profile *p, uint32_t node,
                                    const struct ljp_gc_vm *v, uint64_t ns)
{
  struct ljp_profile_context context = p->contexts[v->context - 1];
  uint32_t id, row, memory;
  enum ljp_status status;
  context.kind = LJP_PRODUCER_MEMORY;
  context.cut = LJP_CUT_NONE;
  if (!ns)
    return LJP_OK;
  if ((status = ljp_profile_intern_context(p, &context, &id)) ||
      (status = ljp_profile_intern_row(p, node, id, &row)) ||
      (status = ljp_profile_intern_memory(p, row, &memory)))
    return status;
  p->memory[memory].gc_ns += ns;
  return LJP_OK;
}

/* What the sites do not explain is for older memory; what has no phase, for
** memory that is not known. */
static enum ljp_status gc_cost_rests(struct ljp_profile *p)
{
  struct ljp_profile_pass *pass = p->pass;
  for (uint32_t i = 0; i < pass->gc_vm_count; i++) {
    struct ljp_gc_vm *v = &pass->gc_vms[i];
    uint64_t all = v->mark_ns + v->sweep_ns, older = all - v->given;
    enum ljp_status status;
    p->gc_cost.mark_ns += v->mark_ns;
    p->gc_cost.sweep_ns += v->sweep_ns;
    p->gc_cost.unplaced_ns += v->rest_ns;
    if (!v->context)
      continue;                  /* no samples */
    if (older <= 2 && v->last) { /* what the sum of fractions lacks */
      p->memory[v->last].gc_ns += older;
      older = 0;
    }
    p->gc_cost.before_ns += older;
    if ((status = gc_cost_rest(p, LJP_NODE_BEFORE, v, older)) ||
        (status = gc_cost_rest(p, LJP_NODE_UNRECORDED, v, v->rest_ns)))
      return status;
  }
  return LJP_OK;
}

/* Samples beyond the limits are divided between the phases as the others of
** their VM. */
static void gc_cost_place_rest(struct ljp_profile_pass *pass)
{
  for (uint32_t i = 0; i < pass->gc_vm_count; i++) {
    struct ljp_gc_vm *v = &pass->gc_vms[i];
    double known = (double)v->mark_ns + (double)v->sweep_ns;
    if (!v->rest_ns || known <= 0)
      continue;
    double part = (double)v->rest_ns * ((double)v->mark_ns / known);
    uint64_t mark = part < (double)v->rest_ns ? (uint64_t)part : v->rest_ns;
    v->mark_ns += mark;
    v->sweep_ns += v->rest_ns - mark;
    v->rest_ns = 0;
  }
}

enum ljp_status ljp_gc_cost_finish(struct ljp_profile *p)
{
  enum ljp_status status;
  if (!p->has_memory)
    return LJP_OK; /* There is nobody to divide it among. */
  gc_cost_sum_time(p->pass);
  gc_cost_place_rest(p->pass);
  if ((status = gc_cost_sum_work(p)))
    return status;
  gc_cost_divide(p);
  return gc_cost_rests(p);
}

void ljp_gc_cost_free(struct ljp_profile_pass *pass)
{
  free(pass->gc_samples);
  free(pass->gc_turns);
  free(pass->gc_vms);
}
