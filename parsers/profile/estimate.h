/*
** The error of an estimate of memory that was made from sampled blocks.
**
** A block of s bytes is sampled with the probability p = 1 - exp(-s/interval),
** independently of all others, and stands for s/p bytes and 1/p objects. So the
** sampled blocks themselves are certain; what is uncertain is how many others
** were not sampled.
**
** For blocks of one size, the number of unsampled blocks has a negative
** binomial distribution: it is the number of failures before the n-th success,
** where n is the number of samples for the lower bound, and one more for the
** upper bound. (For small p this gives the exact interval of a Poisson
** variable.) For blocks of several sizes, the distribution is approximated by a
** gamma distribution with the observed mean and variance. The additional sample
** of the upper bound is then taken to be as small as possible, which makes the
** bounds rather too wide than too narrow: 0 bytes for an estimate of bytes, and
** LJP_ESTIMATE_SMALLEST for one of objects, since many small blocks may exist
** beside large ones without a single sample of them.
**
** doc/guide/reports.md says what this means to users; test_estimate.c checks
** how often the bounds hold. Plain numbers, no state. Used by the profile and
** by views. Any thread.
*/
#ifndef LJP_PARSERS_ESTIMATE_H
#define LJP_PARSERS_ESTIMATE_H

#include <stdint.h>

#define LJP_ESTIMATE_SMALLEST 16 /* Bytes; few blocks of LuaJIT are smaller. */

/* Sums over the sampled blocks of an estimate. All 0: the estimate is exact. */
struct ljp_estimate {
  uint64_t samples, objects, bytes; /* The blocks themselves. */
  double variance_objects, variance_bytes;
  double grain;      /* Sum of size * (weight - size). */
  uint64_t smallest; /* Smallest size ever added; 0: none. */
};

struct ljp_bounds {
  double low, high;
};

/* Adds or removes a sampled block. weight: the bytes that it stands for, at
** least its size. take_object: leaves the bytes, for an object that goes on in
** another block. */
void ljp_estimate_add(struct ljp_estimate *e, uint64_t size, uint64_t weight);
void ljp_estimate_take_object(struct ljp_estimate *e, uint64_t size,
                              uint64_t weight);
void ljp_estimate_take(struct ljp_estimate *e, uint64_t size, uint64_t weight);
void ljp_estimate_sum(struct ljp_estimate *to, const struct ljp_estimate *from);

/* Bounds that contain the true value in at least 95 of 100 cases. interval: the
** mean distance of two samples in bytes; 0: nothing was sampled. */
struct ljp_bounds ljp_estimate_objects(const struct ljp_estimate *e,
                                       double objects, double interval);
struct ljp_bounds ljp_estimate_bytes(const struct ljp_estimate *e, double bytes,
                                     double interval);

#endif
