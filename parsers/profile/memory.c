/*
** Memory events: what was allocated at each row, what of it was freed, what is
** live, and what was live at the peak.
**
** One thread a profile.
*/
#include "parsers/profile/memory.h"

#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/gc_cost.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/peak.h"
#include "parsers/profile/points.h"

/* The objects that a block stands for, in 1/LJP_OBJECT. */
static uint64_t memory_objects(uint64_t size, uint64_t weight)
{
  if (!weight || !size || weight == size)
    return LJP_OBJECT;
  unsigned __int128 n = (unsigned __int128)weight * LJP_OBJECT / size;
  return n > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)n;
}

/* Where a block of a row is estimated; NULL: the block is exact. */
static struct ljp_profile_estimates *
memory_estimates(struct ljp_profile *p, uint32_t memory, uint64_t weight)
{
  return weight && p->estimates ? &p->estimates[memory] : NULL;
}

/* The collections that a block has outlived since the file began. */
static void memory_outlived(struct ljp_profile_memory *m,
                            const struct ljp_live_block *block,
                            const struct ljp_memory_vm *vm, uint64_t objects,
                            uint64_t bytes)
{
  uint32_t since =
      block->cycle > vm->first_cycle ? block->cycle : vm->first_cycle;
  ljp_gc_cost_outlived(m, objects, bytes,
                       vm->cycle > since ? vm->cycle - since : 0);
}

/* Removes a block from the table and from its row's memory. moved: by a
** reallocation, so its object goes on elsewhere. Whether a sampled object was
** last reallocated at a row is known only now, so its point is added now.
** LJP_ERR_MEM. */
static enum ljp_status memory_remove_block(struct ljp_profile *p, uint32_t at,
                                           bool moved)
{
  struct ljp_live *live = &p->pass->live;
  struct ljp_live_block block = *ljp_live_block(live, at);
  uint64_t weight = ljp_live_weight(live, at);
  struct ljp_memory_vm *vm = &p->pass->memory.vms[ljp_live_owner_of(live, at)];
  ljp_live_remove(live, &vm->blocks, at);
  if (block.memory == LJP_LIVE_UNWANTED)
    return LJP_OK;
  uint64_t objects = memory_objects(block.size, weight);
  uint64_t bytes = weight ? weight : block.size;
  ljp_memory_shrink(p, block.memory, objects, bytes);
  struct ljp_profile_memory *m = &p->memory[block.memory];
  struct ljp_profile_estimates *e = memory_estimates(p, block.memory, weight);
  if (e) {
    ljp_estimate_take(&e->live, block.size, weight);
    ljp_estimate_take(&p->pass->memory.estimate, block.size, weight);
  }
  m->free_bytes += bytes;
  memory_outlived(m, &block, vm, objects, bytes);
  if (moved) {
    m->moved_objects_out += objects;
    if (weight && block.held)
      p->totals.held_objects -= objects;
    else if (weight)
      m->alloc_objects -= objects;
    if (e && !block.held)
      ljp_estimate_take_object(&e->alloc, block.size, weight);
    return LJP_OK;
  }
  m->free_objects += objects;
  if (p->has_gc && vm->cycle == block.cycle && !block.held) {
    m->temporary_objects += objects;
    m->temporary_bytes += bytes;
    if (e)
      ljp_estimate_add(&e->temporary, block.size, weight);
  }
  return weight && p->options.points
             ? ljp_profile_add_point(p, block.ms * UINT64_C(1000000), m->row,
                                     objects, 0, false)
             : LJP_OK;
}

/* The VM frees all that it has. */
static enum ljp_status memory_free_all(struct ljp_profile *p, uint32_t vm)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  struct ljp_live_walk walk = {0};
  enum ljp_status status;
  uint32_t block;
  while (
      (block = ljp_live_next_of(&p->pass->live, &sums->vms[vm].blocks, &walk)))
    if ((status = memory_remove_block(p, block, false)))
      return status;
  ljp_live_release(&p->pass->live, &sums->vms[vm].blocks);
  sums->vms[vm].id = 0;
  sums->vms[vm].cycle = sums->vm_free;
  sums->vm_free = vm;
  return LJP_OK;
}

/* What the last VM has at its end is what the program has at its end. So it
** counts as freed only if there is another VM. */
static enum ljp_status memory_free_closed(struct ljp_profile *p)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  uint32_t vm = sums->closed;
  sums->closed = 0;
  return vm ? memory_free_all(p, vm) : LJP_OK;
}

