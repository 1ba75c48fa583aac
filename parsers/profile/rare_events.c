/*
** Rare events: GC phases, marks and notes, which are kept one by one up to a
** limit, and definitions that change what the next events mean. One thread a
** profile.
*/
#include "parsers/profile/pass.h"

#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/context.h"
#include "parsers/profile/gc_cost.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/rows.h"
#include "parsers/profile/traces.h"
#include "src/base/assert.h"

/* Whether there is room for one more in an array of `count` such events;
** counts it as dropped otherwise. */
static bool events_keep(struct ljp_profile *p, uint32_t count)
{
  if (count < LJP_PROFILE_MAX_EVENTS)
    return true;
  p->totals.dropped_events++;
  return false;
}

static enum ljp_status events_take_gc(struct ljp_profile *p,
                                      const struct ljp_rec_gc *gc)
{
  struct ljp_profile_pass *pass = p->pass;
  enum ljp_status status;
  uint32_t vm;
  if ((status = ljp_profile_find_vm(p, gc->vm, &vm)))
    return status;
  p->has_gc = true;
  if ((status = ljp_profile_take_heap(p, gc)))
    return status;
  if (p->options.gc_cost && (status = ljp_gc_cost_phase(p, vm, gc)))
    return status;
  if (!events_keep(p, p->gc_count))
    return LJP_OK;
  if (!ljp_array_reserve(&p->gc, p->gc_count, &pass->gc_room, sizeof *p->gc))
    return LJP_ERR_MEM;
  p->gc[p->gc_count++] =
      (struct ljp_profile_gc){.time_ns = ljp_profile_since(p, gc->time_ns),
                              .heap_bytes = gc->heap_bytes,
                              .vm = vm,
                              .phase = (uint8_t)gc->phase};
  return LJP_OK;
}

/* A sampled session that has taken no sample has allocated something all the same. */
static void events_take_producer(struct ljp_profile *p,
                                 const struct ljp_rec_producer *producer)
{
  ljp_context_see_producer(p, producer->kind);
  if (producer->kind != LJP_PRODUCER_MEMORY || !producer->interval)
    return;
  p->sampled_memory = true;
  if (producer->interval > p->asked_bytes)
    p->asked_bytes = producer->interval;
  if (producer->interval > p->sample_bytes)
    p->sample_bytes = producer->interval;
}

static void events_take_interval(struct ljp_profile *p,
                                 const struct ljp_item *item)
{
  const struct ljp_rec_interval *now = &item->u.interval;
  const struct ljp_rec_producer *producer =
      ljp_model_producer(&p->pass->reader->model, item->block->head.producer);
  p->totals.throttled += now->why == LJP_INTERVAL_THROTTLE;
  if (producer && producer->kind == LJP_PRODUCER_MEMORY &&
      now->interval > p->sample_bytes)
    p->sample_bytes = now->interval;
}

static enum ljp_status events_take_mark(struct ljp_profile *p,
                                        const struct ljp_rec_mark *mark)
{
  struct ljp_profile_pass *pass = p->pass;
  struct ljp_profile_mark m = {.time_ns = ljp_profile_since(p, mark->time_ns),
                               .value = mark->value,
                               .live_objects = pass->memory.objects,
                               .live_bytes = pass->memory.bytes,
                               .estimate = pass->memory.estimate};
  enum ljp_status status;
  if (!events_keep(p, p->mark_count))
    return LJP_OK;
  if ((status = ljp_profile_find_thread(p, mark->thread, &m.thread)) ||
      (status = ljp_profile_find_vm(p, mark->vm, &m.vm)) ||
      (status = ljp_profile_intern_string(p, mark->text, &m.text)))
    return status;
  if (!ljp_array_reserve(&p->marks, p->mark_count, &pass->mark_room,
                         sizeof *p->marks))
    return LJP_ERR_MEM;
  p->marks[p->mark_count++] = m;
  if (p->options.since && !pass->since_seen &&
      mark->text.len == strlen(p->options.since) &&
      memcmp(mark->text.data, p->options.since, mark->text.len) == 0) {
    pass->since_seen = true;
    pass->memory.since_mark = p->mark_count;
  }
  return LJP_OK;
}

static enum ljp_status
events_take_process(struct ljp_profile *p,
                    const struct ljp_rec_process *process)
{
  enum ljp_status status;
  if (p->pid)
    return LJP_OK;
  p->pid = process->pid;
  if (process->anchor_wall_ns)
    p->origin_wall_ns =
        process->anchor_wall_ns - (process->anchor_mono_ns - p->origin_ns);
  if ((status =
           ljp_profile_intern_string(p, process->executable, &p->executable)))
    return status;
  return ljp_profile_intern_string(p, process->command_line, &p->command_line);
}

