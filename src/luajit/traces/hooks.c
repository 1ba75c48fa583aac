/*
** Hooks of traces: what patch 0006 calls, on the VM's own thread, where a
** handler may interrupt them at any instruction. They keep the table of traces,
** the VM's map of code (trace.h has the picture) and the traces by LuaJIT's
** numbers, and tell the profilers' listener.
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_debug.h"
#include "lj_jit.h"
#include "lj_trace.h"

#include "src/base/assert.h"
#include "src/luajit/frames.h"
#include "src/luajit/functions/prototypes.h"
#include "src/luajit/traces/trace.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vm_of.h"

static void (*_Atomic hook_listener)(const struct ljp_guest_trace_event *event);

void ljp_guest_listen_traces(
    void (*listener)(const struct ljp_guest_trace_event *event))
{
  atomic_store(&hook_listener, listener);
}

/* -- Traces alive, by number ----------------------------------------------- */

static uint64_t jit_id_of(const struct ljp_jit *jit, TraceNo number)
{
  const struct ljp_trace *trace =
      number < jit->numbers ? jit->by_number[number] : NULL;
  return trace ? trace->id : 0;
}

static bool jit_take_number(struct ljp_jit *jit, struct ljp_trace *trace)
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

static void jit_forget_number(struct ljp_jit *jit,
                              const struct ljp_trace *trace)
{
  if (trace->number < jit->numbers && jit->by_number[trace->number] == trace)
    jit->by_number[trace->number] = NULL;
}

/* -- Code comes and goes --------------------------------------------------- */

/* Forgets all code. The caller holds no lock. */
static void jit_drop_map(struct ljp_jit *jit)
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
        jit_forget_number(jit, ranges->range[k].trace);
        ljp_traces_retire(ranges->range[k].trace);
      }
    free(ranges);
  }
  ljp_unlock(LJP_LOCK_TRACES);
  free(map);
}

/* -- Events ---------------------------------------------------------------- */

static void hook_place(GCproto *pt, const BCIns *pc, uint32_t *ref,
                       uint32_t *line)
{
  *ref = pt->unused_gc64;
  *line = 0;
  if (pc >= proto_bc(pt) && pc < proto_bc(pt) + pt->sizebc)
    *line = (uint32_t)lj_debug_line(pt, proto_bcpos(pt, pc));
}

/* The trace and exit at which the new trace begins; exit 0: it continues the
** trace by stitching. */
static void hook_parent(const struct ljp_jit *jit, const jit_State *J,
                        uint64_t *parent, uint32_t *parent_exit)
{
  *parent = jit_id_of(jit, J->parent ? J->parent : J->exitno);
  *parent_exit = J->parent ? J->exitno : 0;
}

/* Checked before an event is built, because there is usually no listener. */
static inline bool hook_wanted(void)
{
  return atomic_load_explicit(&hook_listener, memory_order_relaxed);
}

static void hook_tell(const struct ljp_vm *vm, jit_State *J,
                      struct ljp_guest_trace_event *event)
{
  void (*listen)(const struct ljp_guest_trace_event *) =
      atomic_load(&hook_listener);
  event->vm = vm->number;
  event->L = J->L;
  if (listen)
    listen(event);
}

/* -- Hooks ----------------------------------------------------------------- */

/* A VM's first trace starts, or a listener wants to know. */
__attribute__((noinline)) static void hook_start(struct ljp_vm *vm,
                                                 jit_State *J)
{
  if (!vm->jit)
    vm->jit = calloc(1, sizeof *vm->jit);
  if (!vm->jit)
    return;
  ljp_markers_begin(vm->jit, J);
  if (hook_wanted()) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_START};
    hook_place(J->pt, J->pc, &event.place_ref, &event.place_line);
    hook_parent(vm->jit, J, &event.parent, &event.parent_exit);
    hook_tell(vm, J, &event);
  }
}

void ljp_hook_trace_start(jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  if (LJP_UNLIKELY(!vm))
    return;
  if (LJP_LIKELY(vm->jit && !hook_wanted()))
    ljp_markers_begin(vm->jit, J);
  else
    hook_start(vm, J);
}

