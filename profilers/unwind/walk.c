/*
** The walk's loop: at each frame it decides whether the VM, compiled code or
** the host owns the program counter, and lets the owner step.
** Safety: LJP_SIGSAFE throughout; see walk.h.
*/
#include "profilers/unwind/walk.h"

#include <string.h>

#include "src/base/assert.h"

/* A walk that takes more steps than this goes round in circles. */
enum { WALK_MAX_STEPS = 20000 };

LJP_SIGSAFE static enum ljp_cut walk_cut(enum ljp_unwind_result result)
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

/* The registers that a point of the memo has room for. A frame in which others
** are known, as a guest frame may be, is no point. */
#define WALK_POINT_REGS (LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP)

/* Between two steps: makes a point of the memo. True if the memo knows the rest
** of the stack from here; the frames have then been appended. */
LJP_SIGSAFE static bool walk_meet(const struct ljp_guest *guest,
                                  const struct ljp_regs *regs,
                                  struct ljp_stack *stack)
{
  static const uint8_t which[] = {LJP_RBX, LJP_RBP, LJP_R12,
                                  LJP_R13, LJP_R14, LJP_R15};
  if (regs->exact || guest->left_count || (regs->known & ~WALK_POINT_REGS) ||
      !ljp_memo_near(stack->memo, regs->r[LJP_RSP], UINT64_MAX))
    return false;
  struct ljp_memo_point now = {.sp = regs->r[LJP_RSP], .order = UINT64_MAX};
  for (int i = 0; i < 6; i++)
    now.word[i] = regs->known >> which[i] & 1 ? regs->r[which[i]] : 0;
  now.word[6] = regs->r[LJP_RIP];
  now.word[7] = guest->L;
  now.word[8] = guest->L ? guest->base : 0;
  /* Bit 0 is clear: the guest side sets it in its own points. */
  now.flags = regs->known << 4 | (uint32_t)ljp_guest_unmet(guest) << 1;
  now.read = regs->notes ? regs->notes->reads : 0;
  now.wants = (uint32_t)ljp_guest_unmet(guest);
  return ljp_memo_meet(stack->memo, &now, stack->frames, &stack->count,
                       stack->limit);
}

LJP_SIGSAFE static enum ljp_walk_result
walk_down(struct ljp_walk *walk, const struct ljp_unwind_map *map,
          struct ljp_regs *regs, bool leaf)
{
  struct ljp_stack *stack = &walk->stack;
  struct ljp_guest *guest = &walk->guest;
  for (int steps = 0; steps < WALK_MAX_STEPS; steps++) {
    uint64_t rip = regs->r[LJP_RIP];
    enum ljp_guest_result stepped = LJP_GUEST_FOREIGN;
    ljp_assert(stack->count <= stack->limit);
    if (stack->memo && walk_meet(guest, regs, stack))
      return LJP_WALK_DONE;
    if (ljp_guest_in_vm(rip)) {
      stepped = ljp_guest_step_vm(guest, regs, stack);
    } else if (!ljp_unwind_has_module(map, rip - !regs->exact)) {
      ljp_memo_blur(regs->notes);
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
    enum ljp_unwind_result result = ljp_unwind_step(map, regs);
    if (result != LJP_UNWIND_STEPPED) {
      stack->cut = walk_cut(result);
      return LJP_WALK_DONE;
    }
  }
  stack->cut = LJP_CUT_ABORTED;
  return LJP_WALK_DONE;
}

LJP_SIGSAFE static void walk_begin(struct ljp_walk *walk, struct ljp_regs *regs,
                                   uint64_t *frames, uint32_t limit)
{
  memset(&walk->guest, 0, sizeof walk->guest);
  walk->stack =
      (struct ljp_stack){.frames = frames, .count = 0, .limit = limit};
  regs->notes = NULL;
}

enum ljp_walk_result ljp_walk(struct ljp_walk *walk,
                              const struct ljp_unwind_map *map,
                              struct ljp_regs *regs, uint64_t *frames,
                              uint32_t limit)
{
  walk_begin(walk, regs, frames, limit);
  return walk_down(walk, map, regs, false);
}

LJP_SIGSAFE static enum ljp_memo_extent walk_extent(const struct ljp_walk *walk,
                                                    enum ljp_walk_result result)
{
  const struct ljp_stack *stack = &walk->stack;
  if (result == LJP_WALK_DONE && !stack->cut)
    return LJP_MEMO_WHOLE;
  if (result == LJP_WALK_DONE && stack->cut == LJP_CUT_DEPTH &&
      stack->count == stack->limit)
    return LJP_MEMO_CAPPED;
  return LJP_MEMO_BROKEN;
}

enum ljp_walk_result ljp_walk_memo(struct ljp_walk *walk,
                                   const struct ljp_unwind_map *map,
                                   struct ljp_regs *regs, uint64_t *frames,
                                   uint32_t limit, struct ljp_memo *memo)
{
  struct ljp_guest *guest = &walk->guest;
  walk_begin(walk, regs, frames, limit);
  ljp_memo_begin(memo, ljp_unwind_map_serial(map), ljp_guest_generation());
  if (memo->mode != LJP_MEMO_OFF)
    walk->stack.memo = memo;
  if (memo->mode == LJP_MEMO_RECORD)
    regs->notes = memo;
  enum ljp_walk_result result = walk_down(walk, map, regs, false);
  if (memo->met) {
    if (memo->capped)
      walk->stack.cut = LJP_CUT_DEPTH;
    if (!guest->vm) {
      guest->vm = memo->vm;
      guest->thread = memo->thread;
    }
    if (guest->state == LJP_VMSTATE_UNKNOWN)
      guest->state = (enum ljp_vmstate)memo->state;
  } else if (memo->mode == LJP_MEMO_RECORD) {
    memo->vm = guest->vm;
    memo->thread = guest->thread;
    memo->state = guest->state;
  }
  ljp_memo_end(memo, frames, walk->stack.count, walk_extent(walk, result));
  return result;
}

enum ljp_walk_result ljp_walk_leaf(struct ljp_walk *walk,
                                   const struct ljp_unwind_map *map,
                                   struct ljp_regs *regs, uint64_t *frames,
                                   uint32_t limit)
{
  walk_begin(walk, regs, frames, limit);
  return walk_down(walk, map, regs, true);
}

bool ljp_walk_rest(struct ljp_walk *walk, const struct ljp_unwind_map *map,
                   struct ljp_regs *regs, uint64_t *frames, uint32_t limit,
                   struct ljp_memo *notes)
{
  walk->stack =
      (struct ljp_stack){.frames = frames, .count = 0, .limit = limit};
  walk->guest.first = 0;
  regs->notes = notes;
  regs->module = 0;
  return walk_down(walk, map, regs, false) == LJP_WALK_DONE &&
         !walk->stack.cut && ljp_memo_notes_complete(notes);
}
