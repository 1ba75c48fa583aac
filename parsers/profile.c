/*
** The pass over a stream. Samples and memory events are nearly all of it, so
** they find their row by the map of stacks, without a hash, when the same
** stack comes in the same context.
*/
#include "parsers/profile_work.h"

#include <stdio.h>
#include <string.h>

struct ljp_profile *ljp_profile_new(const struct ljp_profile_options *options)
{
  struct ljp_profile *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  if (options)
    p->options = *options;
  p->work = calloc(1, sizeof *p->work);
  if (p->work) {
    p->work->filters_time = p->options.from_ns || p->options.to_ns;
    p->work->map_epoch = 1;
    p->totals.missing_known = true;
    p->options.symbols.no_files |= p->options.no_symbols;
    p->symbols = ljp_symbols_new(&p->options.symbols);
    if (p->symbols && ljp_profile_tables(p) == LJP_OK)
      return p;
  }
  ljp_profile_free(p);
  return NULL;
}

void ljp_profile_free(struct ljp_profile *p)
{
  if (!p)
    return;
  struct ljp_profile_work *w = p->work;
  if (w) {
    ljp_strings_fini(&w->strings);
    ljp_index_fini(&w->frame_index);
    ljp_index_fini(&w->node_index);
    ljp_index_fini(&w->context_index);
    ljp_index_fini(&w->row_index);
    ljp_index_fini(&w->trace_index);
    for (size_t i = 0; i < LJP_MAP_PAGES; i++)
      free(w->map[i]);
    free(w->protos);
    ljp_live_fini(&w->live);
    for (uint32_t i = 0; i < w->notice_count; i++)
      free(w->notices[i]);
    free(w->notices);
    free(w);
  }
  ljp_symbols_free(p->symbols);
  free(p->frames);
  free(p->functions);
  free(p->nodes);
  free(p->contexts);
  free(p->rows);
  free(p->memory);
  free(p->estimates);
  free(p->modules);
  free(p->threads);
  free(p->vms);
  free(p->gc);
  free(p->marks);
  free(p->traces);
  free(p->trace_events);
  free(p->points);
  free(p);
}

struct ljp_str ljp_profile_str(const struct ljp_profile *p, uint32_t string)
{
  const struct ljp_strings *strings = &p->work->strings;
  return string < strings->count ? strings->list[string] : strings->list[0];
}

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
                                     const struct ljp_event *event, uint64_t vm,
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

static enum ljp_status count_waiting(struct ljp_profile *p)
{
  struct ljp_profile_work *w = p->work;
  unsigned count = w->waiting_count;
  enum ljp_status status;
  w->waiting_count = 0;
  for (unsigned i = 0; i < count; i++) {
    const struct ljp_waiting *s = &w->waiting[i];
    const struct ljp_map_entry *entry = entry_at(w, s->stack);
    uint32_t at = entry ? entry->rows[s->context % LJP_MAP_ROWS] : 0;
    if (at)
      __builtin_prefetch(&p->rows[at - 1], 1);
  }
  for (unsigned i = 0; i < count; i++) {
    struct ljp_waiting *s = &w->waiting[i];
    if ((status = find_row(p, s->stack, s->context, &s->row)))
      return status;
  }
  for (unsigned i = 0; i < count; i++) {
    const struct ljp_waiting *s = &w->waiting[i];
    p->rows[s->row].count++;
    p->rows[s->row].weight += s->weight;
    count_stack(p, s->row);
  }
  for (unsigned i = 0; p->options.points && i < count; i++) {
    const struct ljp_waiting *s = &w->waiting[i];
    if ((status = ljp_profile_point(p, ljp_profile_since(p, s->time_ns), s->row,
                                    1, s->weight, false)))
      return status;
  }
  return LJP_OK;
}

static inline enum ljp_status take_sample(struct ljp_profile *p,
                                          const struct ljp_event *event)
{
  const struct ljp_rec_sample *s = &event->u.sample;
  struct ljp_profile_work *w = p->work;
  enum ljp_status status;
  uint32_t context;
  if (LJP_UNLIKELY(!w->context_valid || w->context_vm_id != s->vm ||
                   w->context_what != LJP_REC_SAMPLES) &&
      (status = begin_context(p, event, s->vm, LJP_PRODUCER_CPU)))
    return status;
  ljp_profile_see_time(p, event->time_ns);
  if (!w->context_wanted || !time_wanted(p, event->time_ns)) {
    p->totals.filtered++;
    return LJP_OK;
  }
  if ((status = find_context(p, s->state, s->cut, &context)))
    return status;
  p->totals.cut[s->cut]++;
  w->waiting[w->waiting_count++] =
      (struct ljp_waiting){.stack = s->stack,
                           .weight = s->weight,
                           .time_ns = event->time_ns,
                           .context = context};
  return LJP_LIKELY(w->waiting_count < LJP_WAITING) ? LJP_OK : count_waiting(p);
}

static enum ljp_status count_waiting_mem(struct ljp_profile *p)
{
  struct ljp_profile_work *w = p->work;
  unsigned count = w->waiting_mem_count;
  enum ljp_status status;
  w->waiting_mem_count = 0;
  for (unsigned i = 0; i < count; i++)
    ljp_live_sooner(&w->live, w->waiting_mem[i].mem.address);
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

static inline enum ljp_status take_mem(struct ljp_profile *p,
                                       const struct ljp_event *event)
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
  w->waiting_mem[w->waiting_mem_count++] = (struct ljp_waiting_mem){
      .mem = *m,
      .time_ns = event->time_ns,
      .context = context,
      .wanted = w->context_wanted && time_wanted(p, event->time_ns)};
  return LJP_LIKELY(w->waiting_mem_count < LJP_WAITING_MEM)
             ? LJP_OK
             : count_waiting_mem(p);
}

