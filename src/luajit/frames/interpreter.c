/*
** The guest walk through the interpreter. It looks up the interrupted (or
** calling) instruction in the map of the VM's assembly, which says how to find
** the guest frames.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_vm.h"

#define LJP_VMMAP_TABLE
#include "src/luajit/asm/vmmap.h"
#include "src/luajit/frames/walk.h"

_Static_assert(offsetof(lua_State, base) == LJP_VMMAP_L_BASE,
               "vmmap.lua knows another lua_State");
_Static_assert(offsetof(lua_State, cframe) == LJP_VMMAP_L_CFRAME,
               "vmmap.lua knows another lua_State");
_Static_assert(offsetof(GCfuncL, pc) == LJP_VMMAP_FN_PC,
               "vmmap.lua knows another GCfuncL");

bool ljp_guest_in_vm(uint64_t rip)
{
  return rip - (uint64_t)(uintptr_t)lj_vm_asm_begin < LJP_VMMAP_CODE_SIZE;
}

bool ljp_vmmap_word(uint32_t offset, uint32_t *word)
{
  if (offset >= LJP_VMMAP_FFI_CALL)
    return false;
  *word = vmmap[offset];
  return true;
}

/* -- Routines without a guest frame ---------------------------------------- */

bool ljp_vm_step_host(struct ljp_regs *regs, uint32_t pushed,
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
  /* A leaf routine preserves its caller's BASE; a routine with a frame does
  ** not. */
  if (pushed)
    regs->known &= ~(1u << LJP_RDX);
  regs->exact = false;
  return true;
}

