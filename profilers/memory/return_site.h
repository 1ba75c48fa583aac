/*
** Return sites: addresses to which host code returns, with what is always true
** there. They lead down the host frames on top of an allocation's stack, one
** plain step each. A *front* is a whole way down that was taken before. Used by
** stack.c.
*/
#ifndef LJP_MEMORY_RETURN_SITE_H
#define LJP_MEMORY_RETURN_SITE_H

#include <string.h>

#include "profilers/memory/stack.h"
#include "src/luajit/spine.h"

/* Where host code returns to. */
struct ljp_return_site {
  uint64_t rip;
  uint32_t epoch; /* of struct ljp_stacks; others are of no use */
  bool guest, object;
  uint8_t type;
  struct ljp_unwind_plain step;
  struct ljp_guest_site in_guest;
};

/* False: no memory. */
bool ljp_front_init(struct ljp_stacks *stacks);
void ljp_front_fini(struct ljp_stacks *stacks);
/* The epochs begin anew. */
void ljp_front_forget(struct ljp_stacks *stacks);

/* Down to the guest: regs, and what memory is for; with native also the frames
** that were passed, in s->host. NULL: ask the walk. Preserves errno. */
const struct ljp_return_site *ljp_front_find(struct ljp_stacks *stacks,
                                             const struct ljp_caller *caller,
                                             struct ljp_guest_regs *regs,
                                             struct ljp_found_stack *found);

/* Root first, on the topmost segment: what is compiled at its site, and host
** frames if they are wanted. */
struct ljp_top {
  const uint64_t *frame;
  uint32_t count;
  uint64_t room[LJP_SITE_FRAMES + LJP_FRONT_FRAMES];
};

static inline void ljp_front_top(const struct ljp_stacks *stacks,
                                 const struct ljp_return_site *site,
                                 struct ljp_top *top)
{
  top->frame = site->in_guest.frame;
  top->count = site->in_guest.count;
  if (LJP_LIKELY(!stacks->native))
    return;
  memcpy(top->room, top->frame, top->count * sizeof *top->frame);
  for (uint32_t i = stacks->hosts; i-- > 0;)
    top->room[top->count++] = stacks->host[i];
  top->frame = top->room;
}

/* Down to the guest's assembly from regs, by plain steps alone; regs become
** those there. host: room for the frames that were passed, leaf first, and
** how many. NULL: ask the walk. Preserves errno. */
enum { LJP_BELOW_FRAMES = 32 };
const struct ljp_return_site *ljp_front_below(struct ljp_stacks *stacks,
                                              struct ljp_guest_regs *regs,
                                              uint64_t host[LJP_BELOW_FRAMES],
                                              uint32_t *hosts);

/* The words above the caller that the way down which was found last depends on;
** 0: it was not a known one. */
unsigned ljp_front_words(const struct ljp_stacks *stacks,
                         const struct ljp_caller *caller,
                         struct ljp_memo_read *out);

#endif
