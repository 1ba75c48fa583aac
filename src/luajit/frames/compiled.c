/*
** The guest walk through compiled code: which trace an address lies in, the
** frames there (place.c), and the frames below the trace. Also the stubs
** through which C calls Lua back.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_ctype.h"
#include "lj_ccallback.h"

#include "src/luajit/frames/place.h"

enum { MAX_MCODE_AREAS = 4096, CALLBACK_PAGE = 4096 };

/* -- Whose code it is ------------------------------------------------------ */

/* lj_mcode.c's header of an area: the next one, and this one's size. */
LJP_SIGSAFE static bool compiled_in_mcode(uint64_t J, uint64_t rip)
{
  uint64_t area, next, size;
  if (!ljp_load(J + offsetof(jit_State, mcarea), &area))
    return false;
  for (int i = 0; area && i < MAX_MCODE_AREAS; i++) {
    if (!ljp_load(area, &next) || !ljp_load(area + 8, &size))
      return false;
    if (rip - area < size)
      return true;
    area = next;
  }
  return false;
}

LJP_SIGSAFE static bool compiled_owns(const struct ljp_vm *vm, uint64_t g,
                                      uint64_t rip)
{
  return vm && (ljp_trace_area(vm, rip) || compiled_in_mcode(g + GG_G2J, rip));
}

/* The VM whose code this is, for a walk that has lost the dispatch register; 0:
** none. */
LJP_SIGSAFE static uint64_t compiled_owner(uint64_t rip)
{
  for (const struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm)) {
    uint64_t g = atomic_load_explicit(&vm->g, memory_order_relaxed);
    if (g && ljp_vm_of(g) == vm && compiled_owns(vm, g, rip))
      return g;
  }
  return 0;
}

/* -- Which trace runs ------------------------------------------------------ */

/* The trace with that number, if the VM is running it. */
LJP_SIGSAFE static bool compiled_running_trace(uint64_t g,
                                               const struct ljp_vm *vm,
                                               uint32_t number,
                                               struct ljp_trace *trace)
{
  uint64_t table, object, code;
  uint32_t count;
  uint64_t J = g + GG_G2J;
  return ljp_load32(J + offsetof(jit_State, sizetrace), &count) &&
         number - 1 < count - 1 &&
         ljp_load(J + offsetof(jit_State, trace), &table) &&
         ljp_load(table + number * sizeof(GCRef), &object) && object &&
         ljp_load(object + offsetof(GCtrace, mcode), &code) &&
         ljp_trace_find(vm, code, trace) &&
         (uint64_t)(uintptr_t)trace->object == object;
}

/* The number of the exit whose stub an instruction belongs to. lj_asm_x86.h
** makes groups of push imm8; jmp ... for the low byte, and at the end of a
** group a push for the high byte. */
LJP_SIGSAFE static bool compiled_exit_number(uint64_t J, uint64_t rip,
                                             uint64_t sp, uint32_t *number)
{
  enum { STUBS = 32, LAST = 126, AFTER = 128, END = 133 };
  for (uint32_t i = 0; i < LJ_MAX_EXITSTUBGR; i++) {
    uint64_t group, low;
    if (!ljp_load(J + offsetof(jit_State, exitstubgroup) + i * 8, &group) ||
        !group)
      break;
    uint64_t at = rip - group;
    if (at >= END)
      continue;
    if (at < LAST) {
      *number = i * STUBS + (uint32_t)at / 4;
      return true;
    }
    if (!ljp_load(sp + (at >= AFTER ? 8 : 0), &low))
      return false;
    *number = (i * STUBS >> 8) << 8 | (uint32_t)(low & 0xff);
    return true;
  }
  return false;
}

/* -- Walking --------------------------------------------------------------- */

/* Appends the frames of a place in a trace and those on the Lua stack below. */
LJP_SIGSAFE static bool compiled_walk(struct ljp_guest *guest,
                                      const struct ljp_thread *thread,
                                      struct ljp_place *place,
                                      struct ljp_start at,
                                      struct ljp_stack *stack)
{
  struct ljp_function fn;
  bool known;
  if (!ljp_thread_at_bottom(thread, at.base) &&
      !ljp_place_frames(place, &at, stack, &fn, &known))
    return false;
  return ljp_walk_segment(guest, thread, at, stack);
}

bool ljp_walk_exit(struct ljp_guest *guest, const struct ljp_thread *thread,
                   struct ljp_start at, bool on_trace, struct ljp_stack *stack)
{
  struct ljp_place place = {.exact = LJP_EXACT_SNAPSHOT};
  uint64_t g = thread->g, J = g + GG_G2J, code;
  uint32_t state, number;
  if (on_trace && ljp_load32(g + offsetof(global_State, vmstate), &state)) {
    place.exact = LJP_EXACT_ROOT;
    if ((int32_t)state > 0) {
      compiled_running_trace(g, thread->vm, state, &place.trace);
    } else if (ljp_safe_copy(&code,
                             (const void *)(uintptr_t)at.regs->r[LJP_RIP],
                             3) == 3 &&
               (code & 0xffffff) != 0x8e8941 && (code & 0xffffff) != 0x868941 &&
               ljp_load32(J + offsetof(jit_State, parent), &state) &&
               ljp_load32(J + offsetof(jit_State, exitno), &number) &&
               compiled_running_trace(g, thread->vm, state, &place.trace) &&
               ljp_snap_number((uint64_t)(uintptr_t)place.trace.object, number,
                               &place.snap)) {
      /* Not at the two instructions that store parent and exit. */
      place.exact = LJP_EXACT_SNAPSHOT;
    }
  }
  return compiled_walk(guest, thread, &place, at, stack);
}

