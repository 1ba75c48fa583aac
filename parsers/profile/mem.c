/*
** Memory events: what was allocated where, what of it was freed, lives, or
** lived when all was most.
**
** The peak. While the sum climbs beyond all that was before, the rows as they
** are now are the peak's. When it falls, a row keeps what it had the first
** time it is changed after; climbing on makes that void. So a peak costs
** nothing when it moves, and one store a row and fall.
*/
#include "parsers/profile/work.h"

#include <string.h>

/* Objects that a block stands for. */
static uint64_t objects_of(uint64_t size, uint64_t weight)
{
  if (!weight || !size || weight == size)
    return LJP_OBJECT;
  unsigned __int128 n = (unsigned __int128)weight * LJP_OBJECT / size;
  return n > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)n;
}

/* Of a row; NULL: the block is exact. */
static struct ljp_profile_estimates *
estimates_of(struct ljp_profile *p, uint32_t memory, uint64_t weight)
{
  return weight && p->estimates ? &p->estimates[memory] : NULL;
}

/* The row's memory will change. */
static void before_change(struct ljp_profile *p, uint32_t memory)
{
  const struct ljp_live *live = &p->work->live;
  struct ljp_profile_memory *m = &p->memory[memory];
  if (live->falling && m->peak_fall != live->fall) {
    m->peak_fall = live->fall;
    m->peak_objects = m->live_objects;
    m->peak_bytes = m->live_bytes;
    if (p->estimates)
      p->estimates[memory].peak = p->estimates[memory].live;
  }
}

static void grow(struct ljp_profile *p, uint32_t memory, uint64_t objects,
                 uint64_t bytes, uint64_t time_ns)
{
  struct ljp_live *live = &p->work->live;
  before_change(p, memory);
  p->memory[memory].live_objects += objects;
  p->memory[memory].live_bytes += bytes;
  live->objects += objects;
  live->bytes += bytes;
  if (live->bytes > live->most_bytes) {
    live->most_bytes = live->bytes;
    live->falling = false;
    p->totals.peak_ns = time_ns;
  }
}

static void shrink(struct ljp_profile *p, uint32_t memory, uint64_t objects,
                   uint64_t bytes)
{
  struct ljp_live *live = &p->work->live;
  if (!live->falling && live->bytes == live->most_bytes) {
    live->falling = true;
    live->fall++;
  }
  before_change(p, memory);
  p->memory[memory].live_objects -= objects;
  p->memory[memory].live_bytes -= bytes;
  live->objects -= objects;
  live->bytes -= bytes;
}

static uint32_t cycle_of(const struct ljp_profile *p, uint32_t memory)
{
  const struct ljp_live *live = &p->work->live;
  uint32_t vm = p->memory[memory].vm;
  return vm < live->cycle_room ? live->cycles[vm] : 0;
}

/* Takes a block out of the table and its row's memory; moved: by a reallocation. */
static void take_out(struct ljp_profile *p, uint32_t at, bool moved)
{
  struct ljp_live *live = &p->work->live;
  struct ljp_live_block block = *ljp_live_block(live, at);
  uint64_t weight = ljp_live_weight(live, at);
  ljp_live_remove(live, at);
  if (block.memory == LJP_LIVE_UNWANTED)
    return;
  uint64_t objects = objects_of(block.size, weight);
  uint64_t bytes = weight ? weight : block.size;
  shrink(p, block.memory, objects, bytes);
  struct ljp_profile_memory *m = &p->memory[block.memory];
  struct ljp_profile_estimates *e = estimates_of(p, block.memory, weight);
  if (e) {
    ljp_estimate_take(&e->live, block.size, weight);
    ljp_estimate_take(&live->estimate, block.size, weight);
  }
  m->free_bytes += bytes;
  if (moved) {
    m->moved_objects_out += objects;
    return;
  }
  m->free_objects += objects;
  if (p->has_gc && cycle_of(p, block.memory) == block.cycle) {
    m->temporary_objects += objects;
    m->temporary_bytes += bytes;
    if (e)
      ljp_estimate_add(&e->temporary, block.size, weight);
  }
}

static enum ljp_status put_in(struct ljp_profile *p,
                              const struct ljp_waiting_mem *event,
                              uint32_t memory)
{
  const struct ljp_rec_mem *e = &event->mem;
  struct ljp_live *live = &p->work->live;
  uint64_t ms = ljp_profile_since(p, event->time_ns) / 1000000;
  struct ljp_live_block block = {.address = e->address,
                                 .size = e->size,
                                 .memory = memory,
                                 .ms = ms < UINT32_MAX ? (uint32_t)ms
                                                       : UINT32_MAX,
                                 .mark = p->mark_count};
  uint32_t old = ljp_live_find(live, e->address);
  if (old) { /* Its free was not seen. */
    p->totals.double_allocs++;
    take_out(p, old, false);
  }
  if (memory != LJP_LIVE_UNWANTED)
    block.cycle = cycle_of(p, memory);
  return ljp_live_add(live, &block, e->weight);
}