/* A block begins: whose is it, and is this another session than before? */
static enum ljp_status take_block(struct ljp_profile *p,
                                  const struct ljp_block *block)
{
  struct ljp_profile_work *w = p->work;
  enum ljp_status status;
  w->context_valid = false;
  if (p->options.progress)
    p->options.progress(p->options.progress_ctx, block->offset);
  if (w->begun && block->head.stream == w->stream)
    return LJP_OK;
  if (!w->begun) {
    p->origin_ns = block->head.time_ns;
  } else {
    if ((status = ljp_profile_mem_end(p)))
      return status;
    w->source++;
    for (size_t i = 0; i < LJP_MAP_PAGES; i++) {
      free(w->map[i]);
      w->map[i] = NULL;
    }
  }
  w->begun = true;
  w->stream = block->head.stream;
  p->source_count = w->source + 1;
  return LJP_OK;
}

static void count_damage(struct ljp_profile *p, const struct ljp_reader *reader)
{
  const struct ljp_finish *f = &reader->finish;
  const struct ljp_tally *tally = &reader->tally;
  struct ljp_profile_totals *t = &p->totals;
  t->gaps += f->gaps;
  t->gap_bytes += f->gap_bytes;
  t->missing_blocks += f->missing_blocks;
  t->missing_known = t->missing_known && (f->missing_known || !f->gaps);
  t->bad_records += f->bad_records;
  t->unclosed += !f->clean;
  if (f->closed == LJP_CLOSED_END && f->status) {
    t->end_status = f->status;
    t->end_errno = f->error;
  }
  for (size_t i = 0; i < tally->loss_count; i++) {
    const struct ljp_tally_loss *loss = &tally->losses[i];
    if (loss->overrun) {
      t->overruns += loss->count;
      continue;
    }
    t->lost[loss->reason < LJP_LOSS_COUNT ? loss->reason : LJP_LOSS_COUNT] +=
        loss->count;
    t->lost_all += loss->count;
  }
  for (unsigned tag = 0; tag < LJP_TALLY_TAGS; tag++)
    t->swallowed += tally->swallowed[tag];
}

static enum ljp_status fail(struct ljp_profile *p, enum ljp_status status,
                            const char *why)
{
  snprintf(p->error, sizeof p->error, "%s", why);
  return status;
}

static enum ljp_status count_all_waiting(struct ljp_profile *p)
{
  enum ljp_status status = count_waiting(p);
  return status ? status : count_waiting_mem(p);
}

enum ljp_status ljp_profile_add(struct ljp_profile *p,
                                struct ljp_reader *reader)
{
  const struct ljp_event *event;
  enum ljp_status status;
  p->work->reader = reader;
  p->work->map_epoch++;
  p->work->context_valid = false;
  while (!(status = ljp_reader_next(reader, &event))) {
    if (LJP_LIKELY(event->what == LJP_REC_SAMPLES)) {
      if (!p->options.no_samples)
        status = take_sample(p, event);
    } else if (LJP_LIKELY(event->what == LJP_REC_MEM)) {
      if (!p->options.no_memory)
        status = take_mem(p, event);
    } else if (!(status = count_all_waiting(p))) {
      if (event->what == LJP_EVENT_FINISH)
        break;
      status = event->what == LJP_EVENT_BLOCK ? take_block(p, event->block)
                                              : ljp_profile_event(p, event);
    }
    if (LJP_UNLIKELY(status))
      return fail(p, status, ljp_status_text(status));
  }
  p->work->reader = NULL;
  if (status)
    return fail(p, status, reader->error);
  count_damage(p, reader);
  return LJP_OK;
}

enum ljp_status ljp_profile_finish(struct ljp_profile *p)
{
  enum ljp_status status;
  if ((status = ljp_profile_mem_end(p)) || (status = ljp_profile_shape(p)) ||
      (status = ljp_profile_notices(p)))
    return fail(p, status, ljp_status_text(status));
  return LJP_OK;
}

enum ljp_status ljp_profile_load(const char *path,
                                 const struct ljp_profile_options *options,
                                 struct ljp_profile **profile,
                                 char error[LJP_READER_ERROR_BYTES + 64])
{
  struct ljp_reader *reader = malloc(sizeof *reader);
  struct ljp_profile *p = ljp_profile_new(options);
  enum ljp_status status = LJP_ERR_MEM;
  *profile = NULL;
  snprintf(error, LJP_READER_ERROR_BYTES + 64, "%s", ljp_status_text(status));
  if (reader && p) {
    status = ljp_reader_open(reader, path);
    if (status) {
      snprintf(error, LJP_READER_ERROR_BYTES + 64, "%s", reader->error);
    } else {
      if (!(status = ljp_profile_add(p, reader)))
        status = ljp_profile_finish(p);
      if (status)
        snprintf(error, LJP_READER_ERROR_BYTES + 64, "%s", p->error);
      ljp_reader_fini(reader);
    }
  }
  free(reader);
  if (status)
    ljp_profile_free(p);
  else
    *profile = p;
  return status;
}
