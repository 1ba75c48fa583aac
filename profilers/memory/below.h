/*
** What is below a segment of Lua frames, so below its C frame. It is learned
** from a walk, with all words of memory that the walk read; or it is put
** together, by plain steps down to a segment that is remembered itself. Used by
** stack.c.
**
** Invariant: a segment's spine.stack begins with the spine.rest frames that
** were below it when ljp_below_find() last succeeded.
*/
#ifndef LJP_MEMORY_BELOW_H
#define LJP_MEMORY_BELOW_H

#include "profilers/memory/segments.h"
#include "src/base/saferead.h"

/* The segment that is remembered of this C frame; NULL: none. */
struct ljp_segment *ljp_below_of(struct ljp_stacks *stacks,
                                 const struct ljp_guest_start *start);

/* One that is begun, if what is below it can be put together; else NULL. */
struct ljp_segment *ljp_below_begin(struct ljp_stacks *stacks,
                                    const struct ljp_guest_start *start);

/* What is below a segment whose spine has been followed, of segments that are
** remembered; deep: so many are above. */
bool ljp_below_put_together(struct ljp_stacks *stacks,
                            struct ljp_segment *again,
                            const struct ljp_guest_start *start, uint32_t *kept,
                            unsigned deep);

/* Makes its spine that of a start; nothing is said yet of what is below. */
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

/* Makes its spine that of a start, with what is below; *kept: the first
** frames that stay what they were, this many. False: nobody knows, or it is
** time to learn it. */
static inline bool ljp_below_find(struct ljp_stacks *s, struct ljp_segment *a,
                                  const struct ljp_guest_start *start,
                                  uint32_t *kept)
{
  return ljp_below_follow_spine(s, a, start, kept) &&
         (LJP_LIKELY(ljp_below_unchanged(a)) ||
          ljp_below_put_together(s, a, start, kept, 0)) &&
         LJP_LIKELY(a->found < a->enough);
}

/* After a full walk, which has found this. again: that of the segment, or
** NULL. */
void ljp_below_learn(struct ljp_stacks *stacks, struct ljp_segment *again,
                     const struct ljp_return_site *site,
                     const struct ljp_guest_start *start,
                     const struct ljp_found_stack *found);

#endif