enum ljp_status ljp_profile_take_heap(struct ljp_profile *p,
                                      const struct ljp_rec_gc *gc)
{
  struct ljp_memory_sums *sums = &p->pass->memory;
  uint32_t vm;
  enum ljp_status status = ljp_memory_take_vm(p, gc->vm, &vm);
  if (status || !vm)
    return status;
  if (sums->closed == vm)
    sums->closed = 0; /* not in honest files */
  if ((status = memory_free_closed(p)))
    return status;
  struct ljp_memory_vm *v = &sums->vms[vm];
  v->cycle = (uint32_t)gc->cycle;
  sums->open += !v->open;
  v->open = true;
  if (gc->phase != LJP_GC_CLOSED)
    return LJP_OK;
  v->open = false;
  if (--sums->open)
    return memory_free_all(p, vm);
  sums->closed = vm;
  return LJP_OK;
}

/* Adds the block that an event allocates to the table. */
static enum ljp_status memory_add_block(struct ljp_profile *p,
                                        const struct ljp_memory_event *event,
                                        uint32_t memory)
{
  const struct ljp_rec_mem *e = &event->mem;
  struct ljp_live *live = &p->pass->live;
  struct ljp_memory_sums *sums = &p->pass->memory;
  uint32_t vm;
  enum ljp_status status = ljp_memory_take_vm(p, e->vm, &vm);
  if (status)
    return status;
  uint64_t ms = ljp_profile_since(p, event->time_ns) / 1000000;
  struct ljp_live_block block = {.address = e->address,
                                 .size = e->size,
                                 .memory = memory,
                                 .ms = ms < UINT32_MAX ? (uint32_t)ms
                                                       : UINT32_MAX,
                                 .mark = p->mark_count};
  uint32_t old = ljp_live_find(live, e->address);
  if (old) { /* Its free is not in the stream. */
    p->totals.double_allocs++;
    if ((status = memory_remove_block(p, old, false)))
      return status;
  }
  if (memory != LJP_LIVE_UNWANTED)
    block.cycle = sums->vms[vm].cycle;
  if (event->held) {
    block.held = true;
    block.cycle = event->held_cycle;
    block.mark = 0;
  }
  sums->events++;
  status = ljp_live_add(live, &sums->vms[vm].blocks, vm, &block, e->weight);
  return status || LJP_LIKELY(!p->options.births)
             ? status
             : ljp_live_set_number(live, ljp_live_find(live, e->address),
                                   sums->events);
}

/* Counts the free or reallocation of a block whose allocation is not in the
** stream: it is older than the session. */
static enum ljp_status memory_count_before(struct ljp_profile *p,
                                           uint32_t context, uint64_t bytes,
                                           bool moved)
{
  uint32_t row, memory;
  enum ljp_status status =
      ljp_profile_intern_row(p, LJP_NODE_BEFORE, context, &row);
  if (!status)
    status = ljp_profile_intern_memory(p, row, &memory);
  if (status)
    return status;
  struct ljp_profile_memory *m = &p->memory[memory];
  m->free_bytes += bytes;
  p->totals.before_free_bytes += bytes;
  if (moved) {
    m->moved_objects_out += LJP_OBJECT;
    p->totals.before_reallocs++;
  } else {
    m->free_events++;
    m->free_objects += LJP_OBJECT;
    p->totals.before_frees++;
  }
  return LJP_OK;
}

static enum ljp_status memory_count_free(struct ljp_profile *p,
                                         const struct ljp_rec_mem *e,
                                         uint32_t context, bool wanted)
{
  struct ljp_live *live = &p->pass->live;
  uint32_t at = ljp_live_find(live, e->address);
  if (!at) {
    if (!wanted) {
      p->totals.filtered++;
      return LJP_OK;
    }
    p->totals.free_events++;
    return memory_count_before(p, context, e->weight ? e->weight : e->size,
                               false);
  }
  uint32_t owner = ljp_live_block(live, at)->memory;
  bool moved = e->flags & LJP_MEM_MOVED;
  if (owner == LJP_LIVE_UNWANTED) {
    p->totals.filtered++;
  } else if (!moved) {
    p->totals.free_events++;
    p->memory[owner].free_events++;
  }
  return memory_remove_block(p, at, moved);
}

/* options.rates: counts an allocation or reallocation at its row. */
static enum ljp_status memory_count_rate(struct ljp_profile *p,
                                         const struct ljp_memory_event *event,
                                         uint32_t row)
{
  const struct ljp_rec_mem *e = &event->mem;
  uint64_t bytes = e->weight ? e->weight : e->size;
  bool moved = e->op == LJP_MEM_REALLOC || (e->flags & LJP_MEM_MOVED);
  uint32_t memory;
  enum ljp_status status = ljp_profile_intern_memory(p, row, &memory);
  if (status || !event->wanted || (e->flags & LJP_MEM_FAILED))
    return status;
  p->has_memory = true;
  p->sampled_memory |= e->weight != 0;
  p->rows[row].weight += bytes;
  p->rows[row].count += !moved;
  p->memory[memory].alloc_bytes += bytes;
  if (!moved || e->weight)
    p->memory[memory].alloc_objects += memory_objects(e->size, e->weight);
  return LJP_OK;
}

