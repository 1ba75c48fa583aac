/*
** What the handler reads of a VM before it believes anything else of it.
** LJP_SIGSAFE throughout.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/frames.h"
#include "src/luajit/vm/guest_priv.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

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
  ljp_memo_note(notes, (field & ~UINT64_C(7)), word, field & 4);
  ljp_memo_note(notes, (uint64_t)(uintptr_t)&vm->g, g, 0);
  return vm;
}

LJP_SIGSAFE static uint64_t first_from(uint32_t index)
{
  const struct ljp_vm *vm;
  while ((vm = ljp_vm_at(index++)) != NULL) {
    uint64_t g = atomic_load_explicit(&vm->g, memory_order_acquire);
    if (g)
      return g;
  }
  return 0;
}

uint64_t ljp_vm_first(void)
{
  return first_from(1);
}

uint64_t ljp_vm_next(uint64_t g)
{
  const struct ljp_vm *vm = ljp_vm_of(g);
  return vm ? first_from(vm->index + 1) : 0;
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
  ljp_memo_note(notes, (uint64_t)(uintptr_t)&vm->resizing, word, 0);
}

bool ljp_vm_resizing(const struct ljp_vm *vm)
{
  if (LJP_LIKELY(!atomic_load_explicit(&vm->resizing, memory_order_relaxed)))
    return false;
  struct ljp_vm *mine = (struct ljp_vm *)(uintptr_t)vm;
  atomic_store_explicit(&mine->deferred, true, memory_order_relaxed);
  return true;
}
