/*
** Hooks of publishing (publish.h), on the VM's own thread. lua_call(), lua_pcall(),
** lua_cpcall() and lua_resume() come here while any VM publishes (patch 0013), and so
** do the functions coroutine.resume and coroutine.wrap of a VM that publishes.
**
** Invariant: while L runs, publish_now.L is L. Each entry saves what was noted before
** and restores it. Only addresses are compared: what was noted may be stale if an
** error or a host's longjmp() has left an entry without its end.
**
** Records stay, so whoever reads otel_thread_ctx_v1 finds one or NULL. Only the
** thread itself writes its variable, and readers stop the thread (OTEP 4947): the
** compiler's order is enough.
**
** Names: a frame of a function that runs the program's code begins with
** ljp_hook_enter_, by which views tell that its callees are not our own work
** (parsers/profile/own_code.c).
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "lj_lib.h"
#include "lj_state.h"
#include "lj_trace.h"
#include "lj_vm.h"

#include "src/base/sigsafe.h"
#include "src/base/tls.h"
#include "src/luajit/publish.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vm_of.h"

/* The variable that readers look for. The library exports it. */
extern __attribute__((visibility(
    "default"))) _Thread_local const void *_Atomic otel_thread_ctx_v1;
_Thread_local const void *_Atomic otel_thread_ctx_v1;

_Atomic uint32_t ljp_publishing;

/* The Lua thread that runs on this thread, and its VM. The entry of a VM stays. */
static _Thread_local LJP_TLS_SIGSAFE struct {
  const lua_State *L;
  const struct ljp_vm *vm;
} publish_now;

/* Of all VMs. Written by the first one that publishes, and read by such VMs. */
static const struct ljp_guest_publisher *_Atomic publish_from;

struct publish_outer {
  const lua_State *L;
  const struct ljp_vm *vm;
  const void *record;
};

static inline void publish_set(const void *record)
{
  atomic_store_explicit(&otel_thread_ctx_v1, record, memory_order_relaxed);
}

const void *ljp_guest_published(void)
{
  return atomic_load_explicit(&otel_thread_ctx_v1, memory_order_relaxed);
}

/* The record of a set. NULL: it is empty, or there is no memory. */
static inline const void *publish_record(uint32_t set)
{
  const struct ljp_guest_publisher *from =
      atomic_load_explicit(&publish_from, memory_order_acquire);
  const void *record = NULL;
  if (!set)
    return NULL;
  /* Acquire: the record was complete before it was shown. */
  if (LJP_LIKELY(set <
                 atomic_load_explicit(&from->known, memory_order_acquire)))
    record = atomic_load_explicit(&from->records[set], memory_order_acquire);
  return LJP_LIKELY(record != NULL) ? record : from->make(set);
}

static inline const void *publish_labels(const struct ljp_vm *vm,
                                         const lua_State *L)
{
  return vm && vm->publishes ? publish_record(L->ljp_labels) : NULL;
}

/* Is L noted, and runs? Then its entry puts back what was before. */
static inline bool publish_noted(const lua_State *L)
{
  return publish_now.L == L && L->cframe;
}

void ljp_guest_publish_change(lua_State *L)
{
  if (publish_noted(L))
    publish_set(publish_labels(publish_now.vm, L));
}

/* -- Entries from the host ------------------------------------------------- */

/* Does a thread of the VM run? As far as its main thread and the one that ran last
** tell. */
static bool publish_runs(const lua_State *L)
{
  const GCobj *last = gcref(G(L)->cur_L);
  return mainthread(G(L))->cframe || (last && last->th.cframe);
}

/* L is about to run. */
static inline void publish_enter(struct publish_outer *outer, lua_State *L)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  outer->L = publish_now.L;
  outer->vm = publish_now.vm;
  outer->record = ljp_guest_published();
  if (vm && LJP_UNLIKELY(vm->publish_begun) && !publish_runs(L)) {
    /* The entry in which publishing began had noted nothing, and is over. */
    vm->publish_begun = false;
    if (outer->vm == vm)
      *outer = (struct publish_outer){NULL, NULL, NULL};
  }
  publish_now.L = L;
  publish_now.vm = vm;
  publish_set(publish_labels(vm, L));
}

static inline void publish_leave(const struct publish_outer *outer)
{
  const bool publishes = outer->vm && outer->vm->publishes;
  publish_now.L = publishes ? outer->L : NULL;
  publish_now.vm = publishes ? outer->vm : NULL;
  publish_set(publishes ? outer->record : NULL);
}