/* A weight exceeds the size by at most the interval. So this is a lower limit of
** the interval if its definition was lost. */
static void memory_see_weight(struct ljp_profile *p,
                              const struct ljp_rec_mem *e)
{
  if (e->weight > e->size && e->weight - e->size > p->sample_bytes)
    p->sample_bytes = e->weight - e->size;
}

static void memory_estimate_live(struct ljp_profile *p, uint32_t memory,
                                 const struct ljp_rec_mem *e)
{
  struct ljp_profile_estimates *estimates =
      memory_estimates(p, memory, e->weight);
  if (!estimates)
    return;
  ljp_estimate_add(&estimates->live, e->size, e->weight);
  ljp_estimate_add(&p->pass->memory.estimate, e->size, e->weight);
}

/* Counts a block that was alive when the file began. If earlier files were read, too,
** the table has the block already. */
static enum ljp_status memory_count_held(struct ljp_profile *p,
                                         const struct ljp_memory_event *event,
                                         uint32_t row)
{
  const struct ljp_rec_mem *e = &event->mem;
  struct ljp_live *live = &p->pass->live;
  uint32_t memory, at = ljp_live_find(live, e->address);
  enum ljp_status status;
  p->has_memory = p->sampled_memory = true;
  memory_see_weight(p, e);
  if (at && ljp_live_block(live, at)->size == e->size &&
      ljp_live_weight(live, at) == e->weight)
    return LJP_OK;
  if (!event->wanted)
    return memory_add_block(p, event, LJP_LIVE_UNWANTED);
  if ((status = ljp_profile_intern_memory(p, row, &memory)) ||
      (status = ljp_profile_reserve_estimates(p)) ||
      (status = memory_add_block(p, event, memory)))
    return status;
  uint64_t objects = memory_objects(e->size, e->weight);
  p->totals.held_objects += objects;
  p->totals.held_bytes += e->weight;
  ljp_memory_grow(p, memory, objects, e->weight,
                  ljp_profile_since(p, event->time_ns));
  memory_estimate_live(p, memory, e);
  return LJP_OK;
}

enum ljp_status ljp_profile_count_memory(struct ljp_profile *p,
                                         const struct ljp_memory_event *event,
                                         uint32_t row)
{
  if (p->options.rates)
    return memory_count_rate(p, event, row);
  if (LJP_UNLIKELY(event->held))
    return memory_count_held(p, event, row);
  const struct ljp_rec_mem *e = &event->mem;
  uint32_t context = event->context;
  bool wanted = event->wanted;
  struct ljp_live *live = &p->pass->live;
  enum ljp_status status;
  uint32_t memory, at;
  p->has_memory = true;
  if (LJP_UNLIKELY(p->pass->memory.closed) &&
      ljp_memory_find_vm(&p->pass->memory, e->vm) != p->pass->memory.closed &&
      (status = memory_free_closed(p)))
    return status;
  if (e->weight) {
    p->sampled_memory = true;
    memory_see_weight(p, e);
  }
  if (e->flags & LJP_MEM_FAILED) {
    p->totals.failed_allocs += wanted;
    p->totals.filtered += !wanted;
    return LJP_OK;
  }
  if (e->op == LJP_MEM_FREE)
    return memory_count_free(p, e, context, event->wanted_before);
  if (e->op == LJP_MEM_REALLOC) {
    at = ljp_live_find(live, e->old_address);
    status = at ? memory_remove_block(p, at, true)
             : event->wanted_before
                 ? memory_count_before(p, context, e->old_size, true)
                 : LJP_OK;
    if (status)
      return status;
  }
  if (!wanted) {
    p->totals.filtered++;
    return memory_add_block(p, event, LJP_LIVE_UNWANTED);
  }
  if ((status = ljp_profile_intern_memory(p, row, &memory)))
    return status;
  if (e->weight && (status = ljp_profile_reserve_estimates(p)))
    return status;
  if ((status = memory_add_block(p, event, memory)))
    return status;
  uint64_t objects = memory_objects(e->size, e->weight);
  uint64_t bytes = e->weight ? e->weight : e->size;
  struct ljp_profile_memory *m = &p->memory[memory];
  p->rows[row].weight += bytes;
  m->alloc_bytes += bytes;
  if (e->op == LJP_MEM_REALLOC || (e->flags & LJP_MEM_MOVED)) {
    p->totals.realloc_events++;
    m->realloc_events++;
    m->moved_objects_in += objects;
    m->alloc_objects += e->weight ? objects : 0;
  } else {
    p->totals.alloc_events++;
    p->rows[row].count++;
    m->alloc_objects += objects;
  }
  uint64_t time_ns = ljp_profile_since(p, event->time_ns);
  ljp_memory_grow(p, memory, objects, bytes, time_ns);
  struct ljp_profile_estimates *estimates =
      memory_estimates(p, memory, e->weight);
  if (estimates)
    ljp_estimate_add(&estimates->alloc, e->size, e->weight);
  memory_estimate_live(p, memory, e);
  if (p->options.points)
    return ljp_profile_add_point(p, time_ns, row,
                                 !e->weight && e->op == LJP_MEM_ALLOC &&
                                         !(e->flags & LJP_MEM_MOVED)
                                     ? LJP_OBJECT
                                     : 0,
                                 bytes, false);
  return LJP_OK;
}

