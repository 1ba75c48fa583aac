/*
** Segments: the guest frames between two C boundaries of a Lua thread, one link
** after the other.
**
** Invariants: a frame is emitted only if its function slot holds a function. It
** has a position only if the position lies in the function's bytecode. Frames
** only go down and stay inside the Lua stack. No pointer of the VM is followed
** before it has been checked, and all reads are fault-safe.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"

#include "src/base/assert.h"
#include "src/luajit/frames/walk.h"

LJP_SIGSAFE static bool frame_emit(struct ljp_stack *stack,
                                   const struct ljp_function *fn, uint64_t pc,
                                   enum ljp_frame_kind kind,
                                   enum ljp_exact exact, struct ljp_memo *notes)
{
  if (fn->ffid == FF_LUA)
    return ljp_stack_add(
        stack, ljp_frame_lua(kind, exact, fn->ref, ljp_function_line(fn, pc)));
  if (fn->ffid > FF_C)
    return ljp_stack_add(stack, ljp_frame(LJP_FRAME_BUILTIN, 0, fn->ffid));
  uint64_t f;
  if (!ljp_load_noted(fn->object + offsetof(GCfuncC, f), &f, notes)) {
    ljp_memo_blur(notes);
    f = 0;
  }
  return ljp_stack_add(stack, ljp_frame(LJP_FRAME_CFUNC, 0, f));
}

bool ljp_emit(struct ljp_stack *stack, const struct ljp_function *fn,
              uint64_t pc)
{
  return frame_emit(stack, fn, pc, LJP_FRAME_LUA, LJP_EXACT_EXACT, NULL);
}

bool ljp_emit_inlined(struct ljp_stack *stack, const struct ljp_function *fn,
                      uint64_t pc)
{
  return frame_emit(stack, fn, pc, LJP_FRAME_LUA_INLINED, LJP_EXACT_SNAPSHOT,
                    NULL);
}

/* -- Links ----------------------------------------------------------------- */

LJP_SIGSAFE static bool link_is_call(uint32_t ins)
{
  switch (bc_op(ins)) {
  case BC_CALLM:
  case BC_CALL:
  case BC_ITERC:
  case BC_ITERN:
  case BC_JLOOP: /* an ITERN that was compiled */
    return true;
  default:
    return false;
  }
}

bool ljp_link_follow(const struct ljp_thread *thread, uint64_t base,
                     uint64_t value, struct ljp_link *link)
{
  link->pc = 0;
  link->boundary = link->same = link->lua = false;
  if ((value & FRAME_TYPE) == FRAME_LUA) {
    uint32_t ins;
    uint64_t slot;
    /* The position implies the function, which a lean memo need not note. */
    struct ljp_memo *notes =
        ljp_memo_is_lean(thread->notes) ? NULL : thread->notes;
    if (!ljp_load32(value - sizeof(BCIns), &ins) || !link_is_call(ins))
      return false;
    link->base = base - (2 + (uint64_t)bc_a(ins)) * sizeof(TValue);
    link->pc = value;
    link->lua = true;
    link->note = thread->notes ? thread->notes->reads : 0;
    return ljp_thread_has_base(thread, link->base) && link->base < base &&
           ljp_load_noted(link->base - 2 * sizeof(TValue), &slot, notes) &&
           ljp_function_read_noted(slot, &link->fn, notes) &&
           link->fn.ffid == FF_LUA && ljp_function_has_pc(&link->fn, value);
  }
  uint64_t delta = value & ~(uint64_t)FRAME_TYPEP;
  link->base = base - delta;
  if (!ljp_thread_has_base(thread, link->base) || link->base >= base)
    return false;
  switch (value & FRAME_TYPEP) {
  case FRAME_C:
  case FRAME_CP:
    link->boundary = true;
    return true;
  case FRAME_CONT: {
    uint64_t kind;
    if (!ljp_load_noted(base - 4 * sizeof(TValue), &kind, thread->notes))
      return false;
    if (kind == LJ_CONT_FFI_CALLBACK) {
      link->boundary = true;
      return true;
    }
    return ljp_load_noted(base - 3 * sizeof(TValue), &link->pc, thread->notes);
  }
  case FRAME_VARG:
    link->same = true;
    return true;
  default: /* FRAME_LUAP, FRAME_PCALL, FRAME_PCALLH */
    return true;
  }
}

