/*
** Numbers without a pattern that are the same in every run (xorshift64): for
** the streams that tests and benchmarks make up.
*/
#ifndef LJP_TEST_RANDOM_H
#define LJP_TEST_RANDOM_H

#include <stdint.h>

#define RANDOM_SEED UINT64_C(88172645463325252)

static inline uint64_t random_next(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* The same from a state of this file's own. */
static inline uint64_t random_number(void)
{
  static uint64_t state = RANDOM_SEED;
  return random_next(&state);
}

#endif