/* Counts a block that is live at the end. */
static enum ljp_status memory_count_live(struct ljp_profile *p, uint32_t at,
                                         uint32_t slice_ms)
{
  struct ljp_live *live = &p->pass->live;
  const struct ljp_live_block *b = ljp_live_block(live, at);
  uint64_t weight = ljp_live_weight(live, at);
  if (b->memory == LJP_LIVE_UNWANTED)
    return LJP_OK;
  struct ljp_profile_memory *m = &p->memory[b->memory];
  struct ljp_profile_estimates *e = memory_estimates(p, b->memory, weight);
  uint64_t objects = memory_objects(b->size, weight);
  uint64_t bytes = weight ? weight : b->size;
  const struct ljp_memory_vm *vm =
      &p->pass->memory.vms[ljp_live_owner_of(live, at)];
  uint32_t cycles = vm->cycle > b->cycle ? vm->cycle - b->cycle : 0;
  memory_outlived(m, b, vm, objects, bytes);
  bool old = !p->has_gc || cycles >= 2;
  bool recent = p->pass->since_seen && b->mark >= p->pass->memory.since_mark;
  uint64_t last = p->end_ns / 1000000;
  m->late |= b->ms >= last - last / 3;
  if (old) {
    uint32_t slice = b->ms / slice_ms;
    m->old_objects += objects;
    m->old_bytes += bytes;
    if (recent || !p->options.since_old)
      m->slices |= UINT64_C(1) << (slice < 63 ? slice : 63);
    if (e)
      ljp_estimate_add(&e->old, b->size, weight);
  }
  if (recent && (old || !p->options.since_old)) {
    m->recent_objects += objects;
    m->recent_bytes += bytes;
    if (e)
      ljp_estimate_add(&e->recent, b->size, weight);
  }
  uint64_t time_ns = b->ms * UINT64_C(1000000);
  enum ljp_status status = LJP_OK;
  if (p->options.points && weight)
    status = ljp_profile_add_point(p, time_ns, m->row, objects, 0, false);
  if (p->options.points && !status)
    status = ljp_profile_add_point(p, time_ns, m->row, objects, bytes, true);
  return status;
}

enum ljp_status ljp_profile_end_memory(struct ljp_profile *p)
{
  struct ljp_live *live = &p->pass->live;
  struct ljp_memory_sums *sums = &p->pass->memory;
  uint64_t slice = p->end_ns / 1000000 / 64 + 1;
  enum ljp_status status;
  for (uint32_t i = 0; i < live->slot_count; i++)
    if (live->slots[i].block &&
        (status = memory_count_live(p, live->slots[i].block,
                                    slice < UINT32_MAX ? (uint32_t)slice
                                                       : UINT32_MAX)))
      return status;
  for (uint32_t i = 1; i < p->memory_count; i++) {
    struct ljp_profile_memory *m = &p->memory[i];
    if (sums->falling && m->peak_fall == sums->fall)
      continue; /* It has changed since the peak, and saved its numbers. */
    m->peak_objects = m->live_objects;
    m->peak_bytes = m->live_bytes;
    if (p->estimates)
      p->estimates[i].peak = p->estimates[i].live;
  }
  p->totals.peak_bytes = sums->peak_bytes;
  ljp_live_clear(live);
  sums->vm_count = sums->open = sums->closed = sums->vm_free = 0;
  ljp_growth_next(&p->pass->growth);
  return LJP_OK;
}
