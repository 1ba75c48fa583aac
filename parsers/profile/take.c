/*
** Samples and memory events: in which context and at which stack, so at which
** row, each is counted.
*/
#include "parsers/profile/work.h"

#include <stdio.h>
#include <string.h>

#define NO_ROW UINT32_MAX

static bool thread_wanted(const struct ljp_profile *p, uint32_t thread)
{
  const struct ljp_profile_thread *t = &p->threads[thread];
  const char *want = p->options.thread;
  char number[24];
  if (!want)
    return true;
  struct ljp_str name = ljp_profile_str(p, t->name);
  if (name.len == strlen(want) && memcmp(name.data, want, name.len) == 0)
    return true;
  snprintf(number, sizeof number, "%llu", (unsigned long long)t->id);
  if (t->id && strcmp(number, want) == 0)
    return true;
  snprintf(number, sizeof number, "%llu", (unsigned long long)t->tid);
  return t->tid && strcmp(number, want) == 0;
}

/* What the current block's producer and this VM make of a context. */
static enum ljp_status begin_context(struct ljp_profile *p,
                                     const struct ljp_item *event, uint64_t vm,
                                     uint8_t otherwise)
{
  struct ljp_profile_work *w = p->work;
  const struct ljp_rec_producer *producer =
      ljp_model_producer(&w->reader->model, event->block->head.producer);
  enum ljp_status status;
  if ((status = ljp_profile_thread(p, producer ? producer->thread : 0,
                                   &w->context_thread)) ||
      (status = ljp_profile_vm(p, vm, &w->context_vm)))
    return status;
  w->context_kind = otherwise;
  if (producer && (event->what == LJP_REC_SAMPLES) ==
                      (producer->kind == LJP_PRODUCER_WALL ||
                       producer->kind == LJP_PRODUCER_CPU))
    w->context_kind = (uint8_t)producer->kind;
  if (event->what == LJP_REC_MEM)
    w->context_kind = LJP_PRODUCER_MEMORY;
  if (producer && w->context_kind < 8 && !p->interval_ns[w->context_kind])
    p->interval_ns[w->context_kind] = producer->interval;
  if (event->what == LJP_REC_MEM && producer &&
      producer->interval > p->sample_bytes)
    p->sample_bytes = producer->interval;
  w->context_vm_id = vm;
  w->context_what = event->what;
  w->context_wanted = thread_wanted(p, w->context_thread);
  memset(w->context_of, 0, sizeof w->context_of);
  w->context_valid = true;
  return LJP_OK;
}

static enum ljp_status new_context(struct ljp_profile *p, uint8_t state,
                                   uint8_t cut, uint32_t *id)
{
  struct ljp_profile_work *w = p->work;
  struct ljp_profile_context c = {.thread = w->context_thread,
                                  .vm = w->context_vm,
                                  .kind = w->context_kind,
                                  .state = state};
  if (w->context_what == LJP_REC_MEM)
    c.type = cut;
  else
    c.cut = cut;
  enum ljp_status status = ljp_profile_context(p, &c, id);
  if (!status && state < LJP_CONTEXT_STATES && cut < LJP_CONTEXT_CUTS)
    w->context_of[state][cut] = *id + 1;
  return status;
}

static inline enum ljp_status find_context(struct ljp_profile *p, uint8_t state,
                                           uint8_t cut, uint32_t *id)
{
  const struct ljp_profile_work *w = p->work;
  if (LJP_LIKELY(state < LJP_CONTEXT_STATES && cut < LJP_CONTEXT_CUTS &&
                 w->context_of[state][cut])) {
    *id = w->context_of[state][cut] - 1;
    return LJP_OK;
  }
  return new_context(p, state, cut, id);
}

/* Where a stack is kept if it is; NULL: nowhere. */
static inline struct ljp_map_entry *entry_at(const struct ljp_profile_work *w,
                                             uint64_t stack)
{
  uint64_t low = stack & (LJP_EPOCH_MAX_NODES - 1);
  struct ljp_map_entry *page = w->map[low / LJP_MAP_PAGE];
  return page ? page + low % LJP_MAP_PAGE : NULL;
}