/* After a protected call that needed no entry of its own. An error may have left
** other entries without their end. */
static inline int publish_caught(lua_State *L, int status)
{
  if (LJP_UNLIKELY(status != 0)) {
    publish_now.L = L;
    publish_now.vm = ljp_vm_of_thread(L);
    publish_set(publish_labels(publish_now.vm, L));
  }
  return status;
}

static void ljp_hook_enter_call(lua_State *L, TValue *base, int nres1)
{
  struct publish_outer outer;
  if (publish_noted(L)) {
    lj_vm_call(L, base, nres1);
    return;
  }
  publish_enter(&outer, L);
  lj_vm_call(L, base, nres1);
  publish_leave(&outer);
}

static int ljp_hook_enter_pcall(lua_State *L, TValue *base, int nres1,
                                ptrdiff_t ef)
{
  struct publish_outer outer;
  if (publish_noted(L))
    return publish_caught(L, lj_vm_pcall(L, base, nres1, ef));
  publish_enter(&outer, L);
  int status = lj_vm_pcall(L, base, nres1, ef);
  publish_leave(&outer);
  return status;
}

static int ljp_hook_enter_cpcall(lua_State *L, lua_CFunction func, void *ud,
                                 lua_CPFunction cp)
{
  struct publish_outer outer;
  if (publish_noted(L))
    return publish_caught(L, lj_vm_cpcall(L, func, ud, cp));
  publish_enter(&outer, L);
  int status = lj_vm_cpcall(L, func, ud, cp);
  publish_leave(&outer);
  return status;
}

static int ljp_hook_enter_resume(lua_State *L, TValue *base, int nres1,
                                 ptrdiff_t ef)
{
  struct publish_outer outer;
  publish_enter(&outer, L);
  int status = lj_vm_resume(L, base, nres1, ef);
  publish_leave(&outer);
  return status;
}

/* What lua_call() and the others call (patch 0013). A thread must see its own changes
** only: another thread's VM, which does not publish, may enter in either way. */
__typeof__(lj_vm_call) *ljp_vm_call = lj_vm_call;
__typeof__(lj_vm_pcall) *ljp_vm_pcall = lj_vm_pcall;
__typeof__(lj_vm_cpcall) *ljp_vm_cpcall = lj_vm_cpcall;
__typeof__(lj_vm_resume) *ljp_vm_resume = lj_vm_resume;

/* Relaxed: see above. */
static void publish_turn_entries(bool on)
{
  __atomic_store_n(&ljp_vm_call, on ? ljp_hook_enter_call : lj_vm_call,
                   __ATOMIC_RELAXED);
  __atomic_store_n(&ljp_vm_pcall, on ? ljp_hook_enter_pcall : lj_vm_pcall,
                   __ATOMIC_RELAXED);
  __atomic_store_n(&ljp_vm_cpcall, on ? ljp_hook_enter_cpcall : lj_vm_cpcall,
                   __ATOMIC_RELAXED);
  __atomic_store_n(&ljp_vm_resume, on ? ljp_hook_enter_resume : lj_vm_resume,
                   __ATOMIC_RELAXED);
}

/* One VM more publishes, or one less. */
static void publish_count(int change)
{
  ljp_lock(LJP_LOCK_VMS);
  uint32_t before = atomic_fetch_add(&ljp_publishing, (uint32_t)change);
  if (!before || !(before + (uint32_t)change))
    publish_turn_entries(change > 0);
  ljp_unlock(LJP_LOCK_VMS);
}

/* -- coroutine.resume, coroutine.wrap -------------------------------------- */

/* What LuaJIT's assembly calls when a wrapped coroutine has failed. */
extern __attribute__((visibility("hidden"), noreturn)) void
lj_ffh_coroutine_wrap_err(lua_State *L, lua_State *co);

/* The functions whose objects are changed, with what the objects had before, which
** is the same in all VMs. Written before the first object is changed. */
enum publish_kind { RESUME, WRAP_AUX, WRAP, KINDS };
static _Atomic lua_CFunction publish_original[KINDS];
static _Atomic ptrdiff_t publish_bytecode[KINDS]; /* From the GG_State on. */