/* A block that nobody saw allocated is given up: counted apart. */
static enum ljp_status take_before(struct ljp_profile *p, uint32_t context,
                                   uint64_t bytes, bool moved)
{
  uint32_t row, memory;
  enum ljp_status status = ljp_profile_row(p, LJP_NODE_BEFORE, context, &row);
  if (!status)
    status = ljp_profile_row_memory(p, row, &memory);
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

static enum ljp_status take_free(struct ljp_profile *p,
                                 const struct ljp_rec_mem *e, uint32_t context,
                                 bool wanted)
{
  struct ljp_live *live = &p->work->live;
  uint32_t at = ljp_live_find(live, e->address);
  if (!at) {
    if (!wanted) {
      p->totals.filtered++;
      return LJP_OK;
    }
    p->totals.free_events++;
    return take_before(p, context, e->weight ? e->weight : e->size, false);
  }
  uint32_t owner = ljp_live_block(live, at)->memory;
  bool moved = e->flags & LJP_MEM_MOVED;
  if (owner == LJP_LIVE_UNWANTED) {
    p->totals.filtered++;
  } else if (!moved) {
    p->totals.free_events++;
    p->memory[owner].free_events++;
  }
  take_out(p, at, moved);
  return LJP_OK;
}

enum ljp_status ljp_profile_mem(struct ljp_profile *p,
                                const struct ljp_waiting_mem *event,
                                uint32_t row)
{
  const struct ljp_rec_mem *e = &event->mem;
  uint32_t context = event->context;
  bool wanted = event->wanted;
  struct ljp_live *live = &p->work->live;
  enum ljp_status status;
  uint32_t memory, at;
  p->has_memory = true;
  if (e->weight) {
    p->sampled_memory = true;
    /* Never more than the interval, unless that is not known. */
    if (e->weight > e->size && e->weight - e->size > p->sample_bytes)
      p->sample_bytes = e->weight - e->size;
  }
  if (e->flags & LJP_MEM_FAILED) {
    p->totals.failed_allocs += wanted;
    p->totals.filtered += !wanted;
    return LJP_OK;
  }
  if (e->op == LJP_MEM_FREE)
    return take_free(p, e, context, wanted);
  if (e->op == LJP_MEM_REALLOC) {
    at = ljp_live_find(live, e->old_address);
    if (at)
      take_out(p, at, true);
    else if (wanted && (status = take_before(p, context, e->old_size, true)))
      return status;
  }
  if (!wanted) {
    p->totals.filtered++;
    return put_in(p, event, LJP_LIVE_UNWANTED);
  }
  if ((status = ljp_profile_row_memory(p, row, &memory)))
    return status;
  if (e->weight && (status = ljp_profile_estimates(p)))
    return status;
  if ((status = put_in(p, event, memory)))
    return status;
  uint64_t objects = objects_of(e->size, e->weight);
  uint64_t bytes = e->weight ? e->weight : e->size;
  struct ljp_profile_memory *m = &p->memory[memory];
  p->rows[row].weight += bytes;
  m->alloc_bytes += bytes;
  if (e->op == LJP_MEM_REALLOC || (e->flags & LJP_MEM_MOVED)) {
    p->totals.realloc_events++;
    m->realloc_events++;
    m->moved_objects_in += objects;
  } else {
    p->totals.alloc_events++;
    p->rows[row].count++;
    m->alloc_objects += objects;
  }
  uint64_t time_ns = ljp_profile_since(p, event->time_ns);
  grow(p, memory, objects, bytes, time_ns);
  struct ljp_profile_estimates *estimates = estimates_of(p, memory, e->weight);
  if (estimates) {
    if (e->flags & LJP_MEM_MOVED)
      ljp_estimate_add_moved(&estimates->alloc, e->size, e->weight);
    else
      ljp_estimate_add(&estimates->alloc, e->size, e->weight);
    ljp_estimate_add(&estimates->live, e->size, e->weight);
    ljp_estimate_add(&live->estimate, e->size, e->weight);
  }
  if (p->options.points)
    return ljp_profile_point(p, time_ns, row, e->op == LJP_MEM_ALLOC, bytes,
                             false);
  return LJP_OK;
}

static enum ljp_status count_live(struct ljp_profile *p, uint32_t at,
                                  uint32_t slice_ms)
{
  struct ljp_live *live = &p->work->live;
  const struct ljp_live_block *b = ljp_live_block(live, at);
  uint64_t weight = ljp_live_weight(live, at);
  if (b->memory == LJP_LIVE_UNWANTED)
    return LJP_OK;
  struct ljp_profile_memory *m = &p->memory[b->memory];
  struct ljp_profile_estimates *e = estimates_of(p, b->memory, weight);
  uint64_t objects = objects_of(b->size, weight);
  uint64_t bytes = weight ? weight : b->size;
  bool old = !p->has_gc || cycle_of(p, b->memory) - b->cycle >= 2;
  bool recent = p->work->since_seen && b->mark >= live->since_mark;
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
  if (p->options.points)
    return ljp_profile_point(p, b->ms * UINT64_C(1000000), m->row,
                             (objects + LJP_OBJECT / 2) / LJP_OBJECT, bytes,
                             true);
  return LJP_OK;
}

enum ljp_status ljp_profile_mem_end(struct ljp_profile *p)
{
  struct ljp_live *live = &p->work->live;
  uint64_t slice = p->end_ns / 1000000 / 64 + 1;
  enum ljp_status status;
  for (uint32_t i = 0; i < live->slot_count; i++)
    if (live->slots[i].block &&
        (status =
             count_live(p, live->slots[i].block,
                        slice < UINT32_MAX ? (uint32_t)slice : UINT32_MAX)))
      return status;
  for (uint32_t i = 1; i < p->memory_count; i++) {
    struct ljp_profile_memory *m = &p->memory[i];
    if (live->falling && m->peak_fall == live->fall)
      continue; /* It has changed since, and was saved. */
    m->peak_objects = m->live_objects;
    m->peak_bytes = m->live_bytes;
    if (p->estimates)
      p->estimates[i].peak = p->estimates[i].live;
  }
  p->totals.peak_bytes = live->most_bytes;
  ljp_live_clear(live);
  return LJP_OK;
}
