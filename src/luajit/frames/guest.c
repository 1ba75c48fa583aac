/*
** The guest walk through the interpreter: what the map of the VM says of the
** interrupted (or calling) instruction, turned into guest frames.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_vm.h"

#include "src/luajit/frames/frames.h"
#include "src/luajit/vm/vmmap.h"

#include "vmmap.inc"

_Static_assert(offsetof(lua_State, base) == LJP_VMMAP_L_BASE,
               "vmmap.lua knows another lua_State");
_Static_assert(offsetof(lua_State, cframe) == LJP_VMMAP_L_CFRAME,
               "vmmap.lua knows another lua_State");
_Static_assert(offsetof(GCfuncL, pc) == LJP_VMMAP_FN_PC,
               "vmmap.lua knows another GCfuncL");

/* A routine of the VM that behaves like a C function: pushed says how far it
** has come in saving rbp, rbx, r15, r14 and making its frame. */
LJP_SIGSAFE static bool step_host(struct ljp_regs *regs, uint32_t pushed,
                                  struct ljp_stack *stack)
{
  static const uint8_t order[] = {LJP_RBP, LJP_RBX, LJP_R15, LJP_R14};
  uint64_t cfa = regs->r[LJP_RSP] + pushed + 8, value;
  for (uint32_t i = 0; i < 4 && pushed >= 8 * (i + 1); i++) {
    if (!ljp_load_noted(cfa - 16 - 8 * i, &value, regs->notes)) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    regs->r[order[i]] = value;
    regs->known |= 1u << order[i];
  }
  if (!ljp_load_noted(cfa - 8, &value, regs->notes)) {
    stack->cut = LJP_CUT_BAD_READ;
    return false;
  }
  regs->r[LJP_RIP] = value;
  regs->r[LJP_RSP] = cfa;
  /* A leaf routine leaves its caller's BASE alone; a frame does not. */
  if (pushed)
    regs->known &= ~(1u << LJP_RDX);
  regs->exact = false;
  return true;
}

/* -- The interpreter --------------------------------------------------------
 */

bool ljp_guest_in_vm(uint64_t rip)
{
  return rip - (uint64_t)(uintptr_t)lj_vm_asm_begin < LJP_VMMAP_CODE_SIZE;
}

/* lj_vm_ffi_call() keeps rbp as frame pointer and saves rbx below it. */
LJP_SIGSAFE static enum ljp_guest_result
step_ffi_call(struct ljp_regs *regs, uint32_t offset, struct ljp_stack *stack)
{
  uint64_t sp = regs->r[LJP_RSP], rbp, rbx = 0, ret;
  bool saved_rbx = false;
  /* push rbp (1 byte); mov rbp,rsp (3); push rbx (1) ... leave (1); ret */
  if (offset == 0 || offset == LJP_VMMAP_CODE_SIZE - LJP_VMMAP_FFI_CALL - 1)
    return step_host(regs, 0, stack) ? LJP_GUEST_STEPPED : LJP_GUEST_STOPPED;
  if (offset == 1) {
    if (!step_host(regs, 8, stack))
      return LJP_GUEST_STOPPED;
    return LJP_GUEST_STEPPED;
  }
  uint64_t fp = regs->r[LJP_RBP];
  ljp_memo_use(regs->notes, 1u << LJP_RBP);
  if (!KNOWN(regs, LJP_RBP) || fp < sp) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (offset > 4) {
    saved_rbx = true;
    if (!ljp_load_noted(fp - 8, &rbx, regs->notes)) {
      stack->cut = LJP_CUT_BAD_READ;
      return LJP_GUEST_STOPPED;
    }
  }
  if (!ljp_load_noted(fp, &rbp, regs->notes) ||
      !ljp_load_noted(fp + 8, &ret, regs->notes)) {
    stack->cut = LJP_CUT_BAD_READ;
    return LJP_GUEST_STOPPED;
  }
  if (saved_rbx) {
    regs->r[LJP_RBX] = rbx;
    regs->known |= 1u << LJP_RBX;
  }
  regs->r[LJP_RBP] = rbp;
  regs->r[LJP_RIP] = ret;
  regs->r[LJP_RSP] = fp + 16;
  regs->known &= LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  regs->exact = false;
  return LJP_GUEST_STEPPED;
}