/* An embedded symbol. */
static enum ljp_status events_take_symbol(struct ljp_profile *p,
                                          const struct ljp_rec_symbol *s)
{
  uint32_t module;
  enum ljp_status status = ljp_profile_find_module(p, s->module, &module);
  if (status || !module)
    return status;
  status = ljp_symbols_embedded(
      p->symbols, p->modules[module].symbols, s->address, s->level,
      s->line < UINT32_MAX ? (uint32_t)s->line : 0, s->function, s->file);
  return status == LJP_ERR_LIMIT ? LJP_OK : status;
}

/* Warnings and errors become notices, each text once. */
static enum ljp_status events_take_note(struct ljp_profile *p,
                                        const struct ljp_rec_note *note)
{
  struct ljp_profile_pass *pass = p->pass;
  uint32_t text;
  if (note->severity < LJP_NOTE_WARNING)
    return LJP_OK;
  enum ljp_status status = ljp_profile_intern_string(p, note->text, &text);
  if (status)
    return status;
  for (uint32_t i = 0; i < pass->note_count; i++)
    if (pass->notes[i] == text)
      return LJP_OK;
  if (pass->note_count == LJP_PROFILE_MAX_NOTES)
    pass->more_notes++;
  else
    pass->notes[pass->note_count++] = text;
  return LJP_OK;
}

/* CPU time of the process, or time that was not sampled. */
static enum ljp_status events_take_time(struct ljp_profile *p,
                                        const struct ljp_item *item)
{
  struct ljp_profile_pass *pass = p->pass;
  uint32_t thread = 0;
  enum ljp_status status = LJP_OK;
  if (p->options.no_samples || p->options.labels.count)
    return LJP_OK; /* Such time has no labels. */
  if (item->what == LJP_REC_CPU_TIME)
    pass->told_cpu_ns = p->totals.cpu_ns;
  if (item->what == LJP_REC_UNSAMPLED)
    status = ljp_profile_find_thread(p, item->u.unsampled.thread, &thread);
  if (status || !ljp_context_thread_wanted(p, thread) ||
      !ljp_profile_time_wanted(p, item->time_ns))
    return status;
  return ljp_balance_take(&p->balance, &pass->reader->model, item,
                          pass->source);
}

enum ljp_status ljp_profile_take_event(struct ljp_profile *p,
                                       const struct ljp_item *item)
{
  struct ljp_profile_pass *pass = p->pass;
  uint32_t labels;
  ljp_assert(!pass->batch.count); /* Events are counted in their order. */
  if (item->time_ns && item->what < LJP_ITEM_BLOCK)
    ljp_profile_see_time(p, item->time_ns);
  switch (item->what) {
  case LJP_REC_EPOCH:
    pass->epoch++;
    if (!pass->placed && item->u.epoch.segment) {
      p->totals.later_sessions++;
      if (!p->totals.later)
        p->totals.later = item->u.epoch.segment;
    }
    pass->placed += pass->placed < 2;
    pass->context.valid = false;
    return ljp_balance_take(&p->balance, &pass->reader->model, item,
                            pass->source);
  case LJP_REC_PROCESS:
    return events_take_process(p, &item->u.process);
  case LJP_REC_PRODUCER:
    events_take_producer(p, &item->u.producer);
    pass->context.valid = false;
    return LJP_OK;
  case LJP_REC_THREAD:
  case LJP_REC_VM:
    pass->context.valid = false;
    return LJP_OK;
  case LJP_REC_LABELS:
    return ljp_labels_define(p, &item->u.labels, &labels);
  case LJP_REC_SYMBOL:
    return events_take_symbol(p, &item->u.symbol);
  case LJP_REC_GC:
    return events_take_gc(p, &item->u.gc);
  case LJP_REC_HELD:
    return p->options.no_memory ? LJP_OK
                                : ljp_profile_take_held(p, &item->u.held);
  case LJP_REC_LIVE:
    return p->options.no_memory ? LJP_OK : ljp_profile_take_live(p, item);
  case LJP_REC_HEAP_MOMENT:
    return ljp_profile_take_moment(p, &item->u.heap_moment);
  case LJP_REC_MARK:
    return events_take_mark(p, &item->u.mark);
  case LJP_REC_NOTE:
    return events_take_note(p, &item->u.note);
  case LJP_REC_UNSAMPLED: /* also of a session that has taken no sample */
    ljp_context_see_producer(p, item->u.unsampled.kind);
    return events_take_time(p, item);
  case LJP_REC_CPU_TIME:
    return events_take_time(p, item);
  case LJP_REC_TRACE:
    return ljp_profile_define_trace(p, &item->u.trace);
  case LJP_REC_TRACE_EVENT:
    return ljp_profile_take_trace_event(p, &item->u.trace_event);
  case LJP_REC_INTERVAL:
    events_take_interval(p, item);
    return LJP_OK;
  }
  return LJP_OK;
}
