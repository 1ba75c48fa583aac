/*
** VM identity: the one table of VMs, and the ways to find a VM in it.
**
** A VM's GG_State has a last field, `ljp` (patch 0002), with the index of the
** VM's entry here, and the entry points back to the global_State. A VM is
** believed only if both agree. An entry is reused for another VM after
** lua_close(), and never given back to malloc(): a handler may read it at any
** time. Numbers of VMs are never used twice; indices are.
**
** What is marked LJP_SIGSAFE only reads. The hooks (hooks/vm.c) add and remove
** entries, on the VM's own thread. vm_of.h finds a VM by LuaJIT's own
** structures.
*/
#ifndef LJP_VMS_H
#define LJP_VMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/regs.h"
#include "src/base/sigsafe.h"

struct ljp_memo;
struct ljp_phase_log;

/* Slots of prototypes that have been freed (functions/slots.h). */
struct ljp_slot_list {
  uint32_t first, last;
};

struct ljp_vm {
  _Atomic uint64_t g; /* global_State, 0 while free */
  uint32_t index, number;
  _Atomic bool resizing; /* a Lua stack is being moved */
  _Atomic bool deferred; /* a sample waits for that to end */
  uint32_t next_free;
  uint32_t protos; /* slots.c: prototypes that have a slot */
  struct ljp_slot_list resting;
  uint32_t unnamed; /* prototypes.c: first of the list without names */
  struct GCproto *unnamed_last;
  struct ljp_jit *jit; /* traces/trace.h; NULL before the first trace */
  void *recorder;      /* the memory profiler's, under whose lock it changes, on
                       ** the VM's own thread */
  struct ljp_phase_log *phases; /* of the recorder; changes with it */
  bool closing;   /* lua_close() has begun; for its own thread only */
  bool publishes; /* its labels (hooks/publish.c); for its own thread only */
  bool publish_begun; /* during an entry that may not be over; the same */
  bool barred;        /* heap/stubs.c must not touch it; LJP_LOCK_VMS */
};

enum { LJP_VM_CHUNK = 64, LJP_VM_CHUNKS = 4096 };

/* Entries 1 ... ljp_vm_count - 1; both only grow. */
extern struct ljp_vm *_Atomic ljp_vm_chunks[LJP_VM_CHUNKS];
extern struct ljp_vm ljp_vm_first_chunk[LJP_VM_CHUNK];
extern _Atomic uint32_t ljp_vm_count;

/* The entry with an index, which a GG_State or an entry of ours holds. NULL:
** there is no such entry. */
LJP_SIGSAFE static inline struct ljp_vm *ljp_vm_at(uint32_t index)
{
  if (index == 0 ||
      index >= atomic_load_explicit(&ljp_vm_count, memory_order_acquire))
    return NULL;
  return atomic_load_explicit(&ljp_vm_chunks[index / LJP_VM_CHUNK],
                              memory_order_acquire) +
         index % LJP_VM_CHUNK;
}

/* The VM whose global_State has this address. NULL: there is none, or it has no
** entry. noted: the reads are noted in the memo. */
LJP_SIGSAFE const struct ljp_vm *ljp_vm_of(uint64_t g);
LJP_SIGSAFE const struct ljp_vm *ljp_vm_of_noted(uint64_t g,
                                                 struct ljp_memo *notes);

/* The global_State that the dispatch register of running VM code leads to; 0 if
** the register is lost or wrong. */
LJP_SIGSAFE uint64_t ljp_vm_from_dispatch(const struct ljp_regs *regs);

/* Visits all VMs, in no order: returns the VM after vm, or the first one for
** NULL. NULL: there are no more. VMs may come and go unless the caller holds
** LJP_LOCK_VMS. */
LJP_SIGSAFE struct ljp_vm *ljp_vm_next(const struct ljp_vm *vm);

/* Makes an entry with a new number for a VM; NULL if there is no memory. Takes
** LJP_LOCK_VMS. */
struct ljp_vm *ljp_vm_add(uint64_t g);
/* Frees an entry whose g is 0. Takes LJP_LOCK_VMS. */
void ljp_vm_remove(struct ljp_vm *vm);

/* True while a stack is being moved. At the end of the move the VM then asks
** for the sample. */
LJP_SIGSAFE bool ljp_vm_resizing(const struct ljp_vm *vm);
LJP_SIGSAFE void ljp_vm_note_resizing(const struct ljp_vm *vm,
                                      struct ljp_memo *notes);

#endif
