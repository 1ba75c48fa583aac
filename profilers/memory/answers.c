/*
** See answers.h.
*/
#include "profilers/memory/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
  MEETINGS = 3, /* of a stack at a place; then the stack is learned */
  WORTH = 8,    /* hits that make up for the cost of learning */
  LONGEST_PAUSE = 63,
  MISSES = 32,       /* in a row; then stacks are skipped after each miss, */
  REST = 31,         /* first so many, */
  LONGEST_REST = 255 /* at last so many */
};

bool ljp_answers_init(struct ljp_stacks *s)
{
  s->answers = ljp_stacks_pages(sizeof *s->answers);
  if (!s->answers)
    return false;
  s->answers->expected = s->answers->answer;
  return true;
}

void ljp_answers_fini(struct ljp_stacks *s)
{
  ljp_stacks_free_pages(s->answers, sizeof *s->answers);
  s->answers = NULL;
}

void ljp_answers_forget(struct ljp_stacks *s)
{
  struct ljp_answers *t = s->answers;
  for (int i = 0; i < LJP_ANSWERS; i++)
    t->answer[i].epoch = 0;
}

static struct ljp_answer *answer_set(struct ljp_answers *t,
                                     const struct ljp_caller *caller,
                                     uint64_t place)
{
  uint64_t key = ((uint64_t)(uintptr_t)caller >> 3) ^ caller->rip << 4 ^ place;
  key *= UINT64_C(0x9e3779b97f4a7c15);
  return &t->answer[(key >> 40) % LJP_ANSWER_SETS * LJP_ANSWER_WAYS];
}

__attribute__((noinline)) struct ljp_answer *
ljp_answers_search(struct ljp_stacks *s, const struct ljp_caller *caller)
{
  struct ljp_answers *t = s->answers;
  t->met = false;
  uint64_t place = ljp_guest_place(s->heap);
  struct ljp_answer *a = answer_set(t, caller, place),
                    *end = a + LJP_ANSWER_WAYS;
  for (; a < end; a++)
    if (a->place == place && ljp_answer_holds(s, a, caller)) {
      t->after[t->history] = a->stack.number;
      ljp_answers_follow(t, a);
      return a;
    }
  if (++t->misses > MISSES) {
    t->rest = t->longer ? t->longer : REST;
    t->longer = 2 * t->rest + 1 < LONGEST_REST ? 2 * t->rest + 1 : LONGEST_REST;
  }
  t->place = place;
  t->met = true;
  return NULL;
}

/* -- Learning -------------------------------------------------------------- */

static bool answer_is_learned(const struct ljp_stacks *s,
                              const struct ljp_answer *a)
{
  return a->epoch == s->epoch;
}

/* An answer is about to be replaced. If it had few hits, learning pauses for a
** while, each time for longer. */
static void answers_set_pause(struct ljp_answers *t, const struct ljp_answer *a)
{
  struct ljp_patience *p = &t->patience;
  if (a->hits >= WORTH) {
    p->longer = 0;
    return;
  }
  p->pause = p->longer;
  p->longer = 2 * p->longer + 1;
  if (p->longer > LONGEST_PAUSE)
    p->longer = LONGEST_PAUSE;
}

/* Returns the unlearned entry of a place that has been met before, or else room
** for it. NULL: there is no room. One place may have several answers, which
** differ deeper in the stack. */
static struct ljp_answer *answer_candidate(struct ljp_stacks *s,
                                           const struct ljp_caller *caller,
                                           uint64_t place)
{
  struct ljp_answers *t = s->answers;
  struct ljp_answer *set = answer_set(t, caller, place), *room = NULL;
  for (int i = set == t->answer; i < LJP_ANSWER_WAYS; i++) {
    struct ljp_answer *a = &set[i];
    if (answer_is_learned(s, a))
      continue;
    if (a->place == place && a->caller == caller && a->rip == caller->rip)
      return a;
    if (!room || !a->caller || (room->caller && a->wait >= room->wait))
      room = a;
  }
  if (!room) {
    uint32_t way = t->next_way++ % LJP_ANSWER_WAYS;
    room = &set[way];
    if (room == t->answer)
      return NULL;
    if (room->hits >= WORTH) { /* it gets a second chance */
      room->hits = 0;
      return NULL;
    }
    answers_set_pause(t, room);
  }
  room->caller = caller;
  room->rip = caller->rip;
  room->place = place;
  room->epoch = 0;
  room->wait = MEETINGS;
  return room;
}

