/*
** The stacks of a VM's allocations; see stack.h.
**
** An answer has three parts. On top stand host frames, from the allocator to
** where the guest called into C: plain steps, one a return address, remembered
** by that (struct ljp_site). Then the topmost segment of Lua frames, of which
** only what has changed is walked (ljp_spine_follow). What is below its C frame
** changes with other words of memory only: these were noted when it was walked,
** and are compared (struct ljp_again).
*/
#include "profilers/memory/recall.h"
#include "profilers/memory/rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "src/base/saferead.h"

enum {
  RECALLS = 64,    /* bits of a word */
  STOOD = 3,       /* answers of a segment whose frames stayed, and then */
  RECALL_AFTER = 3 /* that were the same at a place: that one is learned */
};

bool ljp_stacks_init(struct ljp_stacks *s)
{
  const char *check = getenv("LJPROF_MEMPROF_CHECK");
  s->check = check && strcmp(check, "1") == 0;
  s->epoch = 1;
  s->serial = ljp_unwind_serial(s->unwind);
  s->recalls = calloc(RECALLS, sizeof *s->recalls);
  return ljp_front_init(s) && ljp_segments_init(s) && s->recalls;
}

void ljp_stacks_fini(struct ljp_stacks *s)
{
  ljp_front_fini(s);
  ljp_segments_fini(s);
  free(s->recalls);
  s->recalls = NULL;
}

/* -- The answer --------------------------------------------------------------------- */

static __attribute__((noinline)) void new_epoch(struct ljp_stacks *s)
{
  s->last = NULL;
  s->given[0] = s->given[1] = NULL;
  if (++s->epoch == 0) { /* comes round: nothing may be left of the first */
    ljp_front_forget(s);
    ljp_segments_forget(s);
    for (int i = 0; i < RECALLS; i++)
      s->recalls[i].epoch = 0;
    s->epoch = 1;
  }
}

static inline void look_at_generations(struct ljp_stacks *s)
{
  if (LJP_LIKELY(ljp_stacks_are_of_now(s)))
    return;
  s->generation[0] = atomic_load_explicit(s->serial, memory_order_relaxed);
  s->generation[1] = ljp_guest_code_generation();
  new_epoch(s);
}

static inline bool is_on_top(const struct ljp_stacks *s,
                             const struct ljp_again *a,
                             const struct ljp_site *site,
                             const struct ljp_top *top)
{
  if (LJP_LIKELY(!s->native))
    return a->top == site->rip;
  return memcmp(a->spine.stack + a->spine.frames, top->frame,
                top->count * sizeof *top->frame) == 0;
}

/* Frames from the root that two answers share. */
static uint32_t count_common(const struct ljp_again *a,
                             const struct ljp_again *b)
{
  uint32_t n = 0;
  if (!a)
    return 0;
  while (n < a->total && n < b->total && a->spine.stack[n] == b->spine.stack[n])
    n++;
  return n;
}

/* On the spine, of which `kept` frames, up to `before`, are those of a's last
** answer. How many are. */
static __attribute__((noinline)) uint32_t
put_on_top(struct ljp_stacks *s, struct ljp_again *a,
           const struct ljp_site *site, const struct ljp_top *top,
           uint32_t kept, uint32_t before)
{
  uint32_t at = a->spine.frames, i = a->total;
  uint64_t *stack = a->spine.stack;
  for (uint32_t n = 0; n < top->count; n++, at++) {
    if (kept == at && kept < before && stack[at] == top->frame[n])
      kept++;
    stack[at] = top->frame[n];
  }
  a->top = s->native ? ++s->tops : site->rip;
  a->state = LJP_VMSTATE_UNKNOWN;
  while (i-- > 0 && a->state == LJP_VMSTATE_UNKNOWN)
    a->state = (uint8_t)ljp_stacks_state(stack[i]);
  return kept;
}

