/*
** The stream's clock. LJP_SIGSAFE: clock_gettime is a vDSO call.
*/
#ifndef LJP_CLOCK_H
#define LJP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ljp_clock_of(clockid_t id)
{
  struct timespec ts = {
      0, 0}; /* Stays 0 if the thread of a thread's clock is gone. */
  clock_gettime(id, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t ljp_clock_ns(void)
{
  return ljp_clock_of(CLOCK_MONOTONIC);
}

#endif
