/*
** Finding a VM from a signal handler. vms.h has the picture. LJP_SIGSAFE
** throughout; everything outside our own table is read fault-safely.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/base/memo.h"
#include "src/base/saferead.h"
#include "src/luajit/frames.h"
#include "src/luajit/vm/vms.h"

_Atomic uint64_t ljp_protos_gone;
_Atomic uint64_t ljp_traces_changed;

const struct ljp_vm *ljp_vm_of(uint64_t g)
{
  return ljp_vm_of_noted(g, NULL);
}

const struct ljp_vm *ljp_vm_of_noted(uint64_t g, struct ljp_memo *notes)
{
  uint64_t word;
  uint64_t field = g - GG_OFS(g) + GG_OFS(ljp);
  if (!ljp_safe_load((const void *)(uintptr_t)(field & ~UINT64_C(7)), &word))
    return NULL;
  const struct ljp_vm *vm = ljp_vm_at((uint32_t)(word >> (field & 4) * 8));
  if (!vm || atomic_load_explicit(&vm->g, memory_order_acquire) != g)
    return NULL;
  ljp_memo_note(notes, field & ~UINT64_C(7), word);
  ljp_memo_note(notes, (uint64_t)(uintptr_t)&vm->g, g);
  return vm;
}

struct ljp_vm *ljp_vm_next(const struct ljp_vm *vm)
{
  uint32_t index = vm ? vm->index : 0;
  struct ljp_vm *next;
  while ((next = ljp_vm_at(++index)) != NULL)
    if (atomic_load_explicit(&next->g, memory_order_acquire))
      return next;
  return NULL;
}

uint64_t ljp_vm_from_dispatch(const struct ljp_regs *regs)
{
  if (!(regs->known >> LJP_R14 & 1))
    return 0;
  uint64_t g = regs->r[LJP_R14] - GG_G2DISP;
  return ljp_vm_of(g) ? g : 0;
}

void ljp_vm_note_resizing(const struct ljp_vm *vm, struct ljp_memo *notes)
{
  uint64_t word;
  _Static_assert(offsetof(struct ljp_vm, resizing) % 8 == 0,
                 "its word can be compared");
  if (LJP_LIKELY(!notes || notes->lean))
    return;
  memcpy(&word, (const void *)(uintptr_t)&vm->resizing, sizeof word);
  ljp_memo_note(notes, (uint64_t)(uintptr_t)&vm->resizing, word);
}

bool ljp_vm_resizing(const struct ljp_vm *vm)
{
  if (LJP_LIKELY(!atomic_load_explicit(&vm->resizing, memory_order_relaxed)))
    return false;
  struct ljp_vm *mine = (struct ljp_vm *)(uintptr_t)vm;
  atomic_store_explicit(&mine->deferred, true, memory_order_relaxed);
  return true;
}
