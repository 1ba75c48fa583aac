/*
** Traces: a record for each piece of compiled code, and the map by which a
** handler finds it. traces.h has the picture, doc/rfc/0004-traces.md the rules.
**
** The hooks run on the VM's own thread, where a handler may interrupt them at
** any instruction; ljp_guest_trace() runs on a writer thread. What both use (the
** table by id, the queue of records that wait) is under one lock; the map is
** the VM's own.
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_debug.h"
#include "lj_jit.h"
#include "lj_trace.h"
#include "lj_dispatch.h"

#include "src/luajit/frames.h"
#include "src/luajit/vm/guest_priv.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/traces/traces.h"

static uint64_t last_id;
static struct ljp_trace **by_id;
static uint32_t by_id_slots, by_id_count;
static struct ljp_trace *waiting_first, *waiting_last;
static uint32_t waiting_count, holds;
static struct ljp_guest_jit_counts counts;

/* -- Records by id; under the lock ---------------------------------------------
 */

static void grow_by_id(void)
{
  uint32_t slots = by_id_slots ? by_id_slots * 2 : 256;
  struct ljp_trace **fresh = calloc(slots, sizeof *fresh);
  if (!fresh)
    return; /* longer chains, nothing worse */
  for (uint32_t i = 0; i < by_id_slots; i++) {
    for (struct ljp_trace *t = by_id[i], *next; t; t = next) {
      next = t->next_by_id;
      t->next_by_id = fresh[t->id & (slots - 1)];
      fresh[t->id & (slots - 1)] = t;
    }
  }
  free(by_id);
  by_id = fresh;
  by_id_slots = slots;
}

static bool enter(struct ljp_trace *trace)
{
  if (by_id_count >= by_id_slots)
    grow_by_id();
  if (!by_id_slots)
    return false;
  trace->id = ++last_id;
  struct ljp_trace **slot = &by_id[trace->id & (by_id_slots - 1)];
  trace->next_by_id = *slot;
  *slot = trace;
  by_id_count++;
  counts.made++;
  counts.alive++;
  counts.marks += trace->marks_count;
  counts.marks_cut += trace->marks_cut;
  counts.truncated += trace->truncated;
  return true;
}

static void forget(struct ljp_trace *trace)
{
  struct ljp_trace **at = &by_id[trace->id & (by_id_slots - 1)];
  while (*at != trace)
    at = &(*at)->next_by_id;
  *at = trace->next_by_id;
  by_id_count--;
  ljp_trace_free(trace);
}

/* The record in memory of its own size. */
static struct ljp_trace *without_marks(struct ljp_trace *trace)
{
  bool marked = trace->marks;
  trace->marks = NULL;
  struct ljp_trace *small = marked ? ljp_trace_new(0) : NULL;
  if (!small)
    return trace;
  uint32_t pool_bytes = small->pool_bytes;
  struct ljp_trace **at = &by_id[trace->id & (by_id_slots - 1)];
  while (*at != trace)
    at = &(*at)->next_by_id;
  *small = *trace;
  small->pool_bytes = pool_bytes;
  *at = small;
  ljp_trace_free(trace);
  return small;
}

static void forget_first_waiting(void)
{
  struct ljp_trace *trace = waiting_first;
  waiting_first = trace->next_waiting;
  if (!waiting_first)
    waiting_last = NULL;
  waiting_count--;
  forget(trace);
}

/* Its code is gone, nothing leads a handler to it any more. */
static void retire(struct ljp_trace *trace)
{
  ljp_marks_gone(trace->marks);
  trace->object = NULL;
  counts.alive--;
  if (!holds) {
    forget(trace);
    return;
  }
  trace = without_marks(trace);
  trace->next_waiting = NULL;
  if (waiting_last)
    waiting_last->next_waiting = trace;
  else
    waiting_first = trace;
  waiting_last = trace;
  /* The writer asks when it reads that the trace was made, which was long
  ** ago. */
  if (++waiting_count > LJP_TRACES_WAITING)
    forget_first_waiting();
}

void ljp_guest_traces_hold(void)
{
  ljp_lock(LJP_LOCK_TRACES);
  holds++;
  ljp_unlock(LJP_LOCK_TRACES);
}