/* Of the spine as it is, of which `kept` frames are those of a's last answer. */
static inline __attribute__((always_inline)) bool
give(struct ljp_stacks *s, struct ljp_again *a, const struct ljp_site *site,
     uint32_t kept, uint32_t before, struct ljp_found_stack *found)
{
  struct ljp_top top;
  ljp_front_top(s, site, &top);
  uint32_t at = a->spine.frames, total = at + top.count;
  if (LJP_UNLIKELY(total > s->depth))
    return false;
  a->total = total;
  if (kept == at && before == total && is_on_top(s, a, site, &top))
    kept = total;
  else
    kept = put_on_top(s, a, site, &top, kept, before);
  found->frames = a->spine.stack;
  found->count = total;
  found->same = LJP_LIKELY(s->last == a) ? kept : count_common(s->last, a);
  found->root_first = true;
  found->top = a->state;
  a->hits += a->learned;
  s->last = a;
  s->remembered++;
  return true;
}

static inline bool answer(struct ljp_stacks *s, struct ljp_again *a,
                          const struct ljp_site *site,
                          const struct ljp_guest_start *start,
                          struct ljp_found_stack *found)
{
  uint32_t kept, before = a->total;
  /* Whoever fails leaves behind what was never an answer. */
  a->total = 0;
  return ljp_rest_find(s, a, start, &kept) &&
         give(s, a, site, kept, before, found);
}

/* -- Whole answers ------------------------------------------------------------------- */

static inline unsigned recall_of(const struct ljp_caller *caller)
{
  uint64_t key = (uint64_t)(uintptr_t)caller ^ caller->rip << 4;
  return key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (RECALLS - 1);
}

/* So that all are compared four at a time. Where the low bytes do not matter,
** eight are from behind them on: that the next word may not change either does no
** harm. */
static unsigned round_words(struct ljp_memo_read *word, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    if (word[i].at & 7)
      memcpy(&word[i].value, (const void *)(uintptr_t)word[i].at,
             sizeof word[i].value);
  for (; n & 3 && n < LJP_RECALL_WORDS; n++)
    word[n] = word[0];
  return n;
}

/* After an answer: is it worth to be remembered as a whole? */
static __attribute__((noinline)) void learn_answer(
    struct ljp_stacks *s, const struct ljp_caller *caller, struct ljp_again *a,
    const struct ljp_site *site, const struct ljp_guest_regs *regs,
    const struct ljp_guest_start *start, const struct ljp_found_stack *found)
{
  const unsigned at = recall_of(caller);
  struct ljp_recall *c = &s->recalls[at];
  if (c->caller != caller || c->rip != caller->rip || c->serial != a->serial ||
      c->site != site || c->met == 0) {
    c->caller = caller;
    c->rip = caller->rip;
    c->serial = a->serial;
    c->site = site;
    c->epoch = 0;
    s->recalled &= ~(UINT64_C(1) << at);
    c->met = RECALL_AFTER;
    return;
  }
  if (--c->met)
    return;
  unsigned n = ljp_front_words(s, caller, c->word);
  if (!n)
    return;
  unsigned more =
      ljp_guest_start_words(s->heap, &site->in_guest, regs, start, &a->spine,
                            c->word + n, LJP_RECALL_WORDS - n);
  n += more;
  if (!more || a->words > LJP_RECALL_WORDS - n)
    return;
  memcpy(c->word + n, a->word, a->words * sizeof *a->word);
  c->words = round_words(c->word, n + a->words);
  c->again = a;
  c->site_rip = site->rip;
  c->top = a->top;
  c->hosts = s->hosts;
  memcpy(c->host, s->host, sizeof c->host);
  c->type = found->type;
  c->object = found->object;
  c->epoch = s->epoch;
  s->recalled |= UINT64_C(1) << at;
}

/* A second opinion; the first one stands in found->frames, root first. */
static void check(struct ljp_stacks *s, const struct ljp_caller *caller,
                  const struct ljp_found_stack *found)
{
  struct ljp_found_stack walked;
  struct ljp_again *last = s->last;
  const struct ljp_recall *given[] = {s->given[0], s->given[1]};
  s->memo.valid = false;
  s->memo.pause = 0;
  ljp_stacks_walk_from(s, caller, &walked);
  bool equal = walked.count == found->count && walked.type == found->type &&
               walked.object == found->object && walked.top == found->top;
  for (uint32_t i = 0; equal && i < walked.count; i++)
    equal = walked.frames[i] == found->frames[walked.count - 1 - i];
  s->last = last;
  s->given[0] = given[0];
  s->given[1] = given[1];
  s->checked++;
  s->differed += !equal;
}

