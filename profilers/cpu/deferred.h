/*
** Deferred samples. A sample that falls into the move of a Lua stack is taken
** by a hook at the end of the move. The hook's own frames are removed from the
** stack, so the stack is that of the place where the signal arrived.
**
** LJP_SIGSAFE throughout. The oracle calls this code, too, and checks it.
*/
#ifndef LJP_DEFERRED_H
#define LJP_DEFERRED_H

#include "profilers/unwind/walk.h"

enum { LJP_DEFERRED_FRAMES = 8 };

/* Where a sample was deferred: the outermost host frames there, outermost
** first. */
struct ljp_deferred_place {
  uint32_t count;
  uint64_t frames[LJP_DEFERRED_FRAMES];
};

/* Remembers the place that a walk has reached. */
LJP_SIGSAFE void ljp_deferred_note(struct ljp_deferred_place *place,
                                   const struct ljp_stack *stack);

/* Removes the hook's frames from a stack that was walked in the hook. */
LJP_SIGSAFE void ljp_deferred_drop_hook(const struct ljp_deferred_place *place,
                                        struct ljp_stack *stack);

#endif
