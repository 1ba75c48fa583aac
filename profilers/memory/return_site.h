/*
** Return sites: addresses to which host code returns, with what is always true
** there. They lead down the host frames on top of an allocation's stack, one
** plain step each. A *front* is a whole way down that was taken before. Used by
** stack.c, below.c and answers.c.
*/
#ifndef LJP_MEMORY_RETURN_SITE_H
#define LJP_MEMORY_RETURN_SITE_H

#include <string.h>

#include "profilers/memory/stack.h"
#include "src/luajit/spine.h"

/* An address to which host code returns. */
struct ljp_return_site {
  uint64_t rip;
  uint32_t epoch; /* that of struct ljp_stacks; useless in any other */
  bool guest, object;
  uint8_t type;
  struct ljp_unwind_plain step;
  struct ljp_guest_site in_guest;
};

/* False: out of memory. */
bool ljp_front_init(struct ljp_stacks *stacks);
void ljp_front_fini(struct ljp_stacks *stacks);
/* Forgets all sites and fronts, since the epochs restart at 1. */
void ljp_front_forget(struct ljp_stacks *stacks);

/* Finds the way from the allocator's caller down to the guest. Sets regs, and
** what the memory is for in *found; with `native` also the host frames that
** were passed, in host[] of stacks. NULL: a full walk is needed. Preserves
** errno. */
const struct ljp_return_site *ljp_front_find(struct ljp_stacks *stacks,
                                             const struct ljp_caller *caller,
                                             struct ljp_guest_regs *regs,
                                             struct ljp_found_stack *found);

/* The frames on top of the topmost segment, root first: those that are compiled
** at its site, and the host frames if they are wanted. */
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

/* Follows plain steps from regs down to the VM's assembly. Sets regs to the
** registers there, and host[] to the frames that were passed, leaf first. NULL:
** a full walk is needed. Preserves errno. */
const struct ljp_return_site *ljp_front_below(struct ljp_stacks *stacks,
                                              struct ljp_guest_regs *regs,
                                              uint64_t host[LJP_BELOW_FRAMES],
                                              uint32_t *hosts);

/* Lists the words above the caller on which the way down that was found last
** depends. Returns their number; 0: it was not a known way. */
unsigned ljp_front_words(const struct ljp_stacks *stacks,
                         const struct ljp_caller *caller,
                         struct ljp_memo_read *out);

#endif
