/*
** The walk: finds host and guest frames as one interleaved stack, from the
** registers at any instruction. It steps through host frames by
** profilers/unwind/unwind.h and through guest frames by src/luajit/frames.h.
** RFC 3 describes it.
**
** Safety: LJP_SIGSAFE. To be called on the thread that the registers belong
** to, after ljp_saferead_enter() has agreed, in the same handler.
*/
#ifndef LJP_WALK_H
#define LJP_WALK_H

#include "profilers/unwind/unwind.h"
#include "src/luajit/frames.h"
#include "src/base/memo.h"

enum ljp_walk_result {
  LJP_WALK_DONE, /* walk->stack.cut says whether the stack is whole */
  LJP_WALK_DEFER /* not now: the VM is changing its stack, and calls after */
};

struct ljp_walk {
  struct ljp_stack stack;
  struct ljp_guest guest; /* its state and vm describe the sample */
};

/* Finds the stack. frames: room for limit words. regs: changed by the walk. */
LJP_SIGSAFE enum ljp_walk_result ljp_walk(struct ljp_walk *walk,
                                          const struct ljp_unwind_map *map,
                                          struct ljp_regs *regs,
                                          uint64_t *frames, uint32_t limit);

/* The same, but faster if much of the stack is as it was at the previous walk
** with this memo (src/base/memo.h). A memo is all zero before its first
** walk. */
LJP_SIGSAFE enum ljp_walk_result ljp_walk_memo(struct ljp_walk *walk,
                                               const struct ljp_unwind_map *map,
                                               struct ljp_regs *regs,
                                               uint64_t *frames, uint32_t limit,
                                               struct ljp_memo *memo);

/* The same, but only down to the innermost guest frames: for profiles by VM
** state or by leaf. */
LJP_SIGSAFE enum ljp_walk_result
ljp_walk_leaf(struct ljp_walk *walk, const struct ljp_unwind_map *map,
              struct ljp_regs *regs, uint64_t *frames, uint32_t limit);

/* Continues a walk whose inner frames the caller has found already: regs and
** walk->guest say where. The words that the walk reads are appended to notes,
** after those read since ljp_memo_begin_lean(). False if the rest is cut, or if not
** every word that it depends on could be noted. */
LJP_SIGSAFE bool ljp_walk_rest(struct ljp_walk *walk,
                               const struct ljp_unwind_map *map,
                               struct ljp_regs *regs, uint64_t *frames,
                               uint32_t limit, struct ljp_memo *notes);

#endif