/* BASE of the top frame by the map's word. */
LJP_SIGSAFE static bool find_base(const struct ljp_thread *thread,
                                  const struct ljp_regs *regs, uint32_t word,
                                  uint64_t *base)
{
  if (LJP_VMMAP_RDX(word) && KNOWN(regs, LJP_RDX)) {
    *base = regs->r[LJP_RDX];
    return true;
  }
  if (LJP_VMMAP_LBASE(word))
    return ljp_load_noted(thread->L + offsetof(lua_State, base), base,
                          thread->notes);
  if (LJP_VMMAP_RBP(word) && KNOWN(regs, LJP_RBP)) {
    *base = regs->r[LJP_RBP];
    return true;
  }
  return false;
}

/* The first segment of this Lua thread. */
LJP_SIGSAFE static bool first_segment(struct ljp_guest *guest,
                                      const struct ljp_thread *thread,
                                      const struct ljp_regs *regs,
                                      uint32_t word, uint64_t cframe,
                                      struct ljp_stack *stack)
{
  struct ljp_start at = {.cframe = cframe, .regs = regs};
  ljp_memo_use(regs->notes, 1u << LJP_RBX | 1u << LJP_RBP);
  guest->mark = stack->count;
  uint32_t mode = LJP_VMMAP_MODE(word);
  uint64_t pc = KNOWN(regs, LJP_RBX) ? regs->r[LJP_RBX] : 0;
  if (mode == LJP_VM_RET_PC) {
    ljp_guest_come_to(guest, thread, pc);
    return true;
  }
  if (mode == LJP_VM_RET_NEG) {
    ljp_guest_come_to(guest, thread, -pc);
    return true;
  }
  if (mode == LJP_VM_CONT && KNOWN(regs, LJP_RDX) && KNOWN(regs, LJP_RBP))
    at.base = regs->r[LJP_RBP]; /* of the metamethod that returns */
  else if (!find_base(thread, regs, word, &at.base)) {
    stack->cut = LJP_CUT_NO_BASE;
    return false;
  }
  switch (mode) {
  case LJP_VM_RUN:
    at.pc = pc & ~UINT64_C(3); /* bit 0 marks a hot call */
    break;
  case LJP_VM_ENTER:
    break;
  case LJP_VM_SAVEDPC:
    at.use_link = true;
    if (!ljp_load_noted(cframe + LJP_CF_PC * 8, &at.link, thread->notes)) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    break;
  case LJP_VM_LINKX:
    pc ^= FRAME_C;
    /* fallthrough */
  case LJP_VM_LINK:
    at.use_link = at.skip_top = true;
    at.link = pc;
    break;
  case LJP_VM_EITHER: {
    struct ljp_function fn;
    struct ljp_link below;
    uint64_t slot, link;
    ljp_memo_blur(thread->notes);
    if (!ljp_load(at.base - 2 * sizeof(TValue), &slot) ||
        !ljp_load(at.base - sizeof(TValue), &link)) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    /* Results have been put over the frame, its function first; or an error
    ** has moved L->base down to a frame that is whole. */
    bool whole = ljp_read_function(slot, &fn) &&
                 (link == pc ? fn.ffid > FF_C
                             : ljp_follow(thread, at.base, link, &below));
    if (!whole) {
      at.use_link = at.skip_top = true;
      at.link = pc;
    }
    break;
  }
  case LJP_VM_DELTA: /* a pcall or metamethod frame was left */
    at.base -= pc;
    break;
  case LJP_VM_CONTDELTA:
    at.use_link = at.skip_top = true;
    at.link = pc | FRAME_CONT;
    break;
  case LJP_VM_CONT:
    at.use_link = at.skip_top = true;
    at.link = (at.base - regs->r[LJP_RDX]) | FRAME_CONT;
    break;
  case LJP_VM_CALLING:
    if ((pc & FRAME_TYPE) == FRAME_C) { /* the call comes from C */
      ljp_guest_come_to(guest, thread, at.base);
      return true;
    }
    at.pc = (pc & FRAME_TYPE) == FRAME_LUA ? pc : 0;
    break;
  case LJP_VM_RET_SUB:
    ljp_guest_come_to(guest, thread, at.base - pc);
    return true;
  case LJP_VM_RET_BASE:
    ljp_guest_come_to(guest, thread, at.base);
    return true;
  default:
    stack->cut = LJP_CUT_NO_BASE;
    return false;
  }
  return ljp_walk_segment(guest, thread, at, stack);
}

