/*
** Sites: addresses from which host code returns to the guest, and where the
** topmost segment begins there (spine.h, RFC 3). Runs on the VM's own thread,
** in the allocator, so it reads the VM's words directly.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_vm.h"

#include "src/luajit/asm/vmmap.h"
#include "src/luajit/frames/place.h"
#include "src/luajit/spine.h"

/* -- Compiled code --------------------------------------------------------- */

static void site_compiled(const struct ljp_guest_heap *heap,
                          const struct ljp_guest_regs *regs,
                          struct ljp_guest_site *site)
{
  const global_State *g = (const global_State *)(uintptr_t)heap->g;
  struct ljp_place place = {.exact = LJP_EXACT_ROOT};
  struct ljp_start at = {.base = (uint64_t)(uintptr_t)mref(g->jit_base, void)};
  struct ljp_thread thread;
  struct ljp_function fn;
  struct ljp_stack stack = {.frames = site->frame, .limit = LJP_SITE_FRAMES};
  uint64_t rip = regs->rip - 1;
  bool known;
  if (!at.base || !ljp_thread_read(&thread, gcrefu(g->cur_L)) ||
      thread.g != heap->g || ljp_thread_at_bottom(&thread, at.base) ||
      !ljp_trace_find(thread.vm, rip, &place.trace))
    return;
  if (!ljp_place_find(&place, rip, false))
    place.exact = LJP_EXACT_ROOT;
  if (!ljp_place_frames(&place, &at, &stack, &fn, &known) || !known ||
      fn.ffid != FF_LUA || !fn.ref)
    return;
  for (uint32_t i = 0, last = stack.count; i + 1 < last--; i++) {
    uint64_t frame = site->frame[i]; /* root first */
    site->frame[i] = site->frame[last];
    site->frame[last] = frame;
  }
  site->count = stack.count;
  site->code = fn.proto + sizeof(GCproto);
  site->kind = LJP_SITE_TRACE;
}

static bool site_start_compiled(const struct ljp_guest_heap *heap,
                                const struct ljp_guest_site *site,
                                const struct ljp_guest_regs *regs,
                                struct ljp_guest_start *start)
{
  const global_State *g = (const global_State *)(uintptr_t)heap->g;
  const lua_State *L = &gcref(g->cur_L)->th;
  const uint64_t *frame = mref(g->jit_base, const uint64_t);
  start->L = (uint64_t)(uintptr_t)L;
  start->cframe = (uint64_t)(uintptr_t)cframe_raw(L->cframe);
  if (!frame || G(L) != g || start->cframe < regs->sp ||
      frame <= (const uint64_t *)tvref(L->stack) + 1 + LJ_FR2 ||
      !ljp_slot_runs(frame[-2], site->code))
    return false;
  start->base = (uint64_t)(uintptr_t)frame;
  if ((frame[-1] & FRAME_TYPEP) == FRAME_VARG)
    start->base -= frame[-1] & ~(uint64_t)FRAME_TYPEP;
  start->pc = 0;
  start->skip = true;
  return true;
}

/* -- Both ------------------------------------------------------------------ */

void ljp_guest_site(const struct ljp_guest_heap *heap,
                    const struct ljp_guest_regs *regs,
                    struct ljp_guest_site *site)
{
  site->kind = LJP_SITE_NONE;
  site->count = 0;
  if (!ljp_guest_in_vm(regs->rip)) {
    site_compiled(heap, regs, site);
    return;
  }
  /* The offset of the call. */
  uint32_t offset =
      (uint32_t)(regs->rip - (uint64_t)(uintptr_t)lj_vm_asm_begin) - 1;
  uint32_t word;
  if (!ljp_vmmap_word(offset, &word))
    return;
  site->mode = LJP_VMMAP_MODE(word);
  if (site->mode == LJP_VM_EXIT)
    site->kind = LJP_SITE_EXIT;
  if (site->mode != LJP_VM_RUN && site->mode != LJP_VM_ENTER &&
      site->mode != LJP_VM_EITHER)
    return;
  site->in_rbp = !LJP_VMMAP_LBASE(word);
  site->reads_frame = site->mode == LJP_VM_EITHER;
  site->reads_pc = site->reads_frame || site->mode == LJP_VM_RUN;
  site->cframe_bytes = LJP_VMMAP_BYTES(word);
  if (LJP_VMMAP_LBASE(word) || LJP_VMMAP_RBP(word))
    site->kind = LJP_SITE_VM;
}

bool ljp_guest_start_at(const struct ljp_guest_heap *heap,
                        const struct ljp_guest_site *site,
                        const struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start)
{
  if (site->kind == LJP_SITE_TRACE)
    return site_start_compiled(heap, site, regs, start);
  if (site->kind != LJP_SITE_VM)
    return false;
  start->cframe = regs->sp + site->cframe_bytes;
  start->L = ((const uint64_t *)(uintptr_t)start->cframe)[LJP_CF_L];
  start->skip = false;
  const lua_State *L = (const lua_State *)(uintptr_t)start->L;
  /* An error has unwound the C frame, so it has no guest frames any more. */
  if ((uint64_t)(uintptr_t)cframe_raw(L->cframe) != start->cframe ||
      (uint64_t)(uintptr_t)G(L) != heap->g)
    return false;
  start->base = site->in_rbp ? *regs->rbp : (uint64_t)(uintptr_t)L->base;
  start->pc = 0;
  if (site->mode == LJP_VM_RUN) {
    start->pc = *regs->rbx & ~UINT64_C(3);
  } else if (site->mode == LJP_VM_EITHER) {
    /* Is the frame whole? By the rule of vm_frame_whole(), which also checks
    ** links. */
    const uint64_t *frame = (const uint64_t *)(uintptr_t)start->base;
    if ((start->base & 7) || (int64_t)frame[-2] >> 47 != (int32_t)LJ_TFUNC ||
        frame[-1] != *regs->rbx ||
        ((const GCfuncC *)(uintptr_t)(frame[-2] & LJ_GCVMASK))->ffid <= FF_C)
      return false;
  }
  return true;
}