/* The function's own handler, for all that the fast path does not take: it raises an
** error, makes room for arguments (FFH_RETRY), or leaves false and a message where
** the frame of the function is. */
static bool publish_refused(lua_State *L, enum publish_kind kind)
{
  lua_CFunction handler =
      atomic_load_explicit(&publish_original[kind], memory_order_relaxed);
  const TValue function = L->base[-2], frame = L->base[-1];
  if (handler(L) == FFH_RETRY)
    return false;
  L->base[0] = L->base[-2];
  L->base[1] = L->base[-1];
  L->base[-2] = function;
  L->base[-1] = frame;
  L->top = L->base + 2;
  return true;
}

/* Moves the arguments from `args` to the top of L on to the coroutine; *from: where it
** begins. False: there is no room, or it cannot be resumed. */
static bool publish_move_arguments(lua_State *L, lua_State *co, TValue *args,
                                   TValue **from)
{
  const ptrdiff_t count = L->top - args;
  TValue *to = co->top;
  if (co->cframe || co->status > LUA_YIELD)
    return false;
  if (co->status == LUA_OK) {
    if (to == co->base)
      return false;
    to++; /* Below a frame's arguments is a function and an empty slot. */
  }
  if (to + count > mref(co->maxstack, TValue))
    return false;
  if (co->status == LUA_OK)
    copyTV(L, to - 1, to - 2);
  for (ptrdiff_t i = 0; i < count; i++)
    copyTV(L, to + i, args + i);
  co->top = to + count;
  *from = to;
  return true;
}

/* Moves the results to L, below `skip` slots. Returns their number. */
static int publish_move_results(lua_State *L, lua_State *co, int skip)
{
  const ptrdiff_t count = co->top - co->base;
  if (L->base + count > mref(L->maxstack, TValue))
    lj_state_growstack(L, (MSize)count);
  TValue *to = L->base + skip;
  for (ptrdiff_t i = 0; i < count; i++)
    copyTV(L, to + i, co->base + i);
  co->top = co->base;
  L->top = to + count;
  return (int)count;
}

/* Does what the assembly of the two functions does. The results stand at the top of
** L. */
static int ljp_hook_enter_coroutine(lua_State *L, lua_State *co,
                                    enum publish_kind kind)
{
  const int skip = kind == RESUME;
  const bool noted = publish_noted(L);
  struct publish_outer outer;
  TValue *from;
  while (!publish_move_arguments(L, co, L->base + skip, &from))
    if (publish_refused(L, kind))
      return 2;
  L->top = L->base + skip; /* The coroutine stays, for the collector. */
  if (LJP_LIKELY(noted)) {
    publish_now.L = co; /* The VM is the same. */
    publish_set(publish_labels(publish_now.vm, co));
  } else {
    publish_enter(&outer, co);
  }
  int status = lj_vm_resume(co, from, 0, 0);
  setgcref(G(L)->cur_L, obj2gco(L));
  if (LJP_LIKELY(noted)) {
    publish_now.L = L; /* Its labels may be others now. */
    publish_set(publish_labels(publish_now.vm, L));
  } else {
    publish_leave(&outer);
  }
  if (status <= LUA_YIELD) {
    int count = publish_move_results(L, co, skip);
    if (skip)
      setboolV(L->base, 1);
    return count + skip;
  }
  if (kind == WRAP_AUX)
    lj_ffh_coroutine_wrap_err(L, co);
  setboolV(L->base, 0);
  copyTV(L, L->base + 1, --co->top);
  L->top = L->base + 2;
  return 2;
}

static int ljp_hook_enter_coroutine_resume(lua_State *L)
{
  if (!(L->top > L->base && tvisthread(L->base)))
    return publish_refused(L, RESUME); /* It raises an error. */
  return ljp_hook_enter_coroutine(L, threadV(L->base), RESUME);
}

static int ljp_hook_enter_coroutine_wrap(lua_State *L)
{
  return ljp_hook_enter_coroutine(L, threadV(lj_lib_upvalue(L, 1)), WRAP_AUX);
}

static int publish_wrap(lua_State *L);

static const struct {
  uint8_t ffid;
  lua_CFunction function;
} publish_functions[KINDS] = {
    [RESUME] = {FF_coroutine_resume, ljp_hook_enter_coroutine_resume},
    [WRAP_AUX] = {FF_coroutine_wrap_aux, ljp_hook_enter_coroutine_wrap},
    [WRAP] = {FF_coroutine_wrap, publish_wrap},
};

