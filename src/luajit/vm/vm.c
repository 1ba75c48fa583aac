/*
** VMs: which there are, and what their patches tell us.
** The hooks run on the VM's own thread, outside any handler. ljp_vm_of() and
** its like are for the handler; they only read.
*/
#define LUA_CORE

#include <stdlib.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/heap.h"
#include "src/luajit/vms.h"
#include "src/luajit/vm/guest_priv.h"
#include "src/luajit/vm/lock.h"

struct ljp_vm *_Atomic ljp_vm_chunks[LJP_VM_CHUNKS];
_Atomic uint32_t ljp_vm_count = 1;
static uint32_t free_first;
static uint32_t last_number;
static const struct ljp_guest_listener *_Atomic listeners[LJP_LISTENERS];
static void (*_Atomic gc_listener)(uint32_t vm, enum ljp_gc_phase phase,
                                   uint64_t heap_bytes);

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
  atomic_store(&listeners[which], listener);
}

void ljp_guest_listen_gc(void (*entered)(uint32_t vm, enum ljp_gc_phase phase,
                                         uint64_t heap_bytes))
{
  atomic_store(&gc_listener, entered);
}

void ljp_hook_gc(global_State *g)
{
  /* Relaxed: the listener's own state decides whether it has begun. */
  void (*entered)(uint32_t, enum ljp_gc_phase, uint64_t) =
      atomic_load_explicit(&gc_listener, memory_order_relaxed);
  struct ljp_vm *vm = ljp_vm_at(G2GG(g)->ljp);
  if (LJP_UNLIKELY(!vm))
    return;
  if (g->gc.state == GCSsweepstring)
    ljp_protos_sweep(vm);
  if (LJP_UNLIKELY(entered))
    entered(vm->number, (enum ljp_gc_phase)g->gc.state, g->gc.total);
}

void (*_Atomic ljp_trace_listener)(const struct ljp_guest_trace_event *event);

void ljp_guest_listen_traces(
    void (*new_listener)(const struct ljp_guest_trace_event *event))
{
  atomic_store(&ljp_trace_listener, new_listener);
}

void ljp_guest_tell_trace(const struct ljp_guest_trace_event *event)
{
  void (*listen)(const struct ljp_guest_trace_event *) =
      atomic_load(&ljp_trace_listener);
  if (listen)
    listen(event);
}

static struct ljp_vm *vm_of_thread(lua_State *L)
{
  return ljp_vm_at(L2GG(L)->ljp);
}

uint32_t ljp_guest_vm_id(lua_State *L)
{
  struct ljp_vm *vm = vm_of_thread(L);
  return vm ? vm->number : 0;
}

/* A record for a new VM, NULL if there is no memory. */
static struct ljp_vm *take(void)
{
  if (free_first) {
    struct ljp_vm *vm = ljp_vm_at(free_first);
    free_first = vm->next_free;
    return vm;
  }
  uint32_t index = atomic_load(&ljp_vm_count);
  uint32_t chunk = index / LJP_VM_CHUNK;
  if (chunk >= LJP_VM_CHUNKS)
    return NULL;
  if (!atomic_load(&ljp_vm_chunks[chunk])) {
    struct ljp_vm *fresh = calloc(LJP_VM_CHUNK, sizeof *fresh);
    if (!fresh)
      return NULL;
    atomic_store(&ljp_vm_chunks[chunk], fresh);
  }
  atomic_store_explicit(&ljp_vm_count, index + 1, memory_order_release);
  struct ljp_vm *vm = ljp_vm_at(index);
  vm->index = index;
  return vm;
}

void ljp_guest_each_vm(void (*each)(void *ctx, uint32_t number), void *ctx)
{
  ljp_lock(LJP_LOCK_VMS);
  for (uint32_t i = 1; i < atomic_load(&ljp_vm_count); i++) {
    const struct ljp_vm *vm = ljp_vm_at(i);
    if (atomic_load_explicit(&vm->g, memory_order_relaxed))
      each(ctx, vm->number);
  }
  ljp_unlock(LJP_LOCK_VMS);
}

void ljp_hook_vm_new(lua_State *L)
{
  ljp_lock(LJP_LOCK_VMS);
  struct ljp_vm *vm = take();
  if (vm) {
    vm->number = ++last_number;
    if (vm->number == 2) /* maybe of another thread */
      ljp_locks_register_fork();
    atomic_store_explicit(&vm->resizing, false, memory_order_relaxed);
    atomic_store_explicit(&vm->deferred, false, memory_order_relaxed);
    vm->closing = false;
    /* A handler on this thread sees all of the above once it sees g. */
    atomic_store_explicit(&vm->g, (uint64_t)(uintptr_t)G(L),
                          memory_order_release);
  }
  /* 0: this VM stays without stacks, its id is 0. */
  L2GG(L)->ljp = vm ? vm->index : 0;
  uint32_t number = vm ? vm->number : 0;
  ljp_unlock(LJP_LOCK_VMS);
  for (int i = 0; number && i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&listeners[i]);
    if (l && l->created)
      l->created(number);
  }
}

void ljp_hook_vm_closing(lua_State *L)
{
  for (int i = 0; i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&listeners[i]);
    if (l && l->closing)
      l->closing(L);
  }
  struct ljp_vm *vm = vm_of_thread(L);
  if (vm)
    vm->closing = true;
}

void ljp_hook_vm_gone(lua_State *L)
{
  struct ljp_vm *vm = vm_of_thread(L);
  if (!vm)
    return;
  ljp_traces_drop(vm);
  ljp_protos_drop(vm);
  L2GG(L)->ljp = 0;
  ljp_lock(LJP_LOCK_VMS);
  vm->next_free = free_first;
  free_first = vm->index;
  ljp_unlock(LJP_LOCK_VMS);
}

void ljp_hook_resize(lua_State *L, int begin)
{
  struct ljp_vm *vm = vm_of_thread(L);
  if (!vm)
    return;
  /* Only this thread and its own signal handler look at these: compiler
  ** order is all that is needed. */
  atomic_store_explicit(&vm->resizing, begin != 0, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (begin || !atomic_load_explicit(&vm->deferred, memory_order_relaxed))
    return;
  atomic_store_explicit(&vm->deferred, false, memory_order_relaxed);
  for (int i = 0; i < LJP_LISTENERS; i++) {
    const struct ljp_guest_listener *l = atomic_load(&listeners[i]);
    if (l && l->deferred)
      l->deferred();
  }
}
