/*
** The host frames on top of an allocation's stack, from the allocator to where
** the guest called into C: plain steps, one a return address, remembered by
** that; and whole ways of them. Part of memprof_stack.c.
*/
#ifndef LJP_MEMPROF_FRONT_H
#define LJP_MEMPROF_FRONT_H

#include "profilers/memprof_stack.h"

/* Where host code returns to. */
struct ljp_site {
  uint64_t rip;
  uint32_t epoch; /* of struct ljp_stacks; others are of no use */
  bool guest, plain, object;
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
const struct ljp_site *ljp_front_find(struct ljp_stacks *stacks,
                                      const struct ljp_caller *caller,
                                      struct ljp_guest_regs *regs,
                                      struct ljp_found_stack *found);

/* The words above the caller that the way down which was found last depends on;
** 0: it was not a known one. */
unsigned ljp_front_words(const struct ljp_stacks *stacks,
                         const struct ljp_caller *caller,
                         struct ljp_memo_read *out);

#endif
