/*
** Batches of memory events. An event needs a slot of the table of live
** blocks, a block, a row and the row's memory, all at places in memory that
** nobody can foresee. So events wait until some are there, and each step
** prefetches what the next step reads. One thread a profile.
*/
#include "parsers/profile/labels.h"
#include "parsers/profile/rows.h"
#include "src/base/assert.h"

/* Prefetches blocks, rows and rows' memory. The slots and stacks have been
** prefetched when the events came. */
static void batch_prefetch(const struct ljp_profile *p, unsigned count)
{
  const struct ljp_profile_pass *pass = p->pass;
  const struct ljp_memory_event *events = pass->batch.events;
  uint32_t at[LJP_MEMORY_BATCH]; /* A free's block + 1, others' row + 1. */
  for (unsigned i = 0; i < count; i++) {
    const struct ljp_rec_mem *m = &events[i].mem;
    const struct ljp_stack_entry *e;
    at[i] = ljp_live_prefetch_block(&pass->live, m->address);
    if (m->op == LJP_MEM_FREE)
      continue;
    if (m->op == LJP_MEM_REALLOC)
      ljp_live_prefetch_block(&pass->live, m->old_address);
    e = ljp_stack_map_at(&pass->stacks, m->stack);
    at[i] = e ? e->rows[events[i].context % LJP_STACK_ROWS] : 0;
    if (at[i])
      __builtin_prefetch(&p->rows[at[i] - 1], 1);
  }
  for (unsigned i = 0; i < count; i++)
    if (at[i]) {
      uint32_t memory = events[i].mem.op == LJP_MEM_FREE
                            ? ljp_live_block(&pass->live, at[i])->memory
                            : p->rows[at[i] - 1].memory;
      if (memory < p->memory_count)
        __builtin_prefetch(&p->memory[memory], 1);
    }
}

enum ljp_status ljp_profile_flush_memory(struct ljp_profile *p)
{
  struct ljp_memory_batch *batch = &p->pass->batch;
  unsigned count = batch->count;
  enum ljp_status status;
  ljp_assert(count <= LJP_MEMORY_BATCH);
  batch->count = 0;
  batch_prefetch(p, count);
  for (unsigned i = 0; i < count; i++) {
    const struct ljp_memory_event *e = &batch->events[i];
    uint32_t row = UINT32_MAX;
    if (e->mem.op != LJP_MEM_FREE) { /* The stack of a free is not used. */
      if ((status = ljp_profile_find_row(p, e->mem.stack, e->context, &row)))
        return status;
      if (e->wanted)
        ljp_profile_count_missing_stack(p, row);
    }
    if ((status = ljp_profile_count_memory(p, e, row)))
      return status;
  }
  return LJP_OK;
}

enum ljp_status ljp_profile_take_live(struct ljp_profile *p,
                                      const struct ljp_item *item)
{
  const struct ljp_rec_live *live = &item->u.live;
  struct ljp_memory_batch *batch = &p->pass->batch;
  const struct ljp_item event = {.what = LJP_REC_MEM,
                                 .time_ns = live->time_ns,
                                 .block = item->block,
                                 .u.mem = {.address = live->address,
                                           .size = live->size,
                                           .stack = live->stack,
                                           .vm = live->vm,
                                           .weight = live->weight,
                                           .op = LJP_MEM_ALLOC,
                                           .state = (uint8_t)live->state,
                                           .type = (uint8_t)live->type}};
  ljp_assert(!batch->count);
  p->totals.held_read += p->pass->placed == 1;
  if (p->options.rates || !live->weight)
    return LJP_OK;
  enum ljp_status status = ljp_profile_take_memory(p, &event);
  if (!status && batch->count) {
    batch->events[0].held = true;
    batch->events[0].held_cycle = (uint32_t)live->cycle;
    status = ljp_profile_flush_memory(p);
  }
  return status;
}

enum ljp_status ljp_profile_take_memory(struct ljp_profile *p,
                                        const struct ljp_item *item)
{
  const struct ljp_rec_mem *m = &item->u.mem;
  struct ljp_profile_pass *pass = p->pass;
  struct ljp_context_cache *cache = &pass->context;
  enum ljp_status status;
  uint32_t context;
  bool wanted, before;
  if ((status = ljp_context_enter(cache, p, item, LJP_REC_MEM, m->vm)))
    return status;
  ljp_profile_see_time(p, item->time_ns);
  if (p->options.rates && m->op == LJP_MEM_FREE)
    return LJP_OK;
  if ((status = ljp_context_find(cache, p, m->state, m->type, &context)))
    return status;
  wanted = before = cache->wanted;
  if (LJP_UNLIKELY(pass->filters)) {
    bool filtered = wanted;
    if ((status = ljp_profile_filter(p, item->time_ns, m->stack, &filtered)))
      return status;
    before = wanted && ljp_profile_time_wanted(p, item->time_ns) &&
             p->labels[LJP_LABELS_NONE].wanted;
    wanted = filtered;
  }
  ljp_live_prefetch_slot(&pass->live, m->address);
  if (m->op == LJP_MEM_REALLOC)
    ljp_live_prefetch_slot(&pass->live, m->old_address);
  if (m->op != LJP_MEM_FREE) {
    const struct ljp_stack_entry *entry =
        ljp_stack_map_at(&pass->stacks, m->stack);
    if (LJP_LIKELY(entry))
      __builtin_prefetch(entry);
  }
  ljp_assert(pass->batch.count < LJP_MEMORY_BATCH);
  pass->batch.events[pass->batch.count++] =
      (struct ljp_memory_event){.mem = *m,
                                .time_ns = item->time_ns,
                                .context = context,
                                .wanted = wanted,
                                .wanted_before = before};
  return LJP_LIKELY(pass->batch.count < LJP_MEMORY_BATCH)
             ? LJP_OK
             : ljp_profile_flush_memory(p);
}