static __attribute__((noinline)) bool recall(struct ljp_stacks *s,
                                             const struct ljp_caller *caller,
                                             struct ljp_found_stack *found)
{
  const struct ljp_recall *c = &s->recalls[recall_of(caller)];
  if (LJP_UNLIKELY(c->caller != caller || c->epoch != s->epoch ||
                   c->rip != caller->rip))
    return false;
  struct ljp_again *a = c->again;
  if (LJP_UNLIKELY(a->serial != c->serial ||
                   ljp_saferead_same(c->word, c->words) != c->words))
    return false;
  found->type = c->type;
  found->object = c->object;
  if (LJP_UNLIKELY(s->last != a || a->top != c->top || !a->total)) {
    s->given[0] = s->given[1] = NULL;
    s->hosts = c->hosts;
    memcpy(s->host, c->host, sizeof s->host);
    if (c->site->rip != c->site_rip ||
        !give(s, a, c->site, a->spine.frames, a->total, found))
      return false;
    a->top = c->top;
    if (LJP_UNLIKELY(s->check))
      check(s, caller, found);
    return true;
  }
  /* The last answer once more. */
  found->frames = a->spine.stack;
  found->count = found->same = a->total;
  found->root_first = true;
  found->top = a->state;
  a->hits++;
  s->remembered++;
  if (s->given[0] != c) {
    s->given[1] = s->given_to == found ? s->given[0] : NULL;
    s->given[0] = c;
  }
  s->given_to = found;
  if (LJP_UNLIKELY(s->check))
    check(s, caller, found);
  return true;
}

/* Has the segment been left as it is for a while? */
static inline bool stands(struct ljp_again *a)
{
  a->stood = a->stood_serial == a->serial ? a->stood + 1 : 0;
  a->stood_serial = a->serial;
  return a->stood >= STOOD;
}

/* Our module and the program, which are never unloaded while we run: any
** address in them leads to their witnesses. */
static void find_witnesses(struct ljp_stacks *s, uint64_t rip)
{
  const struct ljp_unwind_map *map = ljp_unwind_acquire(s->unwind);
  if (!map)
    return;
  s->own = ljp_unwind_witness_of(map, rip);
  s->program = ljp_unwind_witness_of(map, getauxval(AT_ENTRY));
  ljp_unwind_release(s->unwind, map);
}

static __attribute__((noinline)) void find(struct ljp_stacks *s,
                                           const struct ljp_caller *caller,
                                           struct ljp_found_stack *found)
{
  struct ljp_guest_regs regs;
  struct ljp_guest_start start;
  s->given[0] = s->given[1] = NULL;
  if (LJP_UNLIKELY(!s->own))
    find_witnesses(s, (uint64_t)(uintptr_t)__builtin_return_address(0));
  const struct ljp_site *site = ljp_front_find(s, caller, &regs, found);
  if (!site || !ljp_guest_start_at(s->heap, &site->in_guest, &regs, &start)) {
    ljp_stacks_walk_from(s, caller, found);
    return;
  }
  struct ljp_again *a = s->last;
  if (LJP_UNLIKELY(!a || a->L != start.L || a->cframe != start.cframe))
    a = ljp_rest_of(s, &start);
  if (LJP_UNLIKELY(!a))
    a = ljp_rest_begin(s, &start);
  if (LJP_LIKELY(a && answer(s, a, site, &start, found))) {
    if (LJP_LIKELY(a->learned) && stands(a))
      learn_answer(s, caller, a, site, &regs, &start, found);
    if (LJP_UNLIKELY(s->check))
      check(s, caller, found);
    return;
  }
  uint64_t cuts = s->cut;
  ljp_stacks_walk_from(s, caller, found);
  if (s->cut == cuts) {
    int *error = &errno, saved = *error;
    ljp_rest_learn(s, a, site, &start, found);
    *error = saved;
  }
}

bool ljp_stacks_check_given(struct ljp_stacks *s,
                            const struct ljp_caller *caller)
{
  check(s, caller, s->given_to);
  return true;
}

void ljp_stacks_find(struct ljp_stacks *s, const struct ljp_caller *caller,
                     struct ljp_found_stack *found)
{
  look_at_generations(s);
  if (!(s->recalled >> recall_of(caller) & 1) || !recall(s, caller, found))
    find(s, caller, found);
}
