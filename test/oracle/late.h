/*
** Samples that the move of a Lua stack puts off, in the oracle: each
** instruction inside a move has its own, taken where the sampler takes it, at
** the move's end, by the sampler's code, and compared with the truth of its
** instruction.
*/
#ifndef LJP_TEST_LATE_H
#define LJP_TEST_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/unwind/walk.h"

/* equal() compares frames as the oracle does; judged() gets the instruction of
** each sample, and whether its stack was right. */
void late_init(struct ljp_unwind *unwind, bool verbose,
               bool (*equal)(const uint64_t *a, uint32_t a_count,
                             const uint64_t *b, uint32_t b_count),
               void (*judged)(bool right, uint64_t rip));

/* In the trap's handler: an instruction whose walk was put off; the truth
** there, without the instruction itself; root: the last return address that is
** known to it. False: no room, so nobody will judge it. */
bool late_add(uint64_t rip, const struct ljp_stack *stack,
              const uint64_t *truth, uint32_t count, uint64_t root);

/* How many are not judged yet. */
uint32_t late_waiting(void);

/* They are being taken: what is stepped now is not the workload. */
bool late_at_work(void);

#endif