/* Removes duplicates, so that each word is compared once. Most words are told
** apart by a bit of their own, the rest by a search. */
static unsigned answer_unite(struct ljp_memo_read *word, unsigned n)
{
  uint64_t seen[16] = {0};
  unsigned kept = 0;
  for (unsigned i = 0; i < n; i++) {
    uint64_t hash = word[i].at * UINT64_C(0x9e3779b97f4a7c15) >> 54;
    uint64_t *bits = &seen[hash / 64], bit = UINT64_C(1) << hash % 64;
    unsigned j = *bits & bit ? 0 : kept;
    while (j < kept && word[j].at != word[i].at)
      j++;
    if (j == kept)
      word[kept++] = word[i];
    *bits |= bit;
  }
  return kept;
}

/* Fills the words up to a multiple of four, since four are compared at a time.
*/
static unsigned answer_round(struct ljp_memo_read *word, unsigned n)
{
  for (; n & 3 && n < LJP_ANSWER_WORDS; n++)
    word[n] = word[0];
  return n;
}

static bool answer_words(const struct ljp_stacks *s, struct ljp_answer *a,
                         const struct ljp_caller *caller,
                         const struct ljp_return_site *site,
                         const struct ljp_guest_regs *regs,
                         const struct ljp_guest_start *start,
                         const struct ljp_segment *segment)
{
  unsigned n = ljp_front_words(s, caller, a->word), more;
  if (!n)
    return false;
  more =
      ljp_guest_start_words(s->heap, &site->in_guest, regs, start,
                            &segment->spine, a->word + n, LJP_ANSWER_WORDS - n);
  n += more;
  if (!more || segment->words > LJP_ANSWER_WORDS - n)
    return false;
  memcpy(a->word + n, segment->word, segment->words * sizeof *a->word);
  n = answer_unite(a->word, n + segment->words);
  a->words = answer_round(a->word, n);
  return true;
}

void ljp_answers_meet(struct ljp_stacks *s, const struct ljp_caller *caller,
                      const struct ljp_return_site *site,
                      const struct ljp_guest_regs *regs,
                      const struct ljp_guest_start *start,
                      const struct ljp_segment *segment,
                      const struct ljp_found_stack *found)
{
  struct ljp_answers *t = s->answers;
  if (!t->met || !segment->learned || found->count > LJP_NUMBERED_FRAMES)
    return;
  t->met = false;
  if (t->patience.pause) {
    t->patience.pause--;
    return;
  }
  struct ljp_answer *a = answer_candidate(s, caller, t->place);
  if (!a || --a->wait)
    return;
  a->wait = MEETINGS;
  a->hits = 0;
  if (!answer_words(s, a, caller, site, regs, start, segment)) {
    answers_set_pause(t, a);
    return;
  }
  int *error = &errno, saved = *error;
  a->stack = *found;
  memcpy(a->frame, found->frames, found->count * sizeof *a->frame);
  a->stack.frames = a->frame;
  a->stack.number = (uint8_t)(a - t->answer);
  if (ljp_push_stack_wait(s->producer, a->stack.number, a->frame,
                          a->stack.count)) {
    a->epoch = s->epoch;
    t->after[t->history] = a->stack.number;
    ljp_answers_follow(t, a);
  }
  *error = saved;
}
