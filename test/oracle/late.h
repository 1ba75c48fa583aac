/*
** Late samples in the oracle: samples that were deferred by the move of a Lua
** stack. Each instruction inside a move has one. It is taken as the sampler
** does it, by the sampler's code at the end of the move, and compared with the
** truth of its instruction.
*/
#ifndef LJP_TEST_LATE_H
#define LJP_TEST_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/unwind/walk.h"

/* equal() compares frames as the oracle does. judged() gets the instruction of
** each sample, and whether the stack was right. */
void late_init(struct ljp_unwind *unwind, bool verbose,
               bool (*equal)(const uint64_t *a, uint32_t a_count,
                             const uint64_t *b, uint32_t b_count),
               void (*judged)(bool right, uint64_t rip));

/* In the trap's handler: adds an instruction whose walk was deferred, with the
** truth there, but without the instruction itself. root: the outermost return
** address that the truth knows. False: no room, so the sample is not judged. */
bool late_add(uint64_t rip, const struct ljp_stack *stack,
              const uint64_t *truth, uint32_t count, uint64_t root);

/* The number of late samples that are not judged yet. */
uint32_t late_waiting(void);

/* Are late samples being taken? Then the stepped code is not the workload. */
bool late_at_work(void);

#endif
