/*
** Counts rare events by time.
*/
#include "tools/top/series.h"

#include <string.h>

#include "src/base/format.h"

#define SERIES_FIRST_TICK_NS UINT64_C(100000000)

void ljp_series_init(struct ljp_series *s)
{
  *s = (struct ljp_series){.tick_ns = SERIES_FIRST_TICK_NS};
}

static void series_add(struct ljp_series_tick *to,
                       const struct ljp_series_tick *from)
{
  if (from->heap_bytes)
    to->heap_bytes = from->heap_bytes;
  to->phases |= from->phases;
  to->cycles += from->cycles;
  to->traces += from->traces;
  to->aborts += from->aborts;
  to->flushes += from->flushes;
  to->blacklisted += from->blacklisted;
}

/* Two ticks become one. */
static void series_halve(struct ljp_series *s)
{
  for (uint32_t i = 0; i < s->count; i++) {
    struct ljp_series_tick tick = s->ticks[i];
    if (i % 2)
      series_add(&s->ticks[i / 2], &tick);
    else
      s->ticks[i / 2] = tick;
  }
  s->count = (s->count + 1) / 2;
  s->tick_ns *= 2;
}

/* The tick of a time. Times before the newest tick count for that one. */
static struct ljp_series_tick *series_at(struct ljp_series *s, uint64_t time_ns)
{
  if (!s->begun) {
    s->begun = true;
    s->origin_ns = time_ns;
  }
  uint64_t since = time_ns > s->origin_ns ? time_ns - s->origin_ns : 0;
  while (since / s->tick_ns >= LJP_SERIES_TICKS)
    series_halve(s);
  uint64_t tick = since / s->tick_ns;
  while (s->count <= tick)
    s->ticks[s->count++] =
        (struct ljp_series_tick){.heap_bytes = s->heap_bytes};
  return &s->ticks[s->count - 1];
}

static struct ljp_series_vm *series_vm(struct ljp_series *s, uint64_t id)
{
  for (uint32_t i = 0; i < s->vm_count; i++)
    if (s->vms[i].id == id)
      return &s->vms[i];
  if (s->vm_count == LJP_SERIES_VMS)
    return &s->vms[LJP_SERIES_VMS];
  s->vms[s->vm_count] = (struct ljp_series_vm){.id = id};
  return &s->vms[s->vm_count++];
}

static void series_take_gc(struct ljp_series *s, const struct ljp_rec_gc *gc)
{
  struct ljp_series_tick *tick = series_at(s, gc->time_ns);
  struct ljp_series_vm *vm = series_vm(s, gc->vm);
  bool closed = gc->phase == LJP_GC_CLOSED;
  s->heap_bytes -= vm->heap_bytes;
  vm->heap_bytes = closed ? 0 : gc->heap_bytes;
  s->heap_bytes += vm->heap_bytes;
  tick->heap_bytes = s->heap_bytes;
  if (s->heap_bytes)
    s->last_bytes = s->heap_bytes;
  if (vm->cycle && gc->cycle > vm->cycle)
    tick->cycles++;
  vm->cycle = gc->cycle;
  vm->phase = (uint8_t)gc->phase;
  if (gc->phase < 32)
    tick->phases |= UINT32_C(1) << gc->phase;
}

static void series_reason(struct ljp_series *s, struct ljp_str text)
{
  uint32_t len =
      text.len < LJP_SERIES_REASON_BYTES ? text.len : LJP_SERIES_REASON_BYTES;
  uint32_t i = 0;
  while (i < s->reason_count &&
         (s->reasons[i].text_len != len ||
          (len && memcmp(s->reasons[i].text, text.data, len) != 0)))
    i++;
  if (i == LJP_SERIES_REASONS) {
    s->more_reasons++;
    return;
  }
  if (i == s->reason_count) {
    struct ljp_series_reason *r = &s->reasons[s->reason_count++];
    r->text_len = len;
    if (len)
      memcpy(r->text, text.data, len);
  }
  s->reasons[i].count++;
}

void ljp_series_take(struct ljp_series *s, const struct ljp_item *item)
{
  if (item->what == LJP_REC_GC) {
    series_take_gc(s, &item->u.gc);
    return;
  }
  if (item->what != LJP_REC_TRACE_EVENT) {
    if (item->time_ns && item->what == LJP_ITEM_BLOCK)
      series_at(s, item->time_ns);
    return;
  }
  const struct ljp_rec_trace_event *e = &item->u.trace_event;
  struct ljp_series_tick *tick = series_at(s, e->time_ns);
  tick->traces += e->action == LJP_TRACE_STOP;
  tick->aborts += e->action == LJP_TRACE_ABORT;
  tick->flushes += e->action == LJP_TRACE_FLUSH;
  tick->blacklisted += e->action == LJP_TRACE_BLACKLIST;
  if (e->action == LJP_TRACE_ABORT)
    series_reason(s, e->reason);
}

struct ljp_series_tick ljp_series_sum(const struct ljp_series *s,
                                      uint64_t from_ns)
{
  struct ljp_series_tick sum = {0};
  for (uint32_t i = 0; i < s->count; i++)
    if ((i + 1) * s->tick_ns > from_ns)
      series_add(&sum, &s->ticks[i]);
  return sum;
}