/* A position of no use need not be noted: C functions have none. */
LJP_SIGSAFE static bool needs_position(const struct ljp_memo *notes,
                                       uint64_t base)
{
  struct ljp_function fn;
  uint64_t slot;
  return !ljp_memo_is_lean(notes) ||
         !ljp_load(base - 2 * sizeof(TValue), &slot) ||
         !ljp_read_function(slot, &fn) || fn.ffid == FF_LUA;
}

/* A segment below others of the same Lua thread: its top frame is the one
** that called into C; entering: that is yet to run, as an FFI callback. */
LJP_SIGSAFE static bool next_segment(struct ljp_guest *guest,
                                     const struct ljp_thread *thread,
                                     const struct ljp_regs *regs,
                                     uint64_t cframe, bool entering,
                                     struct ljp_stack *stack)
{
  struct ljp_start at = {.base = guest->base, .cframe = cframe, .regs = regs};
  if (ljp_at_bottom(thread, at.base)) {
    /* More C frames than frames that were called from C: for an instruction
    ** or two an error has moved L->base, but not yet the C frames. Which of
    ** the frames so far belong where is not known. */
    stack->count = guest->mark;
    stack->cut = LJP_CUT_BAD_FRAME;
    return false;
  }
  if (KNOWN(regs, LJP_RBX) && !entering) {
    if (needs_position(regs->notes, at.base)) {
      ljp_memo_use(regs->notes, 1u << LJP_RBX);
      at.pc = regs->r[LJP_RBX] & ~UINT64_C(3);
    }
  } else if (!ljp_load_noted(cframe + LJP_CF_PC * 8, &at.pc, thread->notes)) {
    ljp_memo_blur(thread->notes);
    at.pc = 0;
  }
  return ljp_walk_segment(guest, thread, at, stack);
}

void ljp_guest_note(struct ljp_guest *guest, const struct ljp_thread *thread,
                    enum ljp_vmstate state)
{
  if (!guest->vm)
    guest->vm = ljp_vm_number(thread->vm);
  if (guest->state == LJP_VMSTATE_UNKNOWN)
    guest->state = state;
}

