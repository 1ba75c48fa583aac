/* A checksum of samples in their order, to compare two ways of reading. */
#ifndef LJP_TEST_SAMPLES_H
#define LJP_TEST_SAMPLES_H

#include "parsers/stream/reader.h"

static inline uint64_t
sum_samples(uint64_t sum, const struct ljp_timed_sample *many, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const struct ljp_rec_sample *s = &many[i].sample;
    sum = sum * 31 + many[i].time_ns;
    sum = sum * 31 + s->stack;
    sum = sum * 31 + s->vm;
    sum = sum * 31 + s->weight;
    sum = sum * 31 + s->state * 256u + s->cut;
  }
  return sum;
}

#endif