void ljp_guest_traces_release(void)
{
  ljp_lock(LJP_LOCK_TRACES);
  if (--holds == 0)
    while (waiting_first)
      forget_first_waiting();
  ljp_unlock(LJP_LOCK_TRACES);
}

static const char *const link_names[] = {
    "none",           "root",        "loop",   "tail recursion", "up recursion",
    "down recursion", "interpreter", "return", "stitch"};

bool ljp_traces_with(uint64_t id,
                     void (*use)(const struct ljp_trace *trace, void *ctx),
                     void *ctx)
{
  ljp_lock(LJP_LOCK_TRACES);
  const struct ljp_trace *t =
      by_id_slots ? by_id[id & (by_id_slots - 1)] : NULL;
  while (t && t->id != id)
    t = t->next_by_id;
  if (t)
    use(t, ctx);
  ljp_unlock(LJP_LOCK_TRACES);
  return t != NULL;
}

static void describe(const struct ljp_trace *t, void *ctx)
{
  *(struct ljp_guest_trace *)ctx = (struct ljp_guest_trace){
      .id = t->id,
      .vm = t->vm,
      .number = t->number,
      .parent = t->parent,
      .parent_exit = t->parent_exit,
      .root = t->root,
      .link = t->link,
      .link_type = t->link_type < sizeof link_names / sizeof *link_names
                       ? link_names[t->link_type]
                       : "?",
      .place_ref = t->place_ref,
      .place_line = t->place_line,
      .newest = t->newest,
      .code = t->code,
      .code_bytes = t->code_bytes,
      .ir_count = t->ir_count,
      .snapshots = t->snapshots,
      .marks = t->marks_count,
      .marks_cut = t->marks_cut,
      .truncated = t->truncated};
}

bool ljp_guest_trace(uint64_t id, struct ljp_guest_trace *out)
{
  if (!ljp_traces_with(id, describe, out))
    return false;
  /* That of code which the collector has not come to yet may be freed, and its
  ** reference in use again. */
  if (!ljp_protos_stand(out->place_ref, out->newest))
    out->place_ref = out->place_line = 0;
  return true;
}

void ljp_guest_jit_counts(struct ljp_guest_jit_counts *out)
{
  ljp_lock(LJP_LOCK_TRACES);
  *out = counts;
  out->marks_bytes = ljp_marks_bytes();
  out->record_bytes = (uint64_t)by_id_count * sizeof(struct ljp_trace);
  ljp_unlock(LJP_LOCK_TRACES);
}

/* -- Those alive, by number ------------------------------------------------------ */

static uint64_t id_of(const struct ljp_jit *jit, TraceNo number)
{
  const struct ljp_trace *trace =
      number < jit->numbers ? jit->by_number[number] : NULL;
  return trace ? trace->id : 0;
}

static bool take_number(struct ljp_jit *jit, struct ljp_trace *trace)
{
  if (LJP_UNLIKELY(trace->number >= jit->numbers)) {
    uint32_t numbers = trace->number * 2 + 64;
    struct ljp_trace **fresh = realloc(jit->by_number, numbers * sizeof *fresh);
    if (!fresh)
      return false;
    memset(fresh + jit->numbers, 0, (numbers - jit->numbers) * sizeof *fresh);
    jit->by_number = fresh;
    jit->numbers = numbers;
  }
  jit->by_number[trace->number] = trace;
  return true;
}

static void forget_number(struct ljp_jit *jit, const struct ljp_trace *trace)
{
  if (trace->number < jit->numbers && jit->by_number[trace->number] == trace)
    jit->by_number[trace->number] = NULL;
}

/* -- Code comes and goes --------------------------------------------------------- */

