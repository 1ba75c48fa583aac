/*
** Slots: which prototypes exist. The slot of a prototype is all that is kept
** about the prototype while no session runs: eight bytes with its address and
** the index of its VM. A slot's number is the prototype's reference, which lies
** in the prototype itself and goes into frame words. 0 is no slot.
**
** When a prototype is freed, compiled code that depends on the prototype may be
** garbage that the same sweep has not reached yet, and may still have the
** prototype's reference. So a slot is not used again until the sweep of its VM
** has ended.
**
** Everything is under the lock of prototypes.
*/
#ifndef LJP_SLOTS_H
#define LJP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/assert.h"
#include "src/base/sigsafe.h"
#include "src/luajit/vm/vms.h"

struct GCproto;

enum { LJP_SLOT_CHUNK = 1024, LJP_SLOT_CHUNKS = 16384 };

/* A slot: the prototype's address, divided by 8, above the index of its VM.
** While it is free or rests: the number of the next slot in its list. Once the
** prototype has been freed: only the index of its VM. */
#define LJP_SLOT_VM_BITS 20
_Static_assert((uint64_t)LJP_VM_CHUNK *LJP_VM_CHUNKS <= UINT64_C(1)
                                                            << LJP_SLOT_VM_BITS,
               "an index of a VM does not fit");

extern uint64_t *ljp_slot_chunks[LJP_SLOT_CHUNKS];
/* All references ever used are below this one. */
extern uint32_t ljp_slots_used;

static inline uint64_t *ljp_slot_at(uint32_t ref)
{
  ljp_assert(ref > 0 && ref < ljp_slots_used);
  return &ljp_slot_chunks[ref / LJP_SLOT_CHUNK][ref % LJP_SLOT_CHUNK];
}

/* The prototype of a slot. NULL: there is none. Any value of ref will do. */
static inline struct GCproto *ljp_slot_owner(uint32_t ref)
{
  enum { LOWEST = 4096 }; /* no object has a lower address */
  _Static_assert((uint64_t)LJP_SLOT_CHUNK * LJP_SLOT_CHUNKS >>
                     LJP_SLOT_VM_BITS << 3 < LOWEST,
                 "a number looks like an address");
  if (LJP_UNLIKELY(ref == 0 || ref >= ljp_slots_used))
    return NULL;
  uint64_t address = *ljp_slot_at(ref) >> LJP_SLOT_VM_BITS << 3;
  return address < LOWEST ? NULL : (struct GCproto *)(uintptr_t)address;
}

/* The prototype of a slot that has one. */
static inline struct GCproto *ljp_slot_holder(uint32_t ref)
{
  ljp_assert(ljp_slot_owner(ref));
  return (struct GCproto *)(uintptr_t)(*ljp_slot_at(ref) >> LJP_SLOT_VM_BITS
                                                                << 3);
}

/* The VM of a slot that has, or had, a prototype. */
static inline struct ljp_vm *ljp_slot_vm(uint32_t ref)
{
  return ljp_vm_at((uint32_t)*ljp_slot_at(ref) &
                   ((1u << LJP_SLOT_VM_BITS) - 1));
}

extern struct ljp_slot_list ljp_slot_free_list;
/* The number of a slot that was never used, 0 if there is no memory. */
uint32_t ljp_slot_make(void);

static inline void ljp_slot_push(struct ljp_slot_list *list, uint32_t ref)
{
  *ljp_slot_at(ref) = list->first;
  if (!list->first)
    list->last = ref;
  list->first = ref;
}

static inline void ljp_slot_fill(uint32_t ref, const struct GCproto *pt,
                                 struct ljp_vm *vm)
{
  uint64_t address = (uint64_t)(uintptr_t)pt;
  ljp_assert(address % 8 == 0 && address >> 47 == 0);
  *ljp_slot_at(ref) = address >> 3 << LJP_SLOT_VM_BITS | vm->index;
  vm->protos++;
}

/* The reference for a prototype of this VM, if there is a free slot; else 0. */
static inline uint32_t ljp_slot_reuse(const struct GCproto *pt,
                                      struct ljp_vm *vm)
{
  uint32_t ref = ljp_slot_free_list.first;
  if (LJP_UNLIKELY(!ref))
    return 0;
  ljp_slot_free_list.first = (uint32_t)*ljp_slot_at(ref);
  ljp_slot_fill(ref, pt, vm);
  return ref;
}

/* Call when the prototype has been freed; vm: its VM, which counts it no
** more. */
static inline void ljp_slot_clear(uint32_t ref, struct ljp_vm *vm)
{
  ljp_assert(vm == ljp_slot_vm(ref) && vm->protos > 0);
  vm->protos--;
  *ljp_slot_at(ref) = vm->index;
}

/* Frees a cleared slot: it rests. vm: its VM, or, if that is closed, another
** one with its index (then the slot rests in vain). */
static inline void ljp_slot_free(uint32_t ref, struct ljp_vm *vm)
{
  bool open = atomic_load_explicit(&vm->g, memory_order_relaxed) != 0;
  ljp_slot_push(open ? &vm->resting : &ljp_slot_free_list, ref);
}

/* Call when a sweep of the VM has ended, or when the VM frees everything. */
void ljp_slots_swept(struct ljp_vm *vm);

/* Instead of ljp_slot_free(): the slot gets no other prototype until
** ljp_slots_unlock(). */
void ljp_slot_lock(uint32_t ref);
void ljp_slots_unlock(void);

#endif
