/*
** Events that are few: GC phases, marks, and what names the process. They are kept one by one, up to a limit.
*/
#include "parsers/profile/work.h"

#include <string.h>

/* Whether one of these events is kept; counts what is not. */
static bool keeps(struct ljp_profile *p, uint32_t count)
{
  if (count < LJP_PROFILE_MAX_EVENTS)
    return true;
  p->totals.dropped_events++;
  return false;
}

static enum ljp_status take_gc(struct ljp_profile *p,
                               const struct ljp_rec_gc *gc)
{
  struct ljp_profile_work *w = p->work;
  enum ljp_status status;
  uint32_t vm;
  if ((status = ljp_profile_vm(p, gc->vm, &vm)))
    return status;
  p->has_gc = true;
  while (vm >= w->live.cycle_room) {
    uint32_t room = w->live.cycle_room;
    if (!ljp_array_reserve(&w->live.cycles, w->live.cycle_room, &room,
                           sizeof *w->live.cycles))
      return LJP_ERR_MEM;
    memset(w->live.cycles + w->live.cycle_room, 0,
           (room - w->live.cycle_room) * sizeof *w->live.cycles);
    w->live.cycle_room = room;
  }
  w->live.cycles[vm] = (uint32_t)gc->cycle;
  struct ljp_profile_vm *v = &p->vms[vm];
  v->heap_last = gc->heap_bytes;
  if (!v->has_heap)
    v->heap_first = gc->heap_bytes;
  v->has_heap = true;
  if (!keeps(p, p->gc_count))
    return LJP_OK;
  if (!ljp_array_reserve(&p->gc, p->gc_count, &w->gc_room, sizeof *p->gc))
    return LJP_ERR_MEM;
  p->gc[p->gc_count++] =
      (struct ljp_profile_gc){.time_ns = ljp_profile_since(p, gc->time_ns),
                              .heap_bytes = gc->heap_bytes,
                              .vm = vm,
                              .phase = (uint8_t)gc->phase};
  return LJP_OK;
}

static enum ljp_status take_mark(struct ljp_profile *p,
                                 const struct ljp_rec_mark *mark)
{
  struct ljp_profile_work *w = p->work;
  struct ljp_profile_mark m = {.time_ns = ljp_profile_since(p, mark->time_ns),
                               .value = mark->value,
                               .live_objects = w->live.objects,
                               .live_bytes = w->live.bytes,
                               .estimate = w->live.estimate};
  enum ljp_status status;
  if (!keeps(p, p->mark_count))
    return LJP_OK;
  if ((status = ljp_profile_thread(p, mark->thread, &m.thread)) ||
      (status = ljp_profile_vm(p, mark->vm, &m.vm)) ||
      (status = ljp_profile_string(p, mark->text, &m.text)))
    return status;
  if (!ljp_array_reserve(&p->marks, p->mark_count, &w->mark_room,
                         sizeof *p->marks))
    return LJP_ERR_MEM;
  p->marks[p->mark_count++] = m;
  if (p->options.since && !w->since_seen &&
      mark->text.len == strlen(p->options.since) &&
      memcmp(mark->text.data, p->options.since, mark->text.len) == 0) {
    w->since_seen = true;
    w->live.since_mark = p->mark_count;
  }
  return LJP_OK;
}

static enum ljp_status take_process(struct ljp_profile *p,
                                    const struct ljp_rec_process *process)
{
  enum ljp_status status;
  if (p->pid)
    return LJP_OK;
  p->pid = process->pid;
  if (process->anchor_wall_ns)
    p->origin_wall_ns =
        process->anchor_wall_ns - (process->anchor_mono_ns - p->origin_ns);
  if ((status = ljp_profile_string(p, process->executable, &p->executable)))
    return status;
  return ljp_profile_string(p, process->command_line, &p->command_line);
}

/* What the stream itself says about an address. */
static enum ljp_status take_symbol(struct ljp_profile *p,
                                   const struct ljp_rec_symbol *s)
{
  uint32_t module;
  enum ljp_status status = ljp_profile_module(p, s->module, &module);
  if (status || !module)
    return status;
  status = ljp_symbols_embedded(
      p->symbols, p->modules[module].symbols, s->address, s->level,
      s->line < UINT32_MAX ? (uint32_t)s->line : 0, s->function, s->file);
  return status == LJP_ERR_LIMIT ? LJP_OK : status;
}

enum ljp_status ljp_profile_event(struct ljp_profile *p,
                                  const struct ljp_item *event)
{
  struct ljp_profile_work *w = p->work;
  if (event->time_ns && event->what < LJP_ITEM_BLOCK)
    ljp_profile_see_time(p, event->time_ns);
  switch (event->what) {
  case LJP_REC_EPOCH:
    w->map_epoch++;
    w->context_valid = false;
    return LJP_OK;
  case LJP_REC_PROCESS:
    return take_process(p, &event->u.process);
  case LJP_REC_PRODUCER:
  case LJP_REC_THREAD:
  case LJP_REC_VM:
    w->context_valid = false;
    return LJP_OK;
  case LJP_REC_SYMBOL:
    return take_symbol(p, &event->u.symbol);
  case LJP_REC_GC:
    return take_gc(p, &event->u.gc);
  case LJP_REC_MARK:
    return take_mark(p, &event->u.mark);
  case LJP_REC_TRACE:
    return ljp_profile_trace_defined(p, &event->u.trace);
  case LJP_REC_TRACE_EVENT:
    return ljp_profile_trace_event(p, &event->u.trace_event);
  case LJP_REC_INTERVAL:
    p->totals.throttled += event->u.interval.why == LJP_INTERVAL_THROTTLE;
    return LJP_OK;
  }
  return LJP_OK;
}
