/*
** Locks of the tables in src/luajit. VM threads take them in hooks, and writer
** threads when they ask what a frame stands for; handlers never do. A lock is
** held briefly, and never while something outside of src/luajit is called.
**
** They are words of our own and not mutexes for two reasons. Loading a chunk of
** Lua takes a lock for each function. And a child of fork() must find all locks
** free, even if another thread of the parent was holding one. From the moment
** the library is loaded, fork() waits until all are free.
*/
#ifndef LJP_LOCK_H
#define LJP_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/sigsafe.h"

enum ljp_lock { LJP_LOCK_VMS, LJP_LOCK_PROTOS, LJP_LOCK_TRACES, LJP_LOCKS };

/* 0: free, 1: taken, 2: taken, and a thread may be waiting. */
extern _Atomic uint32_t ljp_lock_words[LJP_LOCKS];

void ljp_lock_wait(enum ljp_lock which);
void ljp_lock_wake(enum ljp_lock which);

/* For a fast path without a frame: on failure its slow path calls
** ljp_lock_wait(). */
static inline bool ljp_lock_try(enum ljp_lock which)
{
  uint32_t free = 0;
  return atomic_compare_exchange_strong_explicit(&ljp_lock_words[which], &free,
                                                 1, memory_order_acquire,
                                                 memory_order_relaxed);
}

static inline void ljp_lock(enum ljp_lock which)
{
  if (LJP_UNLIKELY(!ljp_lock_try(which)))
    ljp_lock_wait(which);
}

static inline void ljp_unlock(enum ljp_lock which)
{
  if (LJP_UNLIKELY(atomic_exchange_explicit(&ljp_lock_words[which], 0,
                                            memory_order_release) == 2))
    ljp_lock_wake(which);
}

/* Unlocks, and locks again when threads that wait have had time to take the
** lock. */
void ljp_lock_share(enum ljp_lock which);

#endif
