/*
** The frames below a segment of Lua frames, that is, below its C frame. They
** are either learned from a walk, with every word of memory that the walk read,
** or put together: plain steps lead down to a segment that is remembered
** itself. Used by stack.c.
**
** Invariant: after ljp_below_find() succeeds, a segment's spine.stack begins
** with the spine.rest frames that are below it.
*/
#ifndef LJP_MEMORY_BELOW_H
#define LJP_MEMORY_BELOW_H

#include "profilers/memory/segments.h"
#include "src/base/saferead.h"

/* Returns the remembered segment of a start's thread and C frame. NULL:
** none. */
struct ljp_segment *ljp_below_segment(struct ljp_stacks *stacks,
                                      const struct ljp_guest_start *start);

/* Begins a segment if the frames below it can be put together. NULL: they
** cannot. */
struct ljp_segment *ljp_below_begin(struct ljp_stacks *stacks,
                                    const struct ljp_guest_start *start);

/* Puts the frames below a segment together from remembered segments. The
** segment's spine must have been followed. deep: the number of segments above
** it. */
bool ljp_below_put_together(struct ljp_stacks *stacks,
                            struct ljp_segment *segment,
                            const struct ljp_guest_start *start, uint32_t *kept,
                            unsigned deep);

/* Brings the segment's spine up to date for a start. Does not look at the
** frames below it. */
static inline bool ljp_below_follow_spine(struct ljp_stacks *s,
                                          struct ljp_segment *a,
                                          const struct ljp_guest_start *start,
                                          uint32_t *kept)
{
  if (LJP_UNLIKELY(a->epoch != s->epoch)) {
    a->epoch = s->epoch;
    ljp_segment_clear(s, a);
  }
  return ljp_spine_follow(&a->spine, start, kept);
}

static inline bool ljp_below_unchanged(const struct ljp_segment *a)
{
  return a->learned && a->spine.low == a->low && a->spine.below == a->below &&
         ljp_saferead_equal(a->word, a->words) == a->words;
}

/* Brings the segment's spine and the frames below it up to date for a start.
** *kept: how many of the first frames are unchanged. False: they are not known,
** or it is time to learn them. */
static inline bool ljp_below_find(struct ljp_stacks *s, struct ljp_segment *a,
                                  const struct ljp_guest_start *start,
                                  uint32_t *kept)
{
  return ljp_below_follow_spine(s, a, start, kept) &&
         (LJP_LIKELY(ljp_below_unchanged(a)) ||
          ljp_below_put_together(s, a, start, kept, 0)) &&
         LJP_LIKELY(a->found < a->enough);
}

/* Learns the frames below a segment, after a full walk has found the stack
** `found`. segment: the start's segment; NULL: it has none yet. */
void ljp_below_learn(struct ljp_stacks *stacks, struct ljp_segment *segment,
                     const struct ljp_return_site *site,
                     const struct ljp_guest_start *start,
                     const struct ljp_found_stack *found);

#endif
