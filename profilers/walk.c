/*
** The stack walk's loop. LJP_SIGSAFE; see walk.h.
*/
#include "profilers/walk.h"

#include <string.h>

/* A walk that takes more steps than this goes in circles. */
enum { MAX_STEPS = 20000 };

LJP_SIGSAFE static enum ljp_cut cut_of(enum ljp_unwind_result result)
{
  switch (result) {
  case LJP_UNWIND_STEPPED:
  case LJP_UNWIND_END:
    return 0;
  case LJP_UNWIND_NO_MODULE:
  case LJP_UNWIND_NO_CFI:
  case LJP_UNWIND_NO_RULE:
    return LJP_CUT_NO_TABLE;
  case LJP_UNWIND_BAD_CFI:
  case LJP_UNWIND_TOO_LONG:
  case LJP_UNWIND_STALE:
    return LJP_CUT_BAD_RULE;
  case LJP_UNWIND_BAD_CFA:
  case LJP_UNWIND_BAD_RETURN:
    return LJP_CUT_BAD_FRAME;
  case LJP_UNWIND_UNREADABLE:
    return LJP_CUT_BAD_READ;
  case LJP_UNWIND_UNKNOWN_REG:
    return LJP_CUT_NO_BASE;
  }
  return LJP_CUT_BAD_RULE;
}

LJP_SIGSAFE static enum ljp_walk_result
walk_down(struct ljp_walk *walk, const struct ljp_unwind_view *view,
          struct ljp_regs *regs, uint64_t *frames, uint32_t limit, bool leaf)
{
  struct ljp_stack *stack = &walk->stack;
  struct ljp_guest *guest = &walk->guest;
  memset(guest, 0, sizeof *guest);
  stack->frames = frames;
  stack->count = 0;
  stack->limit = limit;
  stack->cut = 0;
  for (int steps = 0; steps < MAX_STEPS; steps++) {
    uint64_t rip = regs->r[LJP_RIP];
    enum ljp_guest_result stepped = LJP_GUEST_FOREIGN;
    if (ljp_guest_in_vm(rip)) {
      stepped = ljp_guest_step_vm(guest, regs, stack);
    } else if (!ljp_unwind_has_module(view, rip - !regs->exact)) {
      stepped = ljp_guest_step_jit(guest, regs, stack);
    }
    if (stepped == LJP_GUEST_STEPPED) {
      if (leaf && guest->vm)
        return LJP_WALK_DONE;
      continue;
    }
    if (stepped == LJP_GUEST_DEFER)
      return LJP_WALK_DEFER;
    if (stepped == LJP_GUEST_STOPPED)
      return LJP_WALK_DONE;
    if (guest->state == LJP_VMSTATE_UNKNOWN)
      guest->state = ljp_guest_host_state(rip);
    if (!ljp_stack_add(stack, ljp_frame(LJP_FRAME_HOST, 0, rip)))
      return LJP_WALK_DONE;
    enum ljp_unwind_result result = ljp_unwind_step(view, regs);
    if (result != LJP_UNWIND_STEPPED) {
      stack->cut = cut_of(result);
      return LJP_WALK_DONE;
    }
  }
  stack->cut = LJP_CUT_ABORTED;
  return LJP_WALK_DONE;
}

enum ljp_walk_result ljp_walk(struct ljp_walk *walk,
                              const struct ljp_unwind_view *view,
                              struct ljp_regs *regs, uint64_t *frames,
                              uint32_t limit)
{
  return walk_down(walk, view, regs, frames, limit, false);
}

enum ljp_walk_result ljp_walk_leaf(struct ljp_walk *walk,
                                   const struct ljp_unwind_view *view,
                                   struct ljp_regs *regs, uint64_t *frames,
                                   uint32_t limit)
{
  return walk_down(walk, view, regs, frames, limit, true);
}
