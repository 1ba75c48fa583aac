/*
** Hooks of VMs: what patches 0002, 0003, 0005 and 0012 call, on the VM's own thread,
** outside any handler. They keep the table of VMs (vm/vms.h) and tell the
** profilers' listeners.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_gc.h"

#include <x86intrin.h>

#include "src/base/assert.h"
#include "src/base/shown.h"
#include "src/luajit/functions/prototypes.h"
#include "src/luajit/heap.h"
#include "src/luajit/joined_heap.h"
#include "src/luajit/metrics.h"
#include "src/luajit/phases.h"
#include "src/luajit/publish.h"
#include "src/luajit/stubs.h"
#include "src/luajit/traces/trace.h"
#include "src/luajit/vm/vm_of.h"
#include "src/luajit/vms.h"

static const struct ljp_guest_listener *_Atomic vm_listeners[LJP_LISTENERS];
static uint32_t (*_Atomic vm_owner_listener)(void *owner);
static void (*_Atomic vm_gc_listener)(lua_State *L);
static void (*_Atomic vm_whole_listener)(lua_State *L);

_Static_assert((int)GCSpause == LJP_GC_PAUSE &&
                   (int)GCSpropagate == LJP_GC_PROPAGATE &&
                   (int)GCSatomic == LJP_GC_ATOMIC &&
                   (int)GCSsweepstring == LJP_GC_SWEEPSTRING &&
                   (int)GCSsweep == LJP_GC_SWEEP &&
                   (int)GCSfinalize == LJP_GC_FINALIZE,
               "another list of phases");

void ljp_guest_listen(enum ljp_guest_listeners which,
                      const struct ljp_guest_listener *listener)
{
  atomic_store(&vm_listeners[which], listener);
}

void ljp_guest_listen_owners(uint32_t (*labels)(void *owner))
{
  atomic_store(&vm_owner_listener, labels);
}

void ljp_guest_listen_gc(void (*entered)(lua_State *L))
{
  atomic_store(&vm_gc_listener, entered);
}

void ljp_guest_listen_whole(void (*at)(lua_State *L))
{
  atomic_store(&vm_whole_listener, at);
}

uint32_t ljp_guest_vm_id(lua_State *L)
{
  const struct ljp_vm *vm = ljp_vm_of_thread(L);
  return vm ? vm->number : 0;
}

/* A host has taken the thread for a piece of work. */
void ljp_hook_owner(lua_State *L, void *owner)
{
  const GCobj *running = gcref(G(L)->cur_L);
  uint32_t (*labels)(void *) = atomic_load(&vm_owner_listener);
  if (running && running->th.cframe)
    L->ljp_labels = running->th.ljp_labels;
  else
    L->ljp_labels = labels ? labels(owner) : 0;
}

void *ljp_guest_recorder(lua_State *L)
{
  const struct ljp_vm *vm = ljp_vm_of_thread(L);
  return vm ? vm->recorder : NULL;
}

void ljp_guest_set_recorder(lua_State *L, void *recorder,
                            struct ljp_phase_log *phases)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  if (!vm)
    return;
  vm->recorder = recorder;
  vm->phases = phases;
}

/* False: the phase is not noted, so the listener has to know at once. */
static bool vm_note_phase(struct ljp_phase_log *log, const global_State *g)
{
  const uint64_t tsc = __rdtsc();
  bool noted = false;
  atomic_store_explicit(&log->inside, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  /* Relaxed: as in ljp_recorder_enter(). */
  if (LJP_LIKELY(atomic_load_explicit(&log->on, memory_order_relaxed) &&
                 log->count < LJP_PHASES_NOTED && tsc < log->due_tsc &&
                 g->gc.total >= log->least_bytes &&
                 g->gc.total <= log->most_bytes)) {
    log->note[log->count++] = (struct ljp_phase_note){
        tsc, (uint64_t)g->gc.total << LJP_PHASE_BITS | g->gc.state};
    noted = true;
  }
  /* Release: the thread that waits sees the note. */
  atomic_store_explicit(&log->inside, false, memory_order_release);
  return noted;
}

void ljp_hook_gc(global_State *g)
{
  struct ljp_vm *vm = ljp_vm_of_global(g);
  ljp_metrics_phase(g);
  if (LJP_UNLIKELY(!vm))
    return;
  if (g->gc.state == GCSsweepstring)
    ljp_protos_sweep(vm);
  else if (g->gc.state == GCSpause)
    ljp_protos_swept(vm);
  if (!vm->phases || !vm_note_phase(vm->phases, g)) {
    /* Relaxed: the listener's own state decides whether it has begun. */
    void (*entered)(lua_State *) =
        atomic_load_explicit(&vm_gc_listener, memory_order_relaxed);
    if (LJP_UNLIKELY(entered))
      entered(mainthread(g));
  }
  if (g->gc.state != GCSsweepstring)
    return;
  /* Relaxed: as above. */
  void (*whole)(lua_State *) =
      atomic_load_explicit(&vm_whole_listener, memory_order_relaxed);
  if (LJP_UNLIKELY(whole) && !tvref(g->jit_base))
    whole(gco2th(gcref(g->cur_L)));
}

void ljp_hook_vm_new(lua_State *L)
{
  const struct ljp_vm *vm = ljp_vm_add((uint64_t)(uintptr_t)G(L));
  /* 0: the stacks of this VM cannot be walked; its number is 0. */
  L2GG(L)->ljp = vm ? vm->index : 0;
  for (int i = LJP_LISTENERS; vm && i-- > 0;) {
    const struct ljp_guest_listener *l = atomic_load(&vm_listeners[i]);
    if (l && l->created)
      l->created(L);
  }
}

void ljp_hook_vm_closing(lua_State *L)
{
  ljp_guest_publish_closing(L);
  for (int i = 0; i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&vm_listeners[i]);
    if (l && l->closing)
      l->closing(L);
  }
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  if (vm)
    vm->closing = true;
}

void ljp_hook_allocator(lua_State *L, lua_Alloc f, void *ud)
{
  if (f == G(L)->allocf && ud == G(L)->allocd)
    return;
  for (int i = 0; i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&vm_listeners[i]);
    if (l && l->allocator)
      l->allocator(L);
  }
}

void ljp_hook_vm_gone(lua_State *L)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  if (!vm)
    return;
  ljp_guest_stub_bar(L);
  for (int i = 0; i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&vm_listeners[i]);
    if (l && l->gone)
      l->gone(L);
  }
  ljp_traces_drop(vm);
  L2GG(L)->ljp = 0;
  ljp_show_vm(-1);
  if (ljp_protos_drop(vm))
    ljp_vm_remove(vm);
}

void ljp_hook_resize(lua_State *L, int begin)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  if (!vm)
    return;
  /* Only this thread and its own signal handler read these, so the compiler's
  ** order is enough. */
  atomic_store_explicit(&vm->resizing, begin != 0, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (begin || !atomic_load_explicit(&vm->deferred, memory_order_relaxed))
    return;
  atomic_store_explicit(&vm->deferred, false, memory_order_relaxed);
  for (int i = 0; i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&vm_listeners[i]);
    if (l && l->deferred)
      l->deferred();
  }
}
