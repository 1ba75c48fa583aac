/*
** Answers: whole stacks that were found earlier, each with every word of memory
** on which it depends. If all of those words are unchanged, so is the stack.
**
** Mental picture: a program allocates at a few sites in turn, so an answer is
** usually followed by the answer that followed it the last time. The expected
** one is compared first, inline. If it does not hold, the place of the call
** leads to a set of the table.
**
** An answer's index in the table is the number by which the stream's writer
** knows the stack (ljp_push_stack_wait()), so its events carry no frames.
**
** Invariants: answer[0] is never learned. The writer knows each answer of the
** current epoch. `words` is a multiple of four. Use on the VM's own thread
** only.
*/
#ifndef LJP_MEMORY_ANSWERS_H
#define LJP_MEMORY_ANSWERS_H

#include "profilers/memory/return_site.h"
#include "profilers/memory/segments.h"
#include "src/base/assert.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"
#include "src/push/producer.h"

enum {
#ifdef LJP_DEBUG
  LJP_ANSWER_SETS = 2,
  LJP_ANSWER_WAYS = 4,
#else
  LJP_ANSWER_SETS = 16,
  LJP_ANSWER_WAYS = 8,
#endif
  LJP_ANSWERS = LJP_ANSWER_SETS * LJP_ANSWER_WAYS,
  LJP_ANSWER_WORDS = 256,
  LJP_ANSWER_HISTORIES = 4096
};
_Static_assert((int)LJP_ANSWERS <= (int)LJP_NUMBERED_STACKS,
               "an answer has a number");

struct ljp_answer {
  const struct ljp_caller *caller;
  uint64_t rip;
  uint32_t epoch; /* that of struct ljp_stacks; any other: not learned, or
                  ** useless by now */
  uint32_t words;
  uint64_t place; /* ljp_guest_place() */
  uint32_t hits;  /* since the last search for room came to its way */
  uint32_t wait;  /* not learned: meetings that are still missing */
  struct ljp_found_stack stack;
  uint64_t frame[LJP_NUMBERED_FRAMES];
  struct ljp_memo_read word[LJP_ANSWER_WORDS];
};

struct ljp_answers {
  struct ljp_answer answer[LJP_ANSWERS];
  struct ljp_answer *expected; /* what followed `history` the last time; kept,
                               ** because finding it takes a chain of loads */
  uint32_t history;            /* of the last three answers */
  uint8_t after[LJP_ANSWER_HISTORIES]; /* what followed them the last time */
  uint32_t next_way;
  uint32_t misses;       /* in a row */
  uint32_t rest, longer; /* stacks still to be skipped; next time */
  struct ljp_patience patience;
  bool met; /* the current stack may be learned; its place: */
  uint64_t place;
};

/* False: out of memory. */
bool ljp_answers_init(struct ljp_stacks *stacks);
void ljp_answers_fini(struct ljp_stacks *stacks);
/* Forgets all answers, since the epochs restart at 1. */
void ljp_answers_forget(struct ljp_stacks *stacks);

/* Searches the table after the expected answer did not hold. NULL: there is
** none. */
struct ljp_answer *ljp_answers_search(struct ljp_stacks *stacks,
                                      const struct ljp_caller *caller);

/* Tells the table of a stack that was put together from its parts. A stack that
** is met often becomes an answer. Preserves errno. */
void ljp_answers_meet(struct ljp_stacks *stacks,
                      const struct ljp_caller *caller,
                      const struct ljp_return_site *site,
                      const struct ljp_guest_regs *regs,
                      const struct ljp_guest_start *start,
                      const struct ljp_segment *segment,
                      const struct ljp_found_stack *found);

static inline bool ljp_stacks_current(const struct ljp_stacks *s)
{
  /* Relaxed: whoever uses entries of an older map checks their witnesses. */
  return s->generation[0] ==
             atomic_load_explicit(s->serial, memory_order_relaxed) &&
         s->generation[1] == ljp_guest_code_generation();
}

/* Does the answer hold? Compares all of its words. */
static inline bool ljp_answer_holds(const struct ljp_stacks *s,
                                    const struct ljp_answer *a,
                                    const struct ljp_caller *caller)
{
  return a->caller == caller && a->rip == caller->rip && a->epoch == s->epoch &&
         ljp_saferead_same(a->word, a->words) == a->words;
}

static inline void ljp_answers_follow(struct ljp_answers *t,
                                      struct ljp_answer *a)
{
  ljp_assert(a == &t->answer[a->stack.number] && a->stack.number);
  ljp_assert(a->words && a->words % 4 == 0 && a->words <= LJP_ANSWER_WORDS);
  ljp_assert(a->stack.frames == a->frame && a->stack.root_first);
  t->history = (t->history << 4 ^ a->stack.number) & (LJP_ANSWER_HISTORIES - 1);
  t->expected = &t->answer[t->after[t->history]];
  a->hits++;
  t->misses = t->longer = 0;
}

/* Where no answer has held for a while, most stacks are not searched for: the
** answers of one set lie in as many pages. */
static inline bool ljp_answers_rest(struct ljp_answers *t)
{
  if (!t->rest)
    return false;
  t->rest--;
  t->met = false;
  return true;
}

/* Finds the expected answer, or else any other. False: there is none. */
static inline bool ljp_answers_find(struct ljp_stacks *s,
                                    const struct ljp_caller *caller,
                                    struct ljp_found_stack *found)
{
  struct ljp_answers *t = s->answers;
  struct ljp_answer *a = t->expected;
  ljp_assert(a == &t->answer[t->after[t->history]]);
  if (LJP_UNLIKELY(!ljp_stacks_current(s)))
    return false;
  if (LJP_LIKELY(ljp_answer_holds(s, a, caller)))
    ljp_answers_follow(t, a);
  else if (ljp_answers_rest(t) || !(a = ljp_answers_search(s, caller)))
    return false;
  *found = a->stack;
  s->remembered++;
  if (LJP_UNLIKELY(s->check))
    ljp_stacks_check(s, caller, found);
  return true;
}

#endif
