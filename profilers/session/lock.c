/*
** A profiler's lock; see lock.h.
*/
#include "profilers/session/lock.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "src/base/cancel.h"

void ljp_profiler_lock_forked(struct ljp_profiler_lock *lock)
{
  ljp_cancel_off();
  pthread_mutex_init(&lock->mutex, NULL);
  pthread_mutex_lock(&lock->mutex);
  lock->on_stop = NULL; /* the parent's */
  /* From here on other threads may try. */
  atomic_store(&lock->pid, getpid());
}

/* The first thread of this process that gets here makes the lock new; the
** others wait for that. */
static void lock_claim(struct ljp_profiler_lock *lock, pid_t before, pid_t me)
{
  if (before == 0) {
    /* The lock was never used. It does no harm if another thread is faster. */
    atomic_compare_exchange_strong(&lock->pid, &before, me);
    return;
  }
  if (before != -me &&
      atomic_compare_exchange_strong(&lock->pid, &before, -me)) {
    if (lock->elsewhere)
      lock->elsewhere();
    if (atomic_load(&lock->pid) != me) {
      ljp_profiler_lock_forked(lock);
      ljp_profiler_unlock(lock);
    }
  }
  while (atomic_load(&lock->pid) != me)
    sched_yield();
}

void ljp_profiler_lock(struct ljp_profiler_lock *lock)
{
  pid_t me = getpid(), before = atomic_load(&lock->pid);
  if (before != me)
    lock_claim(lock, before, me);
  ljp_cancel_off();
  pthread_mutex_lock(&lock->mutex);
}

bool ljp_profiler_trylock(struct ljp_profiler_lock *lock)
{
  if (atomic_load(&lock->pid) != getpid() ||
      pthread_mutex_trylock(&lock->mutex))
    return false;
  ljp_cancel_off();
  return true;
}

/* until: of CLOCK_MONOTONIC. */
static bool lock_until(pthread_mutex_t *mutex, const struct timespec *until)
{
#ifdef __GLIBC__
  return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, until) == 0;
#else /* musl can wait only by a clock that may be set meanwhile */
  static const struct timespec pause = {0, 1000000};
  struct timespec now;
  while (pthread_mutex_trylock(mutex)) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until->tv_sec ||
        (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
      return false;
    nanosleep(&pause, NULL);
  }
  return true;
#endif
}

bool ljp_profiler_lock_at_exit(struct ljp_profiler_lock *lock)
{
  enum { PATIENCE_S = 2 };
  struct timespec until;
  if (atomic_load(&lock->pid) != getpid())
    return false;
  /* Try without waiting first: TSan does not know pthread_mutex_clocklock(). */
  if (ljp_profiler_trylock(lock))
    return true;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE_S;
  ljp_cancel_off();
  if (lock_until(&lock->mutex, &until))
    return true;
  ljp_cancel_on();
  return false;
}

void ljp_profiler_unlock(struct ljp_profiler_lock *lock)
{
  void (*on_stop)(void *ctx, bool left) = lock->on_stop;
  void *ctx = lock->on_stop_ctx;
  bool left = lock->left;
  lock->on_stop = NULL;
  pthread_mutex_unlock(&lock->mutex);
  ljp_cancel_on();
  if (on_stop)
    on_stop(ctx, left);
}
