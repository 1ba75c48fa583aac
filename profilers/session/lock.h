/*
** A profiler's lock: one per profiler, static, never destroyed.
**
** In the child of a fork(), the lock may be held by a thread that the child
** does not have. So the child makes the lock new; pid says which process the
** lock belongs to. The thread that ends a session leaves on_stop here. The
** unlock calls on_stop when the lock is free, because it may start another
** session. A thread that holds the lock cannot be cancelled (src/base/cancel.h).
**
** Any thread may call this; no signal handler may.
*/
#ifndef LJP_LOCK_H
#define LJP_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct ljp_profiler_lock {
  pthread_mutex_t mutex;
  _Atomic pid_t pid; /* 0: unused so far; -PID: PID is making it new */
  /* Called before any thread gets the lock in a process other than the one that
  ** it belongs to: one whose fork handlers did nothing, or never ran
  ** (src/base/copy.h). */
  void (*elsewhere)(void);
  void (*on_stop)(void *ctx, bool left);
  void *on_stop_ctx;
  bool left; /* the writer thread hangs: see output.h */
};
#define LJP_PROFILER_LOCK_INIT(function)                                       \
  {                                                                            \
    .mutex = PTHREAD_MUTEX_INITIALIZER, .elsewhere = (function)                \
  }

void ljp_profiler_lock(struct ljp_profiler_lock *lock);
/* For a writer's rounds, which must not wait: start and stop hold the lock
** while they wait for the writer. False in a process that has not made the lock
** its own. */
bool ljp_profiler_trylock(struct ljp_profiler_lock *lock);
/* For the library's destructors. False in a child that never took the lock, and
** if the lock is not released within two seconds: the thread that calls exit()
** may hold it itself. It must wait because the writer may hold the lock for a
** moment, and the session must be closed even then. */
bool ljp_profiler_lock_at_exit(struct ljp_profiler_lock *lock);
void ljp_profiler_unlock(struct ljp_profiler_lock *lock);
/* In a fork's child, whose own writer may run already. The lock is new, and the
** caller holds it: until the caller unlocks it, no round of the writer
** begins. */
void ljp_profiler_lock_forked(struct ljp_profiler_lock *lock);

#endif