/* A trace exit: the registers are in the middle of being saved or restored,
** the VM's state says where its C frame is. */
LJP_SIGSAFE static enum ljp_guest_result step_exit(struct ljp_guest *guest,
                                                   struct ljp_regs *regs,
                                                   uint32_t word,
                                                   struct ljp_stack *stack)
{
  struct ljp_thread thread;
  uint64_t g = ljp_vm_from_dispatch(regs), L;
  ljp_memo_use(regs->notes, LJP_REGS_ALL);
  ljp_memo_blur(regs->notes);
  if (!g || !ljp_load(g + offsetof(global_State, cur_L), &L) ||
      !ljp_guest_thread(&thread, L)) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_vm_resizing(thread.vm))
    return LJP_GUEST_DEFER;
  uint64_t cframe = ljp_cframe_above(L, regs->r[LJP_RSP]);
  if (!cframe) {
    stack->cut = LJP_CUT_BAD_FRAME;
    return LJP_GUEST_STOPPED;
  }
  struct ljp_start at = {.cframe = cframe, .regs = regs, .compiled = true};
  bool on_trace = false;
  if (guest->L == L ||
      (guest->left_count && ljp_guest_come_back(guest, L, 0, stack))) {
    at.base = guest->base;
  } else if (LJP_VMMAP_RDX(word) && KNOWN(regs, LJP_RDX)) {
    at.base = regs->r[LJP_RDX];
    at.pc = regs->r[LJP_RBX];
  } else {
    if (!ljp_load(g + offsetof(global_State, jit_base), &at.base))
      at.base = 0;
    on_trace = at.base && regs->exact;
    if (!at.base) {
      if (!ljp_load(L + offsetof(lua_State, base), &at.base))
        at.base = 0;
      if (!ljp_load(cframe + LJP_CF_PC * 8, &at.pc))
        at.pc = 0;
    }
  }
  ljp_guest_note(guest, &thread, LJP_VMSTATE_EXIT);
  thread.notes = regs->notes;
  if (!ljp_walk_exit(guest, &thread, at, on_trace, stack))
    return LJP_GUEST_STOPPED;
  return ljp_leave_compiled(regs, cframe, stack) ? LJP_GUEST_STEPPED
                                                 : LJP_GUEST_STOPPED;
}

LJP_SIGSAFE static enum ljp_vmstate state_at(uint32_t offset)
{
  (void)offset;
  return LJP_VMSTATE_INTERP;
}

enum ljp_guest_result ljp_guest_step_vm(struct ljp_guest *guest,
                                        struct ljp_regs *regs,
                                        struct ljp_stack *stack)
{
  uint64_t rip = regs->r[LJP_RIP];
  uint32_t offset = (uint32_t)(rip - (uint64_t)(uintptr_t)lj_vm_asm_begin);
  /* The bytes of a call behind its first hold what is true in the callee. */
  if (!regs->exact && offset)
    offset--;
  if (regs->exact && !ljp_stack_add(stack, ljp_frame(LJP_FRAME_VM, 0, rip)))
    return LJP_GUEST_STOPPED;
  if (offset >= LJP_VMMAP_FFI_CALL)
    return step_ffi_call(regs, offset - LJP_VMMAP_FFI_CALL, stack);
  uint32_t word = vmmap[offset];
  uint32_t mode = LJP_VMMAP_MODE(word);
  if (mode == LJP_VM_HOST)
    return step_host(regs, LJP_VMMAP_BYTES(word), stack) ? LJP_GUEST_STEPPED
                                                         : LJP_GUEST_STOPPED;
  if (mode == LJP_VM_UNKNOWN) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (mode == LJP_VM_EXIT)
    return step_exit(guest, regs, word, stack);

