/*
** A profiler's lock, one in a library for good. In a fork's child somebody who is
** not there any more may hold it, so the child makes it anew: pid says whose
** process it is. Whoever ends a session leaves here whom to tell about it, when
** the lock is free: he may start another one.
** Any thread, no signal handler.
*/
#ifndef LJP_RECORDING_LOCK_H
#define LJP_RECORDING_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct ljp_recording_lock {
  pthread_mutex_t mutex;
  _Atomic pid_t pid; /* 0: nobody's yet; below: that process makes it anew */
  void (*on_stop)(void *ctx);
  void *on_stop_ctx;
};
#define LJP_RECORDING_LOCK_INIT                                                \
  {                                                                            \
    .mutex = PTHREAD_MUTEX_INITIALIZER                                         \
  }

void ljp_recording_lock(struct ljp_recording_lock *lock);
/* For the writer's rounds, which must not wait: whoever starts or stops waits
** for them. */
bool ljp_recording_trylock(struct ljp_recording_lock *lock);
/* For a destructor of the library: not in a child that never took it, and not
** if nobody gives it back within a while (who calls exit() may hold it). The
** writer holds it now and then, and its session must be closed all the same. */
bool ljp_recording_lock_at_exit(struct ljp_recording_lock *lock);
void ljp_recording_unlock(struct ljp_recording_lock *lock);
/* In a fork's child. */
void ljp_recording_lock_forked(struct ljp_recording_lock *lock);

#endif
