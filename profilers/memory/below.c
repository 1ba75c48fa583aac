/*
** See below.h.
*/
#include "profilers/memory/below.h"

#include <string.h>

#include "src/base/saferead.h"

enum {
  WORTH = 16, /* hits that make up for the cost of learning */
  LONGEST_PAUSE = 63,
  ENOUGH = 64, /* see struct ljp_segment */
  ENOUGH_AT_MOST = 1 << 16
};

struct ljp_segment *ljp_below_segment(struct ljp_stacks *s,
                                      const struct ljp_guest_start *start)
{
  return ljp_segment_find(s, start->L, start->cframe);
}

/* Begins a segment in the place of another. */
static void below_begin(struct ljp_stacks *s, struct ljp_segment *a,
                        const struct ljp_guest_start *start)
{
  a->epoch = s->epoch;
  a->L = start->L;
  a->cframe = start->cframe;
  a->hits = a->seen = a->found = 0;
  a->enough = ENOUGH;
  a->patience = (struct ljp_patience){0};
  ljp_segment_clear(s, a);
}

/* -- Put together ---------------------------------------------------------- */

/* Where the segment below a C frame is; with `native` also the host frames
** between the two. */
struct below {
  const struct ljp_return_site *site;
  struct ljp_guest_regs regs;
  uint64_t L, cframe;
  uint32_t hosts;
  uint64_t *host; /* LJP_BELOW_FRAMES of them */
};

static bool below_step(struct ljp_stacks *s, uint64_t L, uint64_t cframe,
                       struct below *below, unsigned deep)
{
  below->host = s->below[deep].host;
  ljp_spine_caller(cframe, &below->regs);
  below->site = ljp_front_below(s, &below->regs, below->host, &below->hosts);
  return below->site &&
         ljp_guest_below(s->heap, L, cframe, &below->site->in_guest,
                         &below->regs, &below->L, &below->cframe);
}

static bool below_follow(struct ljp_stacks *s, struct ljp_segment *a,
                         const struct ljp_guest_start *start, uint32_t *kept,
                         unsigned deep);

/* The frames below a: the frames of b, the segment below it, and what is
** between the two. */
bool ljp_below_put_together(struct ljp_stacks *s, struct ljp_segment *a,
                            const struct ljp_guest_start *start, uint32_t *kept,
                            unsigned deep)
{
  struct below below;
  struct ljp_guest_start next;
  uint32_t ignored, n = 0;
  if (deep >= LJP_BELOW_DEEP || !below_step(s, a->L, a->cframe, &below, deep))
    return false;
  uint64_t *between = s->below[deep].between;
  struct ljp_segment *b = ljp_segment_find(s, below.L, below.cframe);
  if (!b || b == a ||
      !ljp_spine_below(s->heap, &a->spine, &below.site->in_guest, &below.regs,
                       &next, &between[0]) ||
      !below_follow(s, b, &next, &ignored, deep + 1))
    return false;
  n = between[0] != 0;
  for (uint32_t i = s->native ? below.hosts : 0; i-- > 0;)
    between[n++] = below.host[i];
  uint32_t rest = b->spine.frames;
  if (rest + n > a->spine.room) {
    a->spine.tight = true;
    return false;
  }
  a->learned = false;
  b->hits++;
  if (rest + n == a->spine.rest &&
      memcmp(a->spine.stack, b->spine.stack, rest * sizeof(uint64_t)) == 0 &&
      memcmp(a->spine.stack + rest, between, n * sizeof(uint64_t)) == 0) {
    a->found++;
    return true;
  }
  ljp_segment_clear(s, a);
  a->found = 0;
  memcpy(a->spine.stack, b->spine.stack, rest * sizeof(uint64_t));
  memcpy(a->spine.stack + rest, between, n * sizeof(uint64_t));
  a->spine.rest = a->spine.frames = rest + n;
  bool ok = ljp_spine_follow(&a->spine, start, kept);
  *kept = 0;
  return ok;
}

static bool below_follow(struct ljp_stacks *s, struct ljp_segment *a,
                         const struct ljp_guest_start *start, uint32_t *kept,
                         unsigned deep)
{
  return ljp_below_follow_spine(s, a, start, kept) &&
         (ljp_below_unchanged(a) ||
          ljp_below_put_together(s, a, start, kept, deep));
}