LJP_SIGSAFE static enum ljp_guest_result compiled_step(struct ljp_guest *guest,
                                                       uint64_t g,
                                                       struct ljp_regs *regs,
                                                       struct ljp_stack *stack)
{
  struct ljp_thread thread;
  struct ljp_place place = {.exact = LJP_EXACT_ROOT};
  uint64_t L, base, rip = regs->r[LJP_RIP] - !regs->exact;
  bool nested = (guest->L && guest->g == g) ||
                (guest->left_count && ljp_guest_return(guest, 0, g, stack));
  if (nested)
    L = guest->L;
  else if (!ljp_load(g + offsetof(global_State, cur_L), &L))
    L = 0;
  if (!L || !ljp_thread_read(&thread, L)) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_vm_resizing(thread.vm))
    return LJP_GUEST_DEFER;
  ljp_guest_note(guest, &thread, LJP_VMSTATE_TRACE);

  if (nested)
    base = guest->base;
  else if (!ljp_load(g + offsetof(global_State, jit_base), &base) || !base) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_trace_find(thread.vm, rip, &place.trace)) {
    if (!ljp_place_find(&place, rip, regs->exact))
      place.exact = LJP_EXACT_ROOT;
  } else {
    uint32_t number, state;
    if (ljp_load32(g + offsetof(global_State, vmstate), &state) &&
        compiled_running_trace(g, thread.vm, state, &place.trace) &&
        compiled_exit_number(g + GG_G2J, rip, regs->r[LJP_RSP], &number) &&
        ljp_snap_number((uint64_t)(uintptr_t)place.trace.object, number,
                        &place.snap))
      place.exact = LJP_EXACT_SNAPSHOT;
  }
  uint64_t cframe = ljp_cframe_above(L, regs->r[LJP_RSP]);
  thread.notes = regs->notes;
  if (!compiled_walk(
          guest, &thread, &place,
          (struct ljp_start){
              .base = base, .cframe = cframe, .regs = regs, .compiled = true},
          stack))
    return LJP_GUEST_STOPPED;
  if (!cframe) {
    stack->cut = LJP_CUT_BAD_FRAME;
    return LJP_GUEST_STOPPED;
  }
  return ljp_cframe_leave_compiled(regs, cframe, stack) ? LJP_GUEST_STEPPED
                                                        : LJP_GUEST_STOPPED;
}

/* -- Callbacks ------------------------------------------------------------- */

/* A callback stub pushes rbp, then jumps to lj_vm_ffi_callback. lj_ccallback.c
** emits mov al; jmp; push rbp | mov ah; mov rbp; jmp [rip]: the first byte
** tells whether rbp has been pushed. */
LJP_SIGSAFE static bool callback_step(uint64_t g, struct ljp_regs *regs)
{
  uint64_t cts, page, code, value;
  uint64_t rip = regs->r[LJP_RIP], sp = regs->r[LJP_RSP];
  if (!ljp_load(g + offsetof(global_State, ctype_state), &cts) || !cts ||
      !ljp_load(cts + offsetof(CTState, cb) + offsetof(CCallback, mcode),
                &page) ||
      !page || rip - page >= CALLBACK_PAGE)
    return false;
  if (ljp_safe_copy(&code, (const void *)(uintptr_t)rip, 2) != 2)
    return false;
  bool pushed = (code & 0xff) == 0xb4 || (code & 0xffff) == 0xbd48 ||
                (code & 0xff) == 0xff;
  if (pushed) {
    if (!ljp_load(sp, &value))
      return false;
    regs->r[LJP_RBP] = value;
    regs->known |= 1u << LJP_RBP;
    sp += 8;
  }
  if (!ljp_load(sp, &value))
    return false;
  regs->r[LJP_RIP] = value;
  regs->r[LJP_RSP] = sp + 8;
  regs->exact = false;
  return true;
}

enum ljp_guest_result ljp_guest_step_jit(struct ljp_guest *guest,
                                         struct ljp_regs *regs,
                                         struct ljp_stack *stack)
{
  uint64_t rip = regs->r[LJP_RIP] - !regs->exact;
  uint64_t g =
      KNOWN(regs, LJP_R14) ? ljp_vm_from_dispatch(regs) : compiled_owner(rip);
  if (g && compiled_owns(ljp_vm_of(g), g, rip))
    return compiled_step(guest, g, regs, stack);
  if (regs->exact) {
    /* No register says which VM's callback this is. */
    for (const struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm))
      if (callback_step(atomic_load_explicit(&vm->g, memory_order_relaxed),
                        regs))
        return LJP_GUEST_STEPPED;
  }
  return LJP_GUEST_FOREIGN;
}