/* The row of a stack in a context. */
static inline enum ljp_status find_row(struct ljp_profile *p, uint64_t stack,
                                       uint32_t context, uint32_t *row)
{
  struct ljp_profile_work *w = p->work;
  struct ljp_map_entry *entry = entry_at(w, stack);
  enum ljp_status status;
  uint32_t node;
  if (LJP_LIKELY(entry)) {
    uint32_t at = entry->rows[context % LJP_MAP_ROWS];
    if (LJP_LIKELY(entry->id == stack && at &&
                   (!entry->epoch || entry->epoch == w->map_epoch) &&
                   p->rows[at - 1].context == context)) {
      *row = at - 1;
      return LJP_OK;
    }
  }
  if ((status = ljp_profile_stack(p, stack, &entry, &node)) ||
      (status = ljp_profile_row(p, node, context, row)))
    return status;
  if (entry && entry->leaf)
    entry->rows[context % LJP_MAP_ROWS] = *row + 1;
  return LJP_OK;
}

static inline void count_stack(struct ljp_profile *p, uint32_t row)
{
  uint32_t node = p->rows[row].node;
  if (LJP_UNLIKELY(node <= LJP_NODE_TOO_MANY)) {
    p->totals.no_stack += node == LJP_NODE_NO_STACK;
    p->totals.lost_stacks += node == LJP_NODE_LOST;
    p->totals.too_many += node == LJP_NODE_TOO_MANY;
  }
}

static inline bool time_wanted(const struct ljp_profile *p, uint64_t time_ns)
{
  if (LJP_LIKELY(!p->work->filters_time))
    return true;
  uint64_t at = ljp_profile_since(p, time_ns);
  return at >= p->options.from_ns &&
         (!p->options.to_ns || at < p->options.to_ns);
}

/* Counts samples at rows that have been found. */
static enum ljp_status count_rows(struct ljp_profile *p,
                                  const struct ljp_timed_sample *s,
                                  const uint32_t *context, uint32_t *row,
                                  size_t count)
{
  enum ljp_status status;
  for (size_t i = 0; i < count; i++) {
    if (LJP_UNLIKELY(row[i] == NO_ROW ||
                     p->rows[row[i]].context != context[i]) &&
        (status = find_row(p, s[i].sample.stack, context[i], &row[i])))
      return status;
    p->rows[row[i]].count++;
    p->rows[row[i]].weight += s[i].sample.weight;
    count_stack(p, row[i]);
  }
  for (size_t i = 0; p->options.points && i < count; i++)
    if ((status = ljp_profile_point(p, ljp_profile_since(p, s[i].time_ns),
                                    row[i], 1, s[i].sample.weight, false)))
      return status;
  return LJP_OK;
}

/* Counts samples that are wanted, in these contexts: each loop asks for what
** the next one needs. */
static enum ljp_status count_samples(struct ljp_profile *p,
                                     const struct ljp_timed_sample *s,
                                     const uint32_t *context, size_t count)
{
  const struct ljp_profile_work *w = p->work;
  const struct ljp_map_entry *entry[LJP_MANY_SAMPLES];
  uint32_t row[LJP_MANY_SAMPLES];
  for (size_t i = 0; i < count; i++) {
    entry[i] = entry_at(w, s[i].sample.stack);
    if (LJP_LIKELY(entry[i]))
      __builtin_prefetch(entry[i]);
  }
  for (size_t i = 0; i < count; i++) {
    const struct ljp_map_entry *e = entry[i];
    row[i] = NO_ROW;
    if (LJP_LIKELY(e && e->id == s[i].sample.stack &&
                   (!e->epoch || e->epoch == w->map_epoch))) {
      row[i] = e->rows[context[i] % LJP_MAP_ROWS] - 1;
      if (LJP_LIKELY(row[i] != NO_ROW))
        __builtin_prefetch(&p->rows[row[i]], 1);
    }
  }
  return count_rows(p, s, context, row, count);
}

/* Counts some of a block; those that are not wanted are taken out. */
static enum ljp_status take_samples(struct ljp_profile *p,
                                    const struct ljp_item *event,
                                    struct ljp_timed_sample *s, size_t count)
{
  struct ljp_profile_work *w = p->work;
  uint32_t context[LJP_MANY_SAMPLES];
  uint64_t last = 0;
  size_t n = 0;
  enum ljp_status status;
  for (size_t i = 0; i < count; i++) {
    if (LJP_UNLIKELY(!w->context_valid || w->context_vm_id != s[i].sample.vm ||
                     w->context_what != LJP_REC_SAMPLES) &&
        (status = begin_context(p, event, s[i].sample.vm, LJP_PRODUCER_CPU)))
      return status;
    if (s[i].time_ns > last)
      last = s[i].time_ns;
    if (LJP_UNLIKELY(!w->context_wanted || !time_wanted(p, s[i].time_ns))) {
      p->totals.filtered++;
      continue;
    }
    if ((status =
             find_context(p, s[i].sample.state, s[i].sample.cut, &context[n])))
      return status;
    p->totals.cut[s[i].sample.cut]++;
    if (LJP_UNLIKELY(n != i))
      s[n] = s[i];
    n++;
  }
  ljp_profile_see_time(p, last);
  return count_samples(p, s, context, n);
}