/* Takes all code away; under no lock. */
static void drop_map(struct ljp_jit *jit)
{
  atomic_fetch_add_explicit(&ljp_traces_changed, 1, memory_order_release);
  struct ljp_code_map *map =
      atomic_load_explicit(&jit->map, memory_order_relaxed);
  if (!map)
    return;
  jit->area = NULL;
  atomic_store_explicit(&jit->map, NULL, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  ljp_lock(LJP_LOCK_TRACES);
  for (uint32_t i = 0; i < map->count; i++) {
    struct ljp_code_ranges *ranges = map->area[i].ranges;
    for (uint32_t k = 0; ranges && k < ranges->count; k++)
      if (ranges->range[k].trace) {
        forget_number(jit, ranges->range[k].trace);
        retire(ranges->range[k].trace);
      }
    free(ranges);
  }
  ljp_unlock(LJP_LOCK_TRACES);
  free(map);
}

/* -- Events --------------------------------------------------------------------- */

static void place(GCproto *pt, const BCIns *pc, uint32_t *ref, uint32_t *line)
{
  *ref = pt->unused_gc64;
  *line = 0;
  if (pc >= proto_bc(pt) && pc < proto_bc(pt) + pt->sizebc)
    *line = (uint32_t)lj_debug_line(pt, proto_bcpos(pt, pc));
}

/* The exit that is being compiled, or (exit 0) the trace that is continued by
** stitching. */
static void continues(const struct ljp_jit *jit, const jit_State *J,
                      uint64_t *parent, uint32_t *parent_exit)
{
  *parent = id_of(jit, J->parent ? J->parent : J->exitno);
  *parent_exit = J->parent ? J->exitno : 0;
}

static void tell(const struct ljp_vm *vm, jit_State *J,
                 struct ljp_guest_trace_event *event)
{
  event->vm = vm->number;
  event->L = J->L;
  ljp_guest_tell_trace(event);
}

/* -- Hooks ------------------------------------------------------------------- */

void ljp_hook_trace_start(jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  if (!vm)
    return;
  if (!vm->jit)
    vm->jit = calloc(1, sizeof *vm->jit);
  if (!vm->jit)
    return;
  ljp_marks_begin(vm->jit, J);
  if (ljp_guest_wants_traces()) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_START};
    place(J->pt, J->pc, &event.place_ref, &event.place_line);
    continues(vm->jit, J, &event.parent, &event.parent_exit);
    tell(vm, J, &event);
  }
}

void ljp_hook_trace_stop(jit_State *J, GCtrace *T)
{
  atomic_fetch_add_explicit(&ljp_traces_changed, 1, memory_order_release);
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  struct ljp_jit *jit = vm ? vm->jit : NULL;
  if (!jit)
    return;
  struct ljp_marks head;
  size_t bytes = ljp_marks_measure(jit, J, &head);
  uint64_t parent;
  uint32_t parent_exit, place_ref, place_line;
  continues(jit, J, &parent, &parent_exit);
  place(&gcref(T->startpt)->pt, mref(T->startpc, const BCIns), &place_ref,
        &place_line);
  ljp_lock(LJP_LOCK_TRACES);
  struct ljp_trace *trace = ljp_trace_new(bytes);
  if (!trace) {
    counts.marks_cut += ljp_marks_count(jit, &head) + jit->cut;
    ljp_unlock(LJP_LOCK_TRACES);
    return; /* its code is shown by snapshots */
  }
  /* One by one: to clear all of it before is a tenth of this hook. */
  trace->object = T;
  trace->code = (uint64_t)(uintptr_t)T->mcode;
  trace->code_bytes = T->szmcode;
  trace->place_line = place_line;
  trace->place_ref = place_ref;
  trace->marks = NULL;
  trace->parent = parent;
  trace->root = id_of(jit, T->root);
  trace->vm = vm->number;
  trace->number = T->traceno;
  trace->parent_exit = parent_exit;
  trace->ir_count = T->nins - REF_FIRST;
  trace->marks_count = ljp_marks_count(jit, &head);
  trace->marks_cut = jit->cut;
  trace->snapshots = T->nsnap;
  trace->newest = ljp_protos_newest();
  trace->link_type = T->linktype;
  trace->truncated = jit->full;
  if (bytes) {
    trace->marks = (struct ljp_marks *)(void *)(trace + 1);
    ljp_marks_take(jit, &head, trace->marks);
  }
  bool entered = enter(trace);
  if (entered) {
    trace->link = T->link == T->traceno ? trace->id : id_of(jit, T->link);
  } else {
    counts.marks_cut += trace->marks_count + trace->marks_cut;
    ljp_marks_gone(trace->marks);
    ljp_trace_free(trace);
  }
  ljp_unlock(LJP_LOCK_TRACES);
  if (!entered)
    return;
  if (!take_number(jit, trace) || !ljp_map_add(jit, J, trace)) {
    forget_number(jit, trace);
    ljp_lock(LJP_LOCK_TRACES);
    counts.marks_cut += trace->marks_count;
    retire(trace);
    ljp_unlock(LJP_LOCK_TRACES);
    return;
  }
  if (ljp_guest_wants_traces()) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_STOP,
                                          .trace = trace->id,
                                          .parent = trace->parent,
                                          .parent_exit = trace->parent_exit,
                                          .place_ref = trace->place_ref,
                                          .place_line = trace->place_line};
    tell(vm, J, &event);
  }
}