/* -- Segments -------------------------------------------------------------- */

enum { POINT_GUEST = 1, POINT_SKIP = 2, POINT_COMPILED = 4 };

/* Does the memo know the rest of the stack? The point that is looked up (or
** remembered) is the state between two frames, with everything that the rest of
** a walk depends on: BASE and position of the frame below, its Lua thread, and
** what is needed to leave the segment. A point is remembered only where the
** reads behind it are noted. */
LJP_SIGSAFE static bool segment_rest_known(const struct ljp_guest *guest,
                                           const struct ljp_thread *thread,
                                           const struct ljp_start *at,
                                           const struct ljp_link *link,
                                           bool skip, struct ljp_stack *stack)
{
  const struct ljp_regs *regs = at->regs;
  const uint32_t kept = 1u << LJP_R12 | 1u << LJP_R13;
  if (LJP_UNLIKELY(stack->memo->mode == LJP_MEMO_RECORD && !thread->notes) ||
      LJP_UNLIKELY(guest->left_count))
    return false;
  struct ljp_memo_point now = {.sp = at->cframe, .order = link->base};
  now.word[0] = link->pc;
  now.word[1] = thread->L;
  now.word[2] = thread->low;
  now.word[3] = thread->high;
  now.word[4] = KNOWN(regs, LJP_R12) ? regs->r[LJP_R12] : 0;
  now.word[5] = KNOWN(regs, LJP_R13) ? regs->r[LJP_R13] : 0;
  now.word[6] = ljp_guest_unmet(guest);
  now.wants = (uint32_t)now.word[6];
  if (thread->notes)
    now.read = link->lua ? link->note : thread->notes->reads;
  now.flags = POINT_GUEST | (skip ? POINT_SKIP : 0) |
              (at->compiled ? POINT_COMPILED : 0) | (regs->known & kept) << 8;
  return ljp_memo_meet(stack->memo, &now, stack->frames, &stack->count,
                       stack->limit);
}

bool ljp_walk_segment(struct ljp_guest *guest, const struct ljp_thread *thread,
                      struct ljp_start at, struct ljp_stack *stack)
{
  bool skip = at.skip_top;
  struct ljp_link link = {.base = at.base, .pc = at.pc};
  struct ljp_memo *notes = thread->notes;
  do {
    uint64_t base = link.base, slot = 0, value;
    if (stack->memo && at.cframe && !at.use_link &&
        ljp_memo_near(stack->memo, at.cframe, base) &&
        segment_rest_known(guest, thread, &at, &link, skip, stack))
      return false;
    if (!ljp_thread_has_base(thread, base)) {
      stack->cut = LJP_CUT_BAD_FRAME;
      return false;
    }
    if (ljp_thread_at_bottom(thread, base))
      break;
    if (!ljp_load_noted(base - sizeof(TValue), &value, notes) ||
        (!link.lua &&
         !ljp_load_noted(base - 2 * sizeof(TValue), &slot, notes))) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    if (at.use_link) {
      value = at.link;
      at.use_link = false;
    }
    /* A link back to a Lua function has read the function already. */
    if (!skip && (link.lua || ljp_function_read_noted(slot, &link.fn, notes)) &&
        !frame_emit(stack, &link.fn, link.pc, LJP_FRAME_LUA, LJP_EXACT_EXACT,
                    notes))
      return false;
    if (!ljp_link_follow(thread, base, value, &link)) {
      stack->cut = LJP_CUT_BAD_FRAME;
      return false;
    }
    ljp_assert(link.base < base);
    skip = link.same && !skip;
  } while (!link.boundary);
  ljp_guest_enter(guest, thread, link.base);
  return true;
}