static void hook_stop(const struct ljp_vm *vm, struct ljp_jit *jit,
                      jit_State *J, GCtrace *T)
{
  struct ljp_markers head;
  size_t bytes = ljp_markers_measure(jit, J, &head);
  uint64_t parent;
  uint32_t parent_exit, place_ref, place_line;
  hook_parent(jit, J, &parent, &parent_exit);
  hook_place(&gcref(T->startpt)->pt, mref(T->startpc, const BCIns), &place_ref,
             &place_line);
  ljp_lock(LJP_LOCK_TRACES);
  struct ljp_trace *trace = ljp_trace_new(bytes);
  if (!trace) {
    ljp_traces_count_cut(ljp_markers_count(jit, &head) + jit->cut);
    ljp_unlock(LJP_LOCK_TRACES);
    return; /* snapshots describe its code */
  }
  /* Field by field: clearing the entry first would cost a tenth of this
  ** hook. */
  trace->object = T;
  trace->code = (uint64_t)(uintptr_t)T->mcode;
  trace->code_bytes = T->szmcode;
  trace->place_line = place_line;
  trace->place_ref = place_ref;
  trace->markers = NULL;
  trace->parent = parent;
  trace->root = jit_id_of(jit, T->root);
  trace->vm = vm->number;
  trace->number = T->traceno;
  trace->parent_exit = parent_exit;
  trace->ir_count = T->nins - REF_FIRST;
  trace->markers_count = ljp_markers_count(jit, &head);
  trace->markers_cut = jit->cut;
  trace->snapshots = T->nsnap;
  trace->link_type = T->linktype;
  trace->truncated = jit->full;
  if (bytes) {
    trace->markers = (struct ljp_markers *)(void *)(trace + 1);
    ljp_markers_copy(jit, &head, trace->markers);
  }
  bool entered = ljp_traces_enter(trace);
  if (entered) {
    trace->link = T->link == T->traceno ? trace->id : jit_id_of(jit, T->link);
  } else {
    ljp_traces_count_cut(trace->markers_count + trace->markers_cut);
    ljp_markers_free(trace->markers);
    ljp_trace_free(trace);
  }
  ljp_unlock(LJP_LOCK_TRACES);
  if (!entered)
    return;
  if (!jit_take_number(jit, trace) || !ljp_map_add(jit, J, trace)) {
    jit_forget_number(jit, trace);
    ljp_lock(LJP_LOCK_TRACES);
    ljp_traces_count_cut(trace->markers_count);
    ljp_traces_retire(trace);
    ljp_unlock(LJP_LOCK_TRACES);
    return;
  }
  if (hook_wanted()) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_STOP,
                                          .trace = trace->id,
                                          .parent = trace->parent,
                                          .parent_exit = trace->parent_exit,
                                          .place_ref = trace->place_ref,
                                          .place_line = trace->place_line};
    hook_tell(vm, J, &event);
  }
}

void ljp_hook_trace_stop(jit_State *J, GCtrace *T)
{
  atomic_fetch_add_explicit(&ljp_traces_changed, 1, memory_order_release);
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  if (!vm || !vm->jit)
    return;
  hook_stop(vm, vm->jit, J, T);
  J->ljp = NULL;
  ljp_markers_end(vm->jit);
}

void ljp_hook_trace_abort(jit_State *J, uint32_t error)
{
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  if (!vm || !vm->jit)
    return;
  J->ljp = NULL;
  ljp_markers_end(vm->jit);
  if (!hook_wanted())
    return;
  char text[LJP_TRACE_REASON_BYTES];
  struct ljp_guest_trace_event event = {
      .what = LJP_TRACE_ABORT, .reason = error, .text = text};
  ljp_trace_reason(J, error, text, sizeof text);
  hook_parent(vm->jit, J, &event.parent, &event.parent_exit);
  hook_place(&gcref(J->cur.startpt)->pt, mref(J->cur.startpc, const BCIns),
             &event.place_ref, &event.place_line);
  hook_tell(vm, J, &event);
}

void ljp_hook_trace_blacklist(jit_State *J, GCproto *pt, BCIns *pc)
{
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  if (!vm || !hook_wanted())
    return;
  struct ljp_guest_trace_event event = {.what = LJP_TRACE_BLACKLIST};
  hook_place(pt, pc, &event.place_ref, &event.place_line);
  hook_tell(vm, J, &event);
}

/* A root trace is no longer entered; its code stays. */
void ljp_hook_trace_unlink(jit_State *J, GCtrace *T)
{
  struct ljp_vm *vm = hook_wanted() ? ljp_vm_of_jit(J) : NULL;
  if (!vm || !vm->jit)
    return;
  struct ljp_guest_trace_event event = {
      .what = LJP_TRACE_FLUSH, .trace = jit_id_of(vm->jit, T->traceno)};
  if (event.trace) /* else all traces are being flushed */
    hook_tell(vm, J, &event);
}

void ljp_hook_trace_flush(jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  if (!vm || !vm->jit)
    return;
  jit_drop_map(vm->jit);
  if (hook_wanted()) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_FLUSH};
    hook_tell(vm, J, &event);
  }
}

void ljp_hook_trace_free(jit_State *J, GCtrace *T)
{
  atomic_fetch_add_explicit(&ljp_traces_changed, 1, memory_order_release);
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  struct ljp_jit *jit = vm ? vm->jit : NULL;
  struct ljp_trace *trace =
      jit && T->traceno < jit->numbers ? jit->by_number[T->traceno] : NULL;
  if (!trace || trace->object != T)
    return;
  uint64_t id = trace->id;
  ljp_map_remove(jit, trace);
  jit_forget_number(jit, trace);
  atomic_signal_fence(memory_order_seq_cst);
  ljp_lock(LJP_LOCK_TRACES);
  ljp_traces_retire(trace);
  ljp_unlock(LJP_LOCK_TRACES);
  /* When a VM is closed, thousands of traces may be freed: the end of the VM is
  ** event enough. */
  if (hook_wanted() && !vm->closing) {
    struct ljp_guest_trace_event event = {.what = LJP_TRACE_FREE, .trace = id};
    hook_tell(vm, J, &event);
  }
}

void ljp_traces_drop(struct ljp_vm *vm)
{
  struct ljp_jit *jit = vm->jit;
  if (!jit)
    return;
  jit_drop_map(jit);
  ljp_markers_end(jit);
}
