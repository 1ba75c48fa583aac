/*
** Stacks: what each thread of the program and each suspended coroutine is doing
** (ljprof dump-stacks); see stacks.c. On the helper's thread.
*/
#ifndef LJP_JOIN_STACKS_H
#define LJP_JOIN_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"

struct ljp_stacks;

/* Begins: from now on threads may be given. output: the caller's, and must stay
** open. */
enum ljp_status ljp_stacks_new(struct ljp_stacks **out, int output, bool locals,
                               struct ljp_failure *why);
void ljp_stacks_free(struct ljp_stacks *stacks);

/* A thread that the client has stopped, with its registers in the order of enum
** ljp_reg. Takes no lock and no memory: the thread may have any. Returns the
** number of its frames. */
uint32_t ljp_stacks_place(struct ljp_stacks *stacks, int tid,
                          const uint64_t *registers);

/* Writes all stacks. sums: threads, coroutines. */
enum ljp_status ljp_stacks_tell(struct ljp_stacks *stacks, uint64_t sums[2],
                                struct ljp_failure *why);

#endif