struct ljp_segment *ljp_below_begin(struct ljp_stacks *s,
                                    const struct ljp_guest_start *start)
{
  struct below below;
  if (!below_step(s, start->L, start->cframe, &below, 0))
    return NULL;
  const struct ljp_segment *b = ljp_segment_find(s, below.L, below.cframe);
  if (!b || b->epoch != s->epoch)
    return NULL;
  struct ljp_segment *a = ljp_segment_victim(s, start->L, start->cframe, b);
  below_begin(s, a, start);
  return a;
}

/* -- Learned --------------------------------------------------------------- */

static bool below_learn_words(struct ljp_stacks *s, struct ljp_segment *a,
                              const struct ljp_unwind_map *map)
{
  uint64_t *frames = s->scratch;
  struct ljp_walk walk = {.guest = {.vm = 1, .state = LJP_VMSTATE_INTERP}};
  struct ljp_regs regs = {.notes = &s->memo, .room = &s->room};
  ljp_memo_begin_lean(&s->memo);
  if (!ljp_spine_leave(&a->spine, &walk.guest, &regs) ||
      !ljp_walk_rest(&walk, map, &regs, frames, LJP_STACK_MAX_FRAMES, &s->memo))
    return false;
  if (s->memo.reads + s->memo.always_reads + 3 > a->word_room) {
    a->spine.tight = true;
    return false;
  }
  uint32_t n = 0, rest = 0;
  for (uint32_t i = 0; i < s->memo.always_reads; i++)
    if (s->memo.always[i].at != s->own && s->memo.always[i].at != s->program &&
        s->memo.always[i].at != s->libc)
      a->word[n++] = s->memo.always[i];
  for (uint32_t i = 0; i < s->memo.reads; i++)
    if (!ljp_spine_pins(&a->spine, s->memo.read[i].at))
      a->word[n++] = s->memo.read[i];
  for (; n & 3; n++) /* four are compared at a time */
    a->word[n] = a->word[0];
  a->words = n;
  for (uint32_t i = walk.stack.count; i-- > 0;) {
    if (!s->native && !ljp_guest_is_frame(frames[i]))
      continue;
    if (rest == a->spine.room) {
      a->spine.tight = true;
      return false;
    }
    a->spine.stack[rest++] = frames[i];
  }
  a->low = a->spine.low;
  a->below = a->spine.below;
  a->spine.rest = a->spine.frames = rest;
  a->spine.count = 0;
  return true;
}

/* Does the full walk, which found the stack by other means, agree? */
static bool below_agrees(const struct ljp_segment *a, const struct ljp_top *top,
                         const struct ljp_found_stack *found)
{
  uint32_t n = a->spine.frames;
  if (n + top->count != found->count)
    return false;
  for (uint32_t i = 0; i < top->count; i++)
    if (found->frames[top->count - 1 - i] != top->frame[i])
      return false;
  for (uint32_t i = 0; i < n; i++)
    if (found->frames[found->count - 1 - i] != a->spine.stack[i])
      return false;
  return true;
}

/* Is it time to learn? Not all frames below a segment are worth it. */
static bool below_may_learn(struct ljp_patience *patience,
                            struct ljp_segment *a)
{
  if (a && a->found >= a->enough) {
    a->found = 0;
    if (a->enough < ENOUGH_AT_MOST)
      a->enough *= 4;
    return true;
  }
  if (patience->pause) {
    patience->pause--;
    return false;
  }
  return true;
}

static void below_set_pause(struct ljp_patience *patience, bool was_worth)
{
  if (was_worth) {
    patience->longer = 0;
    return;
  }
  patience->pause = patience->longer;
  patience->longer = 2 * patience->longer + 1;
  if (patience->longer > LONGEST_PAUSE)
    patience->longer = LONGEST_PAUSE;
}

/* Learns the frames below a segment from a walk that goes on below its
** spine. */
static bool below_learn_frames(struct ljp_stacks *s, struct ljp_segment *a,
                               const struct ljp_unwind_map *map,
                               const struct ljp_guest_start *start)
{
  uint32_t kept;
  a->learned =
      ljp_spine_follow(&a->spine, start, &kept) && below_learn_words(s, a, map);
  if (!a->learned && a->spine.tight && ljp_segment_deepen(s, a))
    a->learned = ljp_spine_follow(&a->spine, start, &kept) &&
                 below_learn_words(s, a, map);
  return a->learned;
}