void ljp_hook_trace_abort(jit_State *J, uint32_t error)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  if (!vm || !vm->jit)
    return;
  if (!ljp_guest_wants_traces())
    return;
  char text[LJP_TRACE_REASON_BYTES];
  struct ljp_guest_trace_event event = {
      .what = LJP_TRACE_ABORT, .reason = error, .text = text};
  ljp_trace_reason(J, error, text, sizeof text);
  continues(vm->jit, J, &event.parent, &event.parent_exit);
  place(&gcref(J->cur.startpt)->pt, mref(J->cur.startpc, const BCIns),
        &event.place_ref, &event.place_line);
  tell(vm, J, &event);
}

void ljp_hook_trace_blacklist(jit_State *J, GCproto *pt, BCIns *pc)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  if (!vm || !ljp_guest_wants_traces())
    return;
  struct ljp_guest_trace_event event = {.what = LJP_TRACE_BLACKLIST};
  place(pt, pc, &event.place_ref, &event.place_line);
  tell(vm, J, &event);
}

/* A root trace is no longer entered; its code stays. */
void ljp_hook_trace_unlink(jit_State *J, GCtrace *T)
{
  struct ljp_vm *vm = ljp_guest_wants_traces() ? ljp_vm_at(J2GG(J)->ljp) : NULL;
  if (!vm || !vm->jit)
    return;
  struct ljp_guest_trace_event event = {.what = LJP_TRACE_FLUSH,
                                        .trace = id_of(vm->jit, T->traceno)};
  if (event.trace) /* else all are being flushed */
    tell(vm, J, &event);
}

void ljp_hook_trace_flush(jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  if (!vm || !vm->jit)
    return;
  drop_map(vm->jit);
  if (ljp_guest_wants_traces()) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_FLUSH};
    tell(vm, J, &event);
  }
}

void ljp_hook_trace_free(jit_State *J, GCtrace *T)
{
  atomic_fetch_add_explicit(&ljp_traces_changed, 1, memory_order_release);
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  struct ljp_jit *jit = vm ? vm->jit : NULL;
  struct ljp_trace *trace =
      jit && T->traceno < jit->numbers ? jit->by_number[T->traceno] : NULL;
  if (!trace || trace->object != T)
    return;
  uint64_t id = trace->id;
  ljp_map_remove(jit, trace);
  forget_number(jit, trace);
  atomic_signal_fence(memory_order_seq_cst);
  ljp_lock(LJP_LOCK_TRACES);
  retire(trace);
  ljp_unlock(LJP_LOCK_TRACES);
  /* With its VM thousands may go, of which that tells enough. */
  if (ljp_guest_wants_traces() && !vm->closing) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_FREE, .trace = id};
    tell(vm, J, &event);
  }
}

void ljp_traces_drop(struct ljp_vm *vm)
{
  struct ljp_jit *jit = vm->jit;
  if (!jit)
    return;
  drop_map(jit);
  jit->next_shift = NULL;
}

void ljp_guest_traces_each(void (*visit)(void *ctx, uint64_t id), void *ctx)
{
  ljp_lock(LJP_LOCK_TRACES);
  for (uint32_t i = 0; i < by_id_slots; i++)
    for (const struct ljp_trace *t = by_id[i]; t; t = t->next_by_id)
      if (t->object)
        visit(ctx, t->id);
  ljp_unlock(LJP_LOCK_TRACES);
}
