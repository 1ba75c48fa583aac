/*
** The table of remembered segments of Lua frames, by Lua thread and C frame.
** Many have room for few frames, so that hundreds of coroutines have one each;
** a few are deep. Used by below.c and stack.c.
**
** Invariants: a segment never moves. Its arrays are its own small ones, or
** those of the deep segment that it owns.
*/
#ifndef LJP_MEMORY_SEGMENTS_H
#define LJP_MEMORY_SEGMENTS_H

#include "profilers/memory/return_site.h"
#include "src/base/memo.h"

struct ljp_segment {
  uint32_t epoch; /* when it was begun; others are of no use */
  uint64_t L, cframe;
  bool learned;        /* what is below, with words; and then: */
  uint64_t low, below; /* the spine's */
  uint32_t words, hits;
  uint32_t seen;   /* of the hits, when room was last looked for beside it */
  uint32_t found;  /* so many times on end it was put together the same */
  uint32_t enough; /* as many as make it worth while to learn it */
  struct ljp_patience patience;
  uint32_t word_room;
  struct ljp_memo_read *word;
  struct ljp_spine spine;
};

/* False: no memory. */
bool ljp_segments_init(struct ljp_stacks *stacks);
void ljp_segments_fini(struct ljp_stacks *stacks);
/* The epochs begin anew. */
void ljp_segments_forget(struct ljp_stacks *stacks);

/* NULL: none is remembered. */
struct ljp_segment *ljp_segment_of(struct ljp_stacks *stacks, uint64_t L,
                                   uint64_t cframe);

/* Which one would make room for that one: what is of no use any more, or was of
** least use; not the one that is in use (may be NULL). */
struct ljp_segment *ljp_segment_victim(struct ljp_stacks *stacks, uint64_t L,
                                       uint64_t cframe,
                                       const struct ljp_segment *in_use);

/* Nothing is known of its frames any more. */
void ljp_segment_clear(struct ljp_stacks *stacks, struct ljp_segment *again);

/* Gives it the arrays of a deep one, and clears it. False: it has them. */
bool ljp_segment_deepen(struct ljp_stacks *stacks, struct ljp_segment *again);

#endif
