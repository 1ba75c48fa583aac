/*
** Locks of the tables in src/luajit. lock.h says who takes them.
*/
#include "src/luajit/vm/lock.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "src/base/copy.h"
#include "src/base/futex.h"

/* A waiter checks again after this time, in case a wake-up was lost. */
enum { PATIENCE_NS = 100000000 };

_Atomic uint32_t ljp_lock_words[LJP_LOCKS];

void ljp_lock_wait(enum ljp_lock which)
{
  _Atomic uint32_t *word = &ljp_lock_words[which];
  while (atomic_exchange_explicit(word, 2, memory_order_acquire)) {
    ljp_futex_wait(word, 2, PATIENCE_NS);
    ljp_copy_notice(); /* frees the lock if its holder is in another process */
  }
}

void ljp_lock_wake(enum ljp_lock which)
{
  ljp_futex_wake(&ljp_lock_words[which]);
}

void ljp_lock_share(enum ljp_lock which)
{
  enum { PAUSE_NS = 50000 };
  _Atomic uint32_t *word = &ljp_lock_words[which];
  /* 2: a thread waits, and needs a moment to wake up. */
  if (atomic_exchange_explicit(word, 0, memory_order_release) == 2) {
    ljp_lock_wake(which);
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
  ljp_lock(which);
}

/* -- fork() ---------------------------------------------------------------- */

static _Thread_local bool lock_forking[LJP_LOCKS]; /* lock_prepare() took it */

/* Takes all locks, so that the child finds the tables whole. If a handler of
** the host interrupts us while we hold a lock, and forks, it would wait for
** itself. So the wait ends after a while, and the lock stays with its
** holder. */
static void lock_prepare(void)
{
  enum { TRIES = 1000, PAUSE_NS = 1000000 };
  for (int i = 0; i < LJP_LOCKS; i++) {
    uint32_t free;
    for (int tries = 0; tries < TRIES; tries++) {
      free = 0;
      lock_forking[i] = atomic_compare_exchange_strong_explicit(
          &ljp_lock_words[i], &free, 1, memory_order_acquire,
          memory_order_relaxed);
      if (lock_forking[i])
        break;
      nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
  }
}

static void lock_forked(void)
{
  for (int i = 0; i < LJP_LOCKS; i++) {
    if (lock_forking[i])
      ljp_unlock((enum ljp_lock)i);
    lock_forking[i] = false;
  }
}

static void lock_copied(void)
{
  for (int i = 0; i < LJP_LOCKS; i++)
    atomic_store(&ljp_lock_words[i], 0);
}

/* Runs when the library is loaded, before any thread can hold a lock. A thread
** that registers the handlers later may wait for a fork() that another thread
** has begun, and the child then finds the lock taken. A host may fork on a
** thread that never used Lua, so the first VM would be too late. The linker
** takes this file from the static library because of the locks, and so this
** function, too. 101: before a host's own constructors. dlclose() removes the
** handlers. */
__attribute__((constructor(101))) static void lock_set_handlers(void)
{
  ljp_copy_on_notice(lock_copied);
  /* Without memory for this, fork() does what it would do without us. */
  (void)pthread_atfork(lock_prepare, lock_forked, lock_forked);
}
