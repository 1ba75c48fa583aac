/*
** What the fuzz targets that read streams share. The mutator corrects checksums
** after most changes, so that changes reach the code behind the checksums.
*/
#ifndef LJP_TEST_FUZZ_STREAM_H
#define LJP_TEST_FUZZ_STREAM_H

#include <string.h>

#include "test/support/must.h"
#include "test/support/reseal.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16)
    reseal(data, size);
  return size;
}

#endif