/* Changes the object of a function, if it is one of the three. It keeps its
** identity, and with it its name. Returns whether it has changed. */
static bool publish_take(global_State *g, GCfuncC *fn)
{
  for (int kind = 0; kind < KINDS; kind++) {
    if (fn->ffid != publish_functions[kind].ffid ||
        fn->f == publish_functions[kind].function)
      continue;
    /* Another VM may have noted the same. */
    if (atomic_load_explicit(&publish_original[kind], memory_order_acquire) !=
        fn->f) {
      atomic_store(&publish_bytecode[kind],
                   mref(fn->pc, const char) - (const char *)G2GG(g));
      atomic_store(&publish_original[kind], fn->f);
    }
    fn->f = publish_functions[kind].function;
    setmref(fn->pc, &g->bc_cfunc_int);
    return true;
  }
  return false;
}

static bool publish_give_back(global_State *g, GCfuncC *fn)
{
  for (int kind = 0; kind < KINDS; kind++) {
    if (fn->ffid != publish_functions[kind].ffid ||
        fn->f != publish_functions[kind].function)
      continue;
    fn->f = atomic_load(&publish_original[kind]);
    setmref(fn->pc, (char *)G2GG(g) + atomic_load(&publish_bytecode[kind]));
    return true;
  }
  return false;
}

static int publish_wrap(lua_State *L)
{
  const struct ljp_vm *vm = ljp_vm_of_thread(L);
  int results =
      atomic_load_explicit(&publish_original[WRAP], memory_order_relaxed)(L);
  if (vm->publishes && tvisfunc(L->top - 1))
    publish_take(G(L), &funcV(L->top - 1)->c);
  return results;
}

/* Changes all functions of the VM. Compiled code that calls one of them goes on at the
** bytecode that the function had, so such code must go. */
static void publish_change_functions(lua_State *L,
                                     bool (*change)(global_State *g,
                                                    GCfuncC *fn))
{
  bool changed = false;
  for (GCobj *o = gcref(G(L)->gc.root); o; o = gcnext(o))
    if (o->gch.gct == ~LJ_TFUNC && isffunc(&o->fn))
      changed |= change(G(L), &o->fn.c);
  if (changed) {
    lj_trace_abort(G(L));
    lj_trace_flushall(L);
  }
}

/* Not in a finalizer: compiled code cannot be freed there. */
static bool publish_may_change(lua_State *L)
{
  return !(G(L)->hookmask & HOOK_GC);
}

/* -- Beginning and end ----------------------------------------------------- */

enum ljp_guest_publishable ljp_guest_can_publish(lua_State *L)
{
  if (!ljp_vm_of_thread(L))
    return LJP_PUBLISHABLE_NO_ENTRY;
  return publish_may_change(L) ? LJP_PUBLISHABLE : LJP_PUBLISHABLE_FINALIZER;
}

bool ljp_guest_publishes(lua_State *L)
{
  const struct ljp_vm *vm = ljp_vm_of_thread(L);
  return vm && vm->publishes;
}

void ljp_guest_publish(lua_State *L,
                       const struct ljp_guest_publisher *publisher)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  atomic_store(&publish_from, publisher);
  if (!vm->publishes) {
    vm->publishes = true;
    publish_count(1);
  }
  publish_change_functions(L, publish_take);
  /* The present entry has noted nothing, so nobody will put back what was before. For
  ** the main thread, the next entry does (publish_enter). A coroutine shows its
  ** labels when it is resumed again. */
  if (!publish_now.L && L == mainthread(G(L)) && L->cframe) {
    publish_now.L = L;
    publish_now.vm = vm;
    vm->publish_begun = true;
  }
  ljp_guest_publish_change(L);
}

/* Without its functions, which work in a VM that does not publish, too. What is noted
** stays: entries go on. */
static void publish_end(struct ljp_vm *vm)
{
  vm->publishes = false;
  if (publish_now.vm == vm)
    publish_set(NULL);
  publish_count(-1);
}

void ljp_guest_unpublish(lua_State *L)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  if (!vm || !vm->publishes)
    return;
  publish_end(vm);
  if (publish_may_change(L))
    publish_change_functions(L, publish_give_back);
}

void ljp_guest_publish_closing(lua_State *L)
{
  struct ljp_vm *vm = ljp_vm_of_thread(L);
  if (!vm || !vm->publishes)
    return;
  publish_end(vm);
  if (publish_now.vm == vm) {
    publish_now.L = NULL;
    publish_now.vm = NULL;
  }
  atomic_load(&publish_from)->closed();
}
