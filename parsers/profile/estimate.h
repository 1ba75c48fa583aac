/*
** How far an estimate of memory may be off that was made of sampled blocks.
**
** A block of s bytes is sampled with the probability p = 1 - exp(-s/interval),
** independently of all others, and stands for s/p bytes and 1/p objects. So of
** what was estimated the sampled blocks themselves are certain; in doubt is how
** much was not sampled beside them. Of blocks of one size that number has a
** negative binomial distribution: as many as fail until the n-th is sampled, n
** being the number of samples for the lower bound, and one more for the upper.
** (Where p is small that is the exact interval of a Poisson variable.) Of blocks
** of several sizes it is taken to have a gamma distribution with the mean and
** the variance that were observed; the one sample more is then of a size as small
** as could be, which makes the bounds wide rather than narrow: for bytes of none,
** for objects of LJP_ESTIMATE_SMALLEST, since beside large blocks there may be
** many small ones of which no sample tells. doc/guide/reports.md says what that means to
** users, test_estimate what it is worth.
**
** Plain numbers, no state. Used by the profile and by views.
*/
#ifndef LJP_PARSERS_ESTIMATE_H
#define LJP_PARSERS_ESTIMATE_H

#include <stdint.h>

#define LJP_ESTIMATE_SMALLEST 16 /* Bytes; few blocks of LuaJIT have fewer. */

/* Sums over the sampled blocks of an estimate. All 0: it is exact. */
struct ljp_estimate {
  uint64_t samples, objects, bytes; /* The blocks themselves. */
  double variance_objects, variance_bytes;
  double grain;      /* Sum of size times what it stands for beyond that. */
  uint64_t smallest; /* Of all that ever were among them; 0: none. */
};

struct ljp_bounds {
  double low, high;
};

/* A sampled block; weight: the bytes that it stands for, at least its size.
** moved: of bytes alone, for an object that was counted before. */
void ljp_estimate_add(struct ljp_estimate *e, uint64_t size, uint64_t weight);
void ljp_estimate_add_moved(struct ljp_estimate *e, uint64_t size,
                            uint64_t weight);
void ljp_estimate_take(struct ljp_estimate *e, uint64_t size, uint64_t weight);
void ljp_estimate_sum(struct ljp_estimate *to, const struct ljp_estimate *from);

/* The bounds that hold the truth in at least 95 of 100 cases. interval: mean
** distance of samples in bytes; 0: nothing was sampled. */
struct ljp_bounds ljp_estimate_objects(const struct ljp_estimate *e,
                                       double objects, double interval);
struct ljp_bounds ljp_estimate_bytes(const struct ljp_estimate *e, double bytes,
                                     double interval);

#endif
