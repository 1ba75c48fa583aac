/*
** The stack walk: host and guest frames as one interleaved stack, from the
** registers at any instruction. Host frames are stepped by
** profilers/unwind/unwind.h, guest frames by src/luajit/frames.h;
** doc/rfc/0003-guest-walk.md.
**
** LJP_SIGSAFE, on the thread whose registers they are, between
** ljp_saferead_enter() and the end of the handler.
*/
#ifndef LJP_WALK_H
#define LJP_WALK_H

#include "profilers/unwind/unwind.h"
#include "src/luajit/frames.h"
#include "src/base/memo.h"

enum ljp_walk_result {
  LJP_WALK_DONE, /* stack->cut tells whether it is whole */
  LJP_WALK_DEFER /* nothing to be had now: the VM will say when */
};

struct ljp_walk {
  struct ljp_stack stack;
  struct ljp_guest guest; /* its state and vm describe the sample */
};

/* frames: room for limit words. regs are used up. */
LJP_SIGSAFE enum ljp_walk_result ljp_walk(struct ljp_walk *walk,
                                          const struct ljp_unwind_map *map,
                                          struct ljp_regs *regs,
                                          uint64_t *frames, uint32_t limit);

/* The same, and sooner if much of the stack is as it was at the last walk with
** this memo (src/base/memo.h). A memo is all zero before its first. */
LJP_SIGSAFE enum ljp_walk_result ljp_walk_memo(struct ljp_walk *walk,
                                               const struct ljp_unwind_map *map,
                                               struct ljp_regs *regs,
                                               uint64_t *frames, uint32_t limit,
                                               struct ljp_memo *memo);

/* The same, but no further than the innermost guest frames: for counting by
** state, and for leaves. */
LJP_SIGSAFE enum ljp_walk_result
ljp_walk_leaf(struct ljp_walk *walk, const struct ljp_unwind_map *map,
              struct ljp_regs *regs, uint64_t *frames, uint32_t limit);

/* Goes on with a walk whose upper part the caller has found by himself: regs
** and walk->guest say where. What is read is noted in notes, after what is
** there since ljp_memo_forget(). False: the rest is cut, or not all that it
** depends on could be noted. */
LJP_SIGSAFE bool ljp_walk_rest(struct ljp_walk *walk,
                               const struct ljp_unwind_map *map,
                               struct ljp_regs *regs, uint64_t *frames,
                               uint32_t limit, struct ljp_memo *notes);

#endif
