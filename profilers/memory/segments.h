/*
** The table of remembered segments of Lua frames, by Lua thread and C frame.
** Most segments are small, so that hundreds of coroutines can have one each; a
** few are deep. Used by below.c and stack.c.
**
** Invariants: a segment never moves. Its arrays are its own small ones, or
** those of the deep entry that it owns.
*/
#ifndef LJP_MEMORY_SEGMENTS_H
#define LJP_MEMORY_SEGMENTS_H

#include "profilers/memory/return_site.h"
#include "src/base/memo.h"

struct ljp_segment {
  uint32_t epoch; /* in which it was begun; useless in any other */
  uint64_t L, cframe;
  bool learned;        /* the frames below it are known, with their words; if
                       ** so: */
  uint64_t low, below; /* the spine's */
  uint32_t words, hits;
  uint32_t seen;   /* hits at the last search for room in its set */
  uint32_t found;  /* times in a row that it was put together the same */
  uint32_t enough; /* the value of `found` at which learning it is worth the
                   ** cost */
  struct ljp_patience patience;
  uint32_t word_room;
  struct ljp_memo_read *word;
  struct ljp_spine spine;
};

/* False: out of memory. */
bool ljp_segments_init(struct ljp_stacks *stacks);
void ljp_segments_fini(struct ljp_stacks *stacks);
/* Makes all segments useless, since the epochs restart at 1. */
void ljp_segments_forget(struct ljp_stacks *stacks);

/* NULL: none is remembered. */
struct ljp_segment *ljp_segment_find(struct ljp_stacks *stacks, uint64_t L,
                                     uint64_t cframe);

/* Chooses the segment to replace: a useless one, or else the one with the
** fewest recent hits, but never in_use (may be NULL). */
struct ljp_segment *ljp_segment_victim(struct ljp_stacks *stacks, uint64_t L,
                                       uint64_t cframe,
                                       const struct ljp_segment *in_use);

/* Forgets its frames. */
void ljp_segment_clear(struct ljp_stacks *stacks, struct ljp_segment *segment);

/* Gives the segment the arrays of a deep entry, and clears it. False: it has
** them already. */
bool ljp_segment_deepen(struct ljp_stacks *stacks, struct ljp_segment *segment);

#endif
