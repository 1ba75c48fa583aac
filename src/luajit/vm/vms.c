/*
** The table of VMs: adding, removing, visiting. vms.h has the picture. Not for
** handlers: a lock is taken.
*/
#include "src/luajit/vm/vms.h"

#include <stdlib.h>

#include "src/base/assert.h"
#include "src/base/shown.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vms.h"

struct ljp_vm *_Atomic ljp_vm_chunks[LJP_VM_CHUNKS];
_Atomic uint32_t ljp_vm_count = 1;
struct ljp_vm ljp_vm_first_chunk[LJP_VM_CHUNK];
static uint32_t vms_free_first;
static uint32_t vms_last_number;

/* A free entry, NULL if there is no memory. */
static struct ljp_vm *vms_take(void)
{
  if (vms_free_first) {
    struct ljp_vm *vm = ljp_vm_at(vms_free_first);
    vms_free_first = vm->next_free;
    return vm;
  }
  uint32_t index = atomic_load(&ljp_vm_count);
  uint32_t chunk = index / LJP_VM_CHUNK;
  if (chunk >= LJP_VM_CHUNKS)
    return NULL;
  if (!atomic_load(&ljp_vm_chunks[chunk])) {
    struct ljp_vm *fresh =
        chunk ? calloc(LJP_VM_CHUNK, sizeof *fresh) : ljp_vm_first_chunk;
    if (!fresh)
      return NULL;
    atomic_store(&ljp_vm_chunks[chunk], fresh);
  }
  atomic_store_explicit(&ljp_vm_count, index + 1, memory_order_release);
  struct ljp_vm *vm = ljp_vm_at(index);
  vm->index = index;
  return vm;
}

struct ljp_vm *ljp_vm_add(uint64_t g)
{
  ljp_lock(LJP_LOCK_VMS);
  struct ljp_vm *vm = vms_take();
  if (vm) {
    ljp_assert(atomic_load(&vm->g) == 0);
    vm->number = ++vms_last_number;
    atomic_store_explicit(&vm->resizing, false, memory_order_relaxed);
    atomic_store_explicit(&vm->deferred, false, memory_order_relaxed);
    vm->closing = vm->barred = false;
    vm->publishes = vm->publish_begun = false;
    vm->recorder = NULL;
    vm->phases = NULL;
    /* A handler on this thread sees all of the above once it sees g. */
    atomic_store_explicit(&vm->g, g, memory_order_release);
  }
  ljp_unlock(LJP_LOCK_VMS);
  if (vm)
    ljp_show_vm(1);
  return vm;
}

void ljp_vm_remove(struct ljp_vm *vm)
{
  ljp_lock(LJP_LOCK_VMS);
  ljp_assert(atomic_load(&vm->g) == 0);
  vm->next_free = vms_free_first;
  vms_free_first = vm->index;
  ljp_unlock(LJP_LOCK_VMS);
}

void ljp_guest_each_vm(void (*each)(void *ctx, uint32_t number), void *ctx)
{
  ljp_lock(LJP_LOCK_VMS);
  for (const struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm))
    each(ctx, vm->number);
  ljp_unlock(LJP_LOCK_VMS);
}
