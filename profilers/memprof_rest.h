/*
** Segments of Lua frames that are remembered, each with what is below its C
** frame. That is learned by a walk, with all words of memory that it was made
** of; or it is put together, by plain steps down to a segment that is remembered
** itself. Part of memprof_stack.c.
**
** Invariant: a segment's spine.stack begins with the spine.rest frames that were
** below it when ljp_rest_find() last said so.
*/
#ifndef LJP_MEMPROF_REST_H
#define LJP_MEMPROF_REST_H

#include "profilers/memprof_segments.h"

/* The segment that is remembered of this C frame; NULL: none. */
struct ljp_again *ljp_rest_of(struct ljp_stacks *stacks,
                              const struct ljp_guest_start *start);

/* One that is begun, if what is below it can be put together; else NULL. */
struct ljp_again *ljp_rest_begin(struct ljp_stacks *stacks,
                                 const struct ljp_guest_start *start);

/* Makes its spine that of a start, with what is below; *kept: so many frames
** from the root are as they were. False: nobody knows, or it is time to learn
** it. */
bool ljp_rest_find(struct ljp_stacks *stacks, struct ljp_again *again,
                   const struct ljp_guest_start *start, uint32_t *kept);

/* After a full walk, which has found this. again: that of the segment, or
** NULL. */
void ljp_rest_learn(struct ljp_stacks *stacks, struct ljp_again *again,
                    const struct ljp_site *site,
                    const struct ljp_guest_start *start,
                    const struct ljp_found_stack *found);

#endif
