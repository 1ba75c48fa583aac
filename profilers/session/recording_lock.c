/*
** A profiler's lock; see recording_lock.h.
*/
#include "profilers/session/recording_lock.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

void ljp_recording_lock_forked(struct ljp_recording_lock *lock)
{
  pthread_mutex_init(&lock->mutex, NULL);
  atomic_store(&lock->pid, getpid());
}

/* The first of this process's threads makes the lock its own. */
static void claim(struct ljp_recording_lock *lock, pid_t before, pid_t me)
{
  if (before == 0) {
    /* It is new; another thread may be a little faster. */
    atomic_compare_exchange_strong(&lock->pid, &before, me);
    return;
  }
  if (before != -me && atomic_compare_exchange_strong(&lock->pid, &before, -me))
    ljp_recording_lock_forked(lock);
  while (atomic_load(&lock->pid) != me)
    sched_yield();
}

void ljp_recording_lock(struct ljp_recording_lock *lock)
{
  pid_t me = getpid(), before = atomic_load(&lock->pid);
  if (before != me)
    claim(lock, before, me);
  pthread_mutex_lock(&lock->mutex);
}

bool ljp_recording_trylock(struct ljp_recording_lock *lock)
{
  return pthread_mutex_trylock(&lock->mutex) == 0;
}

bool ljp_recording_lock_at_exit(struct ljp_recording_lock *lock)
{
  enum { PATIENCE_S = 2 };
  struct timespec until;
  if (atomic_load(&lock->pid) != getpid())
    return false;
  /* As TSan does not know of waiting by that clock. */
  if (ljp_recording_trylock(lock))
    return true;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE_S;
  return pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until) == 0;
}

void ljp_recording_unlock(struct ljp_recording_lock *lock)
{
  void (*on_stop)(void *ctx) = lock->on_stop;
  void *ctx = lock->on_stop_ctx;
  lock->on_stop = NULL;
  pthread_mutex_unlock(&lock->mutex);
  if (on_stop)
    on_stop(ctx);
}