enum ljp_status ljp_profile_samples(struct ljp_profile *p,
                                    struct ljp_reader *reader,
                                    const struct ljp_item *event)
{
  struct ljp_timed_sample many[LJP_MANY_SAMPLES];
  enum ljp_status status;
  size_t n = 1;
  many[0] = (struct ljp_timed_sample){event->time_ns, event->u.sample};
  n += ljp_reader_samples(reader, many + 1, LJP_MANY_SAMPLES - 1);
  do {
    if ((status = take_samples(p, event, many, n)))
      return status;
    n = ljp_reader_samples(reader, many, LJP_MANY_SAMPLES);
  } while (n);
  return LJP_OK;
}

/* Asks for the places in memory that the events waiting will need, step by
** step: by now their slots and stacks have come. */
static void fetch_ahead(const struct ljp_profile *p, unsigned count)
{
  const struct ljp_profile_work *w = p->work;
  uint32_t at[LJP_WAITING_MEM]; /* Block + 1 of a free, row + 1 of others. */
  for (unsigned i = 0; i < count; i++) {
    const struct ljp_rec_mem *m = &w->waiting_mem[i].mem;
    const struct ljp_map_entry *e;
    at[i] = ljp_live_sooner(&w->live, m->address);
    if (m->op == LJP_MEM_FREE)
      continue;
    if (m->op == LJP_MEM_REALLOC)
      ljp_live_sooner(&w->live, m->old_address);
    e = entry_at(w, m->stack);
    at[i] = e ? e->rows[w->waiting_mem[i].context % LJP_MAP_ROWS] : 0;
    if (at[i])
      __builtin_prefetch(&p->rows[at[i] - 1], 1);
  }
  for (unsigned i = 0; i < count; i++)
    if (at[i]) {
      uint32_t memory = w->waiting_mem[i].mem.op == LJP_MEM_FREE
                            ? ljp_live_block(&w->live, at[i])->memory
                            : p->rows[at[i] - 1].memory;
      if (memory < p->memory_count)
        __builtin_prefetch(&p->memory[memory], 1);
    }
}

enum ljp_status ljp_profile_mem_waiting(struct ljp_profile *p)
{
  struct ljp_profile_work *w = p->work;
  unsigned count = w->waiting_mem_count;
  enum ljp_status status;
  w->waiting_mem_count = 0;
  fetch_ahead(p, count);
  for (unsigned i = 0; i < count; i++) {
    const struct ljp_waiting_mem *e = &w->waiting_mem[i];
    uint32_t row = 0;
    if (e->mem.op != LJP_MEM_FREE) { /* A free's own stack is not asked for. */
      if ((status = find_row(p, e->mem.stack, e->context, &row)))
        return status;
      if (e->wanted)
        count_stack(p, row);
    }
    if ((status = ljp_profile_mem(p, e, row)))
      return status;
  }
  return LJP_OK;
}

enum ljp_status ljp_profile_take_mem(struct ljp_profile *p,
                                     const struct ljp_item *event)
{
  const struct ljp_rec_mem *m = &event->u.mem;
  struct ljp_profile_work *w = p->work;
  enum ljp_status status;
  uint32_t context;
  if (LJP_UNLIKELY(!w->context_valid || w->context_vm_id != m->vm ||
                   w->context_what != LJP_REC_MEM) &&
      (status = begin_context(p, event, m->vm, LJP_PRODUCER_MEMORY)))
    return status;
  ljp_profile_see_time(p, event->time_ns);
  if ((status = find_context(p, m->state, m->type, &context)))
    return status;
  ljp_live_soon(&w->live, m->address);
  if (m->op == LJP_MEM_REALLOC)
    ljp_live_soon(&w->live, m->old_address);
  if (m->op != LJP_MEM_FREE) {
    const struct ljp_map_entry *entry = entry_at(w, m->stack);
    if (LJP_LIKELY(entry))
      __builtin_prefetch(entry);
  }
  w->waiting_mem[w->waiting_mem_count++] = (struct ljp_waiting_mem){
      .mem = *m,
      .time_ns = event->time_ns,
      .context = context,
      .wanted = w->context_wanted && time_wanted(p, event->time_ns)};
  return LJP_LIKELY(w->waiting_mem_count < LJP_WAITING_MEM)
             ? LJP_OK
             : ljp_profile_mem_waiting(p);
}
