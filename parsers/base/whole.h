/*
** Whole numbers from floating point ones that a file may have made as large as
** it liked: what is out of range becomes the nearest number in range, NaN
** becomes 0. A plain cast would be undefined there.
** Any thread.
*/
#ifndef LJP_PARSERS_WHOLE_H
#define LJP_PARSERS_WHOLE_H

#include <stdint.h>

/* Cuts off what stands behind the point. */
static inline uint64_t ljp_whole(double x)
{
  return !(x > 0) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

static inline int64_t ljp_whole_signed(double x)
{
  return x >= 0x1p63    ? INT64_MAX
         : x <= -0x1p63 ? INT64_MIN
         : x == x       ? (int64_t)x
                        : 0;
}

#endif