/* BASE of the top frame, according to the map's word. */
LJP_SIGSAFE static bool vm_find_base(const struct ljp_thread *thread,
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

/* -- Segments -------------------------------------------------------------- */

/* Mode EITHER: is the frame at BASE whole? If not, results have overwritten the
** frame, beginning with its function, and pc is its link. If an error has moved
** L->base down, the frame there is whole. False: the frame cannot be read. */
LJP_SIGSAFE static bool vm_frame_whole(const struct ljp_thread *thread,
                                       uint64_t base, uint64_t pc, bool *whole)
{
  struct ljp_function fn;
  struct ljp_link below;
  uint64_t slot, link;
  ljp_memo_blur(thread->notes);
  if (!ljp_load(base - 2 * sizeof(TValue), &slot) ||
      !ljp_load(base - sizeof(TValue), &link))
    return false;
  *whole = ljp_function_read(slot, &fn) &&
           (link == pc ? fn.ffid > FF_C
                       : ljp_link_follow(thread, base, link, &below));
  return true;
}

/* Are the registers known that the mode needs, besides BASE? Where rbx is only
** the position of a whole frame, the frame has no line without it. */
LJP_SIGSAFE static bool vm_mode_known(const struct ljp_regs *regs,
                                      uint32_t mode)
{
  if (mode == LJP_VM_CONT)
    return KNOWN(regs, LJP_RDX) && KNOWN(regs, LJP_RBP);
  return KNOWN(regs, LJP_RBX) || mode == LJP_VM_RUN || mode == LJP_VM_ENTER ||
         mode == LJP_VM_SAVEDPC || mode == LJP_VM_RET_BASE;
}

/* Sets what the mode says of a segment that is not empty; pc is rbx. Returns
** why it cannot be walked, or 0. */
LJP_SIGSAFE static unsigned vm_start_segment(const struct ljp_thread *thread,
                                             const struct ljp_regs *regs,
                                             uint32_t mode, uint64_t pc,
                                             struct ljp_start *at)
{
  bool whole;
  switch (mode) {
  case LJP_VM_RUN:
    at->pc = pc & ~UINT64_C(3); /* bit 0 means a hot call */
    break;
  case LJP_VM_ENTER:
    break;
  case LJP_VM_SAVEDPC:
    at->use_link = true;
    if (!ljp_load_noted(at->cframe + LJP_CF_PC * 8, &at->link, thread->notes))
      return LJP_CUT_BAD_READ;
    break;
  case LJP_VM_LINKX:
    pc ^= FRAME_C;
    /* fallthrough */
  case LJP_VM_LINK:
    at->use_link = at->skip_top = true;
    at->link = pc;
    break;
  case LJP_VM_EITHER:
    if (!vm_frame_whole(thread, at->base, pc, &whole))
      return LJP_CUT_BAD_READ;
    if (!whole) {
      at->use_link = at->skip_top = true;
      at->link = pc;
    }
    break;
  case LJP_VM_DELTA: /* a pcall or metamethod frame was left */
    at->base -= pc;
    break;
  case LJP_VM_CONTDELTA:
    at->use_link = at->skip_top = true;
    at->link = pc | FRAME_CONT;
    break;
  case LJP_VM_CONT:
    at->use_link = at->skip_top = true;
    at->link = (at->base - regs->r[LJP_RDX]) | FRAME_CONT;
    break;
  case LJP_VM_CALLING:
    at->pc = (pc & FRAME_TYPE) == FRAME_LUA ? pc : 0;
    break;
  default:
    return LJP_CUT_NO_BASE;
  }
  return 0;
}

/* The first segment of this Lua thread. */
LJP_SIGSAFE static bool vm_first_segment(struct ljp_guest *guest,
                                         const struct ljp_thread *thread,
                                         const struct ljp_regs *regs,
                                         uint32_t word, uint64_t cframe,
                                         struct ljp_stack *stack)
{
  struct ljp_start at = {.cframe = cframe, .regs = regs};
  ljp_memo_use(regs->notes, 1u << LJP_RBX | 1u << LJP_RBP);
  guest->first = stack->count;
  uint32_t mode = LJP_VMMAP_MODE(word);
  uint64_t pc = KNOWN(regs, LJP_RBX) ? regs->r[LJP_RBX] : 0;
  if (!vm_mode_known(regs, mode)) {
    stack->cut = LJP_CUT_NO_BASE;
    return false;
  }
  if (mode == LJP_VM_CONT) {
    at.base = regs->r[LJP_RBP]; /* of the metamethod that returns */
  } else if (mode != LJP_VM_RET_PC && mode != LJP_VM_RET_NEG &&
             !vm_find_base(thread, regs, word, &at.base)) {
    stack->cut = LJP_CUT_NO_BASE;
    return false;
  }
  /* In these modes the segment is empty. */
  switch (mode) {
  case LJP_VM_RET_PC:
    ljp_guest_enter(guest, thread, pc);
    return true;
  case LJP_VM_RET_NEG:
    ljp_guest_enter(guest, thread, -pc);
    return true;
  case LJP_VM_RET_SUB:
    ljp_guest_enter(guest, thread, at.base - pc);
    return true;
  case LJP_VM_RET_BASE:
    ljp_guest_enter(guest, thread, at.base);
    return true;
  case LJP_VM_CALLING:
    if ((pc & FRAME_TYPE) == FRAME_C) { /* the call comes from C */
      ljp_guest_enter(guest, thread, at.base);
      return true;
    }
    break;
  default:
    break;
  }
  unsigned cut = vm_start_segment(thread, regs, mode, pc, &at);
  if (cut) {
    stack->cut = (enum ljp_cut)cut;
    return false;
  }
  return ljp_walk_segment(guest, thread, at, stack);
}

/* A lean memo notes a position only if it is needed. C functions have none. */
LJP_SIGSAFE static bool vm_needs_position(const struct ljp_memo *notes,
                                          uint64_t base)
{
  struct ljp_function fn;
  uint64_t slot;
  return !ljp_memo_is_lean(notes) ||
         !ljp_load(base - 2 * sizeof(TValue), &slot) ||
         !ljp_function_read(slot, &fn) || fn.ffid == FF_LUA;
}

/* A segment below others of the same Lua thread. Its top frame has called into
** C, or (entering) is about to run as an FFI callback. */
LJP_SIGSAFE static bool vm_next_segment(struct ljp_guest *guest,
                                        const struct ljp_thread *thread,
                                        const struct ljp_regs *regs,
                                        uint64_t cframe, bool entering,
                                        struct ljp_stack *stack)
{
  struct ljp_start at = {.base = guest->base, .cframe = cframe, .regs = regs};
  if (ljp_thread_at_bottom(thread, at.base)) {
    /* There are more C frames than frames that were called from C. For one or
    ** two instructions an error has moved L->base, but not yet the C frames. We
    ** cannot tell which of the frames so far belong to which C frame. */
    stack->count = guest->first;
    stack->cut = LJP_CUT_BAD_FRAME;
    return false;
  }
  if (KNOWN(regs, LJP_RBX) && !entering) {
    if (vm_needs_position(regs->notes, at.base)) {
      ljp_memo_use(regs->notes, 1u << LJP_RBX);
      at.pc = regs->r[LJP_RBX] & ~UINT64_C(3);
    }
  } else if (!ljp_load_noted(cframe + LJP_CF_PC * 8, &at.pc, thread->notes)) {
    ljp_memo_blur(thread->notes);
    at.pc = 0;
  }
  return ljp_walk_segment(guest, thread, at, stack);
}

/* -- Trace exits ----------------------------------------------------------- */

/* A trace exit: the registers are being saved or restored, so the VM's state
** says where the C frame is. */
LJP_SIGSAFE static enum ljp_guest_result vm_step_exit(struct ljp_guest *guest,
                                                      struct ljp_regs *regs,
                                                      uint32_t word,
                                                      struct ljp_stack *stack)
{
  struct ljp_thread thread;
  uint64_t g = ljp_vm_from_dispatch(regs), L;
  ljp_memo_use(regs->notes, LJP_REGS_ALL);
  ljp_memo_blur(regs->notes);
  if (!g || !ljp_load(g + offsetof(global_State, cur_L), &L) ||
      !ljp_thread_read(&thread, L)) {
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
      (guest->left_count && ljp_guest_return(guest, L, 0, stack))) {
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
  return ljp_cframe_leave_compiled(regs, cframe, stack) ? LJP_GUEST_STEPPED
                                                        : LJP_GUEST_STOPPED;
}

/* The first segment of a thread that enters or leaves an FFI callback: the
** continuation at L->base tells whether there is one. */
LJP_SIGSAFE static bool vm_callback_segment(struct ljp_guest *guest,
                                            const struct ljp_thread *thread,
                                            const struct ljp_regs *regs,
                                            uint64_t cframe,
                                            struct ljp_stack *stack)
{
  struct ljp_start at = {.cframe = cframe, .regs = regs};
  uint64_t link = 0, kind = 0;
  ljp_memo_blur(regs->notes);
  if (!ljp_load(thread->L + offsetof(lua_State, base), &at.base))
    return false;
  /* The position of the function's beginning, while its arguments are made. */
  if (!ljp_load(cframe + LJP_CF_PC * 8, &at.pc))
    at.pc = 0;
  if (ljp_load(at.base - sizeof(TValue), &link) &&
      (link & FRAME_TYPEP) == FRAME_CONT &&
      ljp_load(at.base - 4 * sizeof(TValue), &kind) &&
      kind == LJ_CONT_FFI_CALLBACK)
    return ljp_walk_segment(guest, thread, at, stack);
  ljp_guest_enter(guest, thread, at.base);
  return true;
}

/* -- One step -------------------------------------------------------------- */

enum ljp_guest_result ljp_guest_step_vm(struct ljp_guest *guest,
                                        struct ljp_regs *regs,
                                        struct ljp_stack *stack)
{
  uint64_t rip = regs->r[LJP_RIP];
  uint32_t offset = (uint32_t)(rip - (uint64_t)(uintptr_t)lj_vm_asm_begin);
  /* All bytes of a call but the first have the state inside the callee. */
  if (!regs->exact && offset)
    offset--;
  if (regs->exact && !ljp_stack_add(stack, ljp_frame(LJP_FRAME_VM, 0, rip)))
    return LJP_GUEST_STOPPED;
  if (offset >= LJP_VMMAP_FFI_CALL)
    return ljp_vm_step_ffi_call(regs, offset - LJP_VMMAP_FFI_CALL, stack);
  uint32_t word = vmmap[offset];
  uint32_t mode = LJP_VMMAP_MODE(word);
  if (mode == LJP_VM_HOST)
    return ljp_vm_step_host(regs, LJP_VMMAP_BYTES(word), stack)
               ? LJP_GUEST_STEPPED
               : LJP_GUEST_STOPPED;
  if (mode == LJP_VM_UNKNOWN) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (mode == LJP_VM_EXIT)
    return vm_step_exit(guest, regs, word, stack);

  uint64_t cframe = regs->r[LJP_RSP] + LJP_VMMAP_BYTES(word), L;
  struct ljp_thread thread;
  if (!ljp_load_noted(cframe + LJP_CF_L * 8, &L, regs->notes) ||
      !ljp_thread_read_noted(&thread, L, regs->notes)) {
    ljp_memo_blur(regs->notes);
    /* lj_ccallback_enter() has not linked the frame to a thread yet. */
    if (mode == LJP_VM_CALLBACK)
      return ljp_vm_step_host(regs, LJP_CF_WORDS * 8 - 8, stack)
                 ? LJP_GUEST_STEPPED
                 : LJP_GUEST_STOPPED;
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_vm_resizing(thread.vm))
    return LJP_GUEST_DEFER;
  ljp_vm_note_resizing(thread.vm, regs->notes);
  /* A builtin writes its result over the slot that names it, so its frame may
  ** be gone while it still runs. */
  ljp_guest_note(guest, &thread,
                 LJP_VMMAP_BUILTIN(word) ? LJP_VMSTATE_BUILTIN
                                         : LJP_VMSTATE_INTERP);
  bool ok;
  if (guest->L == L) {
    ok = vm_next_segment(guest, &thread, regs, cframe, mode == LJP_VM_CALLBACK,
                         stack);
  } else if (!ljp_cframe_linked(L, cframe, regs->notes)) {
    ok = true; /* an error has unwound it: it has no guest frames any more */
  } else if (guest->left_count && ljp_guest_return(guest, L, 0, stack)) {
    ok = vm_next_segment(guest, &thread, regs, cframe, mode == LJP_VM_CALLBACK,
                         stack);
  } else if (guest->forgot) {
    stack->cut = LJP_CUT_BAD_FRAME; /* L may be a forgotten thread */
    return LJP_GUEST_STOPPED;
  } else if (mode == LJP_VM_CALLBACK) {
    ok = vm_callback_segment(guest, &thread, regs, cframe, stack);
  } else {
    ok = vm_first_segment(guest, &thread, regs, word, cframe, stack);
  }
  if (!ok || !ljp_cframe_leave(regs, cframe, stack))
    return LJP_GUEST_STOPPED;
  return LJP_GUEST_STEPPED;
}
