/*
** A whole answer of stack.c, remembered by the place of the call, with
** all words that it depends on; and the question whether it is the last stack once
** more, which nearly every new block asks, and so is inline. Two places may have
** the same stack in turn: an object of two blocks.
**
** Invariant: each of s->given is of this epoch, and was the answer when the one
** before had the same frames; they stand in *s->given_to, as no other answer
** has come since.
*/
#ifndef LJP_MEMPROF_RECALL_H
#define LJP_MEMPROF_RECALL_H

#include "profilers/memory/segments.h"
#include "src/base/saferead.h"

enum { LJP_RECALL_WORDS = 64 };

/* It is the spine's that is there, as long as that is the one with this
** serial. */
struct ljp_recall {
  const struct ljp_caller *caller;
  uint64_t rip;
  uint32_t epoch; /* 0: not learned, only met: */
  uint32_t met;
  uint64_t serial;
  struct ljp_again *again;
  const struct ljp_site *site;
  uint64_t site_rip, top;
  uint32_t hosts;
  uint64_t host[LJP_FRONT_FRAMES];
  uint8_t type;
  bool object;
  unsigned words;
  struct ljp_memo_read word[LJP_RECALL_WORDS];
};

static inline bool ljp_stacks_are_of_now(const struct ljp_stacks *s)
{
  /* Relaxed: who uses what was made for an older one checks its witness. */
  return s->generation[0] ==
             atomic_load_explicit(s->serial, memory_order_relaxed) &&
         s->generation[1] == ljp_guest_code_generation();
}

/* Has what was given compared with a full walk. True. */
bool ljp_stacks_check_given(struct ljp_stacks *s,
                            const struct ljp_caller *caller);

static inline bool ljp_recall_is_true(struct ljp_stacks *s,
                                      const struct ljp_recall *c,
                                      const struct ljp_caller *caller,
                                      const struct ljp_found_stack *found)
{
  if (LJP_UNLIKELY(!c || c->caller != caller || c->rip != caller->rip ||
                   s->given_to != found || !ljp_stacks_are_of_now(s)))
    return false;
  struct ljp_again *a = c->again;
  if (LJP_UNLIKELY(a->serial != c->serial ||
                   ljp_saferead_same(c->word, c->words) != c->words))
    return false;
  a->hits++;
  s->remembered++;
  return true;
}

/* Is it that which was given last, and stands in *found? */
static inline bool ljp_stacks_are_given(struct ljp_stacks *s,
                                        const struct ljp_caller *caller,
                                        const struct ljp_found_stack *found)
{
  return ljp_recall_is_true(s, s->given[0], caller, found) &&
         (LJP_LIKELY(!s->check) || ljp_stacks_check_given(s, caller));
}

/* Or the other one? Then the memory is for what *found says now. Else:
** ljp_stacks_find(). */
static inline bool ljp_stacks_are_other(struct ljp_stacks *s,
                                        const struct ljp_caller *caller,
                                        struct ljp_found_stack *found)
{
  const struct ljp_recall *c = s->given[1];
  if (!ljp_recall_is_true(s, c, caller, found))
    return false;
  s->given[1] = s->given[0];
  s->given[0] = c;
  found->type = c->type;
  found->object = c->object;
  return LJP_LIKELY(!s->check) || ljp_stacks_check_given(s, caller);
}

#endif