/* Learns the segment below a instead of all frames below a, if nothing else is
** missing: many other segments may stand on it. Returns it; NULL: more is
** missing. */
static struct ljp_segment *
below_learn_segment(struct ljp_stacks *s, struct ljp_segment *a,
                    const struct ljp_unwind_map *map,
                    const struct ljp_guest_start *start)
{
  struct below below;
  struct ljp_guest_start next;
  uint64_t frame;
  uint32_t kept;
  if (!ljp_spine_follow(&a->spine, start, &kept) ||
      !below_step(s, a->L, a->cframe, &below, 0) ||
      !ljp_spine_below(s->heap, &a->spine, &below.site->in_guest, &below.regs,
                       &next, &frame))
    return NULL;
  struct ljp_segment *b = ljp_segment_find(s, below.L, below.cframe);
  if (b && b->epoch == s->epoch) {
    if (b == a || below_follow(s, b, &next, &kept, 1) ||
        !below_may_learn(&b->patience, NULL))
      return NULL;
    below_set_pause(&b->patience, b->hits >= WORTH);
    b->hits = b->seen = 0;
    ljp_segment_clear(s, b);
  } else {
    if (!b)
      b = ljp_segment_victim(s, next.L, next.cframe, a);
    below_begin(s, b, &next);
  }
  a->epoch = s->epoch;
  if (below_learn_frames(s, b, map, &next) &&
      below_follow(s, a, start, &kept, 0))
    return b;
  b->epoch = 0;
  return NULL;
}

/* Learns the segment below a rather than all frames below a, unless `itself` is
** set: then what was put together below a has been the same often enough. */
static bool below_learn(struct ljp_stacks *s, struct ljp_segment *a,
                        const struct ljp_unwind_map *map,
                        const struct ljp_return_site *site,
                        const struct ljp_guest_start *start,
                        const struct ljp_found_stack *found, bool itself)
{
  uint32_t kept;
  struct ljp_top top;
  ljp_front_top(s, site, &top);
  struct ljp_segment *b = itself ? NULL : below_learn_segment(s, a, map, start);
  if (b) {
    if (below_agrees(a, &top, found))
      return true;
    b->epoch = 0;
  }
  ljp_segment_clear(s, a);
  return below_learn_frames(s, a, map, start) &&
         ljp_spine_follow(&a->spine, start, &kept) &&
         below_agrees(a, &top, found);
}

void ljp_below_learn(struct ljp_stacks *s, struct ljp_segment *a,
                     const struct ljp_return_site *site,
                     const struct ljp_guest_start *start,
                     const struct ljp_found_stack *found)
{
  bool itself = a && a->found >= a->enough, tight = a && a->spine.tight;
  struct ljp_patience *patience = a ? &a->patience : &s->patience;
  if (!below_may_learn(patience, a))
    return;
  if (!a)
    a = ljp_segment_victim(s, start->L, start->cframe, NULL);
  bool was_worth = !a->epoch || a->hits >= WORTH;
  if (patience == &s->patience)
    below_begin(s, a, start);
  a->epoch = a->hits = a->seen = a->found = 0;
  ljp_segment_clear(s, a);
  if (ljp_guest_set_resizing(s->heap, false)) {
    ljp_guest_set_resizing(s->heap, true); /* the stack is being moved: do not
                                           ** walk now */
    return;
  }
  const struct ljp_unwind_map *map = ljp_unwind_acquire(s->unwind);
  if (!map)
    return;
  if (tight)
    ljp_segment_deepen(s, a);
  bool done = below_learn(s, a, map, site, start, found, itself);
  a->epoch = done ? s->epoch : 0;
  if (!done || a->learned) /* what was put together from other segments costs
                           ** nothing to find again */
    below_set_pause(patience, was_worth);
  s->learned += done;
  /* The memo holds notes of ours now, so no walk may continue from it. */
  s->memo.valid = false;
  ljp_unwind_release(s->unwind, map);
}