  uint64_t cframe = regs->r[LJP_RSP] + LJP_VMMAP_BYTES(word), L;
  struct ljp_thread thread;
  if (!ljp_load_noted(cframe + LJP_CF_L * 8, &L, regs->notes) ||
      !ljp_guest_thread_noted(&thread, L, regs->notes)) {
    ljp_memo_blur(regs->notes);
    /* Before lj_ccallback_enter() has said whose frame this is. */
    if (mode == LJP_VM_CALLBACK)
      return step_host(regs, LJP_CF_WORDS * 8 - 8, stack) ? LJP_GUEST_STEPPED
                                                          : LJP_GUEST_STOPPED;
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_vm_resizing(thread.vm))
    return LJP_GUEST_DEFER;
  ljp_vm_note_resizing(thread.vm, regs->notes);
  ljp_guest_note(guest, &thread, state_at(offset));
  bool ok;
  if (guest->L == L) {
    ok = next_segment(guest, &thread, regs, cframe, mode == LJP_VM_CALLBACK,
                      stack);
  } else if (!ljp_cframe_linked(L, cframe, regs->notes)) {
    ok = true; /* unwound by an error: it has no guest frames any more */
  } else if (guest->left_count && ljp_guest_come_back(guest, L, 0, stack)) {
    ok = next_segment(guest, &thread, regs, cframe, mode == LJP_VM_CALLBACK,
                      stack);
  } else if (guest->forgot) {
    stack->cut = LJP_CUT_BAD_FRAME; /* that may be one of them */
    return LJP_GUEST_STOPPED;
  } else if (mode == LJP_VM_CALLBACK) {
    uint64_t base, link = 0, kind = 0, pc;
    ljp_memo_blur(regs->notes);
    ok = ljp_load(L + offsetof(lua_State, base), &base);
    /* Of the function's beginning, while its arguments are made. */
    if (!ljp_load(cframe + LJP_CF_PC * 8, &pc))
      pc = 0;
    if (ok && ljp_load(base - sizeof(TValue), &link) &&
        (link & FRAME_TYPEP) == FRAME_CONT &&
        ljp_load(base - 4 * sizeof(TValue), &kind) &&
        kind == LJ_CONT_FFI_CALLBACK)
      ok = ljp_walk_segment(
          guest, &thread,
          (struct ljp_start){
              .base = base, .pc = pc, .cframe = cframe, .regs = regs},
          stack);
    else if (ok)
      ljp_guest_come_to(guest, &thread, base);
  } else {
    ok = first_segment(guest, &thread, regs, word, cframe, stack);
  }
  if (!ok || !ljp_leave(regs, cframe, stack))
    return LJP_GUEST_STOPPED;
  return LJP_GUEST_STEPPED;
}

/* -- Sites --------------------------------------------------------------------
 */

void ljp_guest_site(const struct ljp_guest_heap *heap,
                    const struct ljp_guest_regs *regs,
                    struct ljp_guest_site *site)
{
  site->kind = LJP_SITE_NONE;
  site->count = 0;
  if (!ljp_guest_in_vm(regs->rip)) {
    ljp_site_compiled(heap, regs, site);
    return;
  }
  /* That of the call. */
  uint32_t offset =
      (uint32_t)(regs->rip - (uint64_t)(uintptr_t)lj_vm_asm_begin) - 1;
  if (offset >= LJP_VMMAP_FFI_CALL)
    return;
  uint32_t word = vmmap[offset];
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
    return ljp_start_compiled(heap, site, regs, start);
  if (site->kind != LJP_SITE_VM)
    return false;
  start->cframe = regs->sp + site->cframe_bytes;
  start->L = ((const uint64_t *)(uintptr_t)start->cframe)[LJP_CF_L];
  start->skip = false;
  const lua_State *L = (const lua_State *)(uintptr_t)start->L;
  /* Unwound by an error: it has no guest frames any more. */
  if ((uint64_t)(uintptr_t)cframe_raw(L->cframe) != start->cframe ||
      (uint64_t)(uintptr_t)G(L) != heap->g)
    return false;
  start->base = site->in_rbp ? *regs->rbp : (uint64_t)(uintptr_t)L->base;
  start->pc = 0;
  if (site->mode == LJP_VM_RUN) {
    start->pc = *regs->rbx & ~UINT64_C(3);
  } else if (site->mode == LJP_VM_EITHER) {
    /* Whole, as first_segment() has it; links are checked there only. */
    const uint64_t *frame = (const uint64_t *)(uintptr_t)start->base;
    if ((start->base & 7) || (int64_t)frame[-2] >> 47 != (int32_t)LJ_TFUNC ||
        frame[-1] != *regs->rbx ||
        ((const GCfuncC *)(uintptr_t)(frame[-2] & LJ_GCVMASK))->ffid <= FF_C)
      return false;
  }
  return true;
}
