/*
** Deferred samples. A sample that falls into the move of a Lua stack is taken
** when the move ends, by a hook there. Its stack is made that of the place
** where the signal came: the hook's own frames are taken off.
**
** LJP_SIGSAFE throughout. The oracle calls this too, and proves it.
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

/* Notes the place that a walk has come to. */
LJP_SIGSAFE void ljp_deferred_note(struct ljp_deferred_place *place,
                                   const struct ljp_stack *stack);

/* Takes the hook's frames off a stack that was walked in the hook. */
LJP_SIGSAFE void ljp_deferred_drop_hook(const struct ljp_deferred_place *place,
                                        struct ljp_stack *stack);

#endif
