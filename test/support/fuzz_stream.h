/*
** What the fuzz targets that read streams share: checksums are made right again
** after most changes, so that what is inside is reached, and text that is
** written is kept to be looked at.
*/
#ifndef LJP_TEST_FUZZ_STREAM_H
#define LJP_TEST_FUZZ_STREAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/reseal.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "does not hold: %s\n", #condition);                      \
      abort();                                                                 \
    }                                                                          \
  } while (0)

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16)
    reseal(data, size);
  return size;
}

#endif
