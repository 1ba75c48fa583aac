/*
** What the files of this folder share among themselves: VMs that are known,
** Lua threads that were checked, hooks that the patches call.
*/
#ifndef LJP_GUEST_PRIV_H
#define LJP_GUEST_PRIV_H

#include <stdatomic.h>
#include <string.h>

#include "src/base/regs.h"
#include "src/base/sigsafe.h"
#include "src/luajit/traces.h"

/* How many nested entries into the VM a walk follows on one Lua thread;
** LuaJIT itself allows 200 C levels. */
#define LJP_GUEST_MAX_CFRAMES 512

/* One VM. GG_State.ljp holds its index; it is reused for another VM after
** lua_close(), never given back, so a handler may always read it. */
struct ljp_vm {
  _Atomic uint64_t g; /* global_State, 0 while free */
  uint32_t index, number;
  _Atomic bool resizing; /* a Lua stack is being moved */
  _Atomic bool deferred; /* a sample waits for that to end */
  uint32_t next_free;
  uint32_t unnamed; /* protos.c: the first whose functions have no names yet */
  struct ljp_jit *jit; /* traces.h; NULL before the first trace */
  bool closing;        /* lua_close() has begun; its own thread's */
};

enum { LJP_VM_CHUNK = 64, LJP_VM_CHUNKS = 4096 };

/* Records 1 ... ljp_vm_count - 1; both only grow. */
extern struct ljp_vm *_Atomic ljp_vm_chunks[LJP_VM_CHUNKS];
extern _Atomic uint32_t ljp_vm_count;

LJP_SIGSAFE static inline struct ljp_vm *ljp_vm_at(uint32_t index)
{
  if (index == 0 ||
      index >= atomic_load_explicit(&ljp_vm_count, memory_order_acquire))
    return NULL;
  return atomic_load_explicit(&ljp_vm_chunks[index / LJP_VM_CHUNK],
                              memory_order_acquire) +
         index % LJP_VM_CHUNK;
}

/* The global_States of all VMs, in no order; 0 ends. */
LJP_SIGSAFE uint64_t ljp_vm_first(void);
LJP_SIGSAFE uint64_t ljp_vm_next(uint64_t g);

/* The VM of a global_State; NULL if g is none, or one that we don't know. */
LJP_SIGSAFE const struct ljp_vm *ljp_vm_of(uint64_t g);
LJP_SIGSAFE const struct ljp_vm *ljp_vm_of_noted(uint64_t g,
                                                 struct ljp_memo *notes);

/* global_State by the dispatch register of running VM code, 0 if it is lost
** or wrong. */
LJP_SIGSAFE uint64_t ljp_vm_from_dispatch(const struct ljp_regs *regs);

LJP_SIGSAFE static inline uint32_t ljp_vm_number(const struct ljp_vm *vm)
{
  return vm->number;
}

/* True while a stack is moved; the VM then reports the end of it. */
LJP_SIGSAFE bool ljp_vm_resizing(const struct ljp_vm *vm);
LJP_SIGSAFE void ljp_vm_note_resizing(const struct ljp_vm *vm,
                                      struct ljp_memo *notes);

/* A Lua thread, checked. */
struct ljp_thread {
  uint64_t L, g;
  const struct ljp_vm *vm;
  uint64_t low, high;     /* its stack */
  struct ljp_memo *notes; /* of what is read of it, or NULL */
};

LJP_SIGSAFE bool ljp_guest_thread(struct ljp_thread *thread, uint64_t L);
LJP_SIGSAFE bool ljp_guest_thread_noted(struct ljp_thread *thread, uint64_t L,
                                        struct ljp_memo *notes);

/* -- What the patches call (see patches/) -----------------------------------
 */

struct GCproto;
struct GCtrace;
struct global_State;
struct jit_State;

void ljp_hook_vm_new(struct lua_State *L);
void ljp_hook_vm_closing(struct lua_State *L);
void ljp_hook_vm_gone(struct lua_State *L);
void ljp_hook_resize(struct lua_State *L, int begin);
void ljp_hook_proto(struct lua_State *L, struct GCproto *pt);
void ljp_hook_proto_gone(struct GCproto *pt);
void ljp_hook_gc(struct global_State *g);
void ljp_hook_refused(void *msp, size_t nb);

void ljp_hook_trace_start(struct jit_State *J);
void ljp_hook_trace_stop(struct jit_State *J, struct GCtrace *T);
void ljp_hook_trace_abort(struct jit_State *J, uint32_t error);
void ljp_hook_trace_blacklist(struct jit_State *J, struct GCproto *pt,
                              uint32_t *pc);
void ljp_hook_trace_unlink(struct jit_State *J, struct GCtrace *T);
void ljp_hook_trace_flush(struct jit_State *J);
void ljp_hook_trace_free(struct jit_State *J, struct GCtrace *T);
void ljp_hook_mark(struct jit_State *J);
uint16_t *ljp_hook_mark_copy(struct jit_State *J);
uint16_t *ljp_hook_mark_code(struct jit_State *J);

extern void (*_Atomic ljp_trace_listener)(
    const struct ljp_guest_trace_event *event);
static inline bool ljp_guest_wants_traces(void)
{
  return atomic_load_explicit(&ljp_trace_listener, memory_order_relaxed);
}
void ljp_guest_tell_trace(const struct ljp_guest_trace_event *event);

/* No id of a prototype is larger yet. */
uint64_t ljp_protos_newest(void);
/* Does a reference that was good then still stand for the same? */
bool ljp_protos_stand(uint32_t ref, uint64_t newest);

/* A VM's collector is about to sweep: first strings, then what refers to them. */
void ljp_protos_sweep(struct ljp_vm *vm);
/* A VM is about to free all it has. From here on vm->g is 0. */
void ljp_protos_drop(struct ljp_vm *vm);

/* All that is known of a VM's traces, when it is gone. */
void ljp_traces_drop(struct ljp_vm *vm);

#endif
