/*
** The thread that ends a session when its time is over; see stopper.h. Who comes
** last frees the stopper: the thread or the session.
*/
#include "profilers/session/stopper.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "src/base/clock.h"
#include "src/base/futex.h"

enum { STACK_BYTES = 256 << 10, DESERTED_NS = 1000000000 };

struct ljp_stopper {
  uint64_t until_ns;
  void (*stop)(const struct ljp_stopper *itself);
  _Atomic uint32_t ready; /* 1: the thread has its name */
  _Atomic uint32_t ended; /* 1: the session has ended */
  _Atomic uint32_t users;
};

static void stopper_leave(struct ljp_stopper *s)
{
  /* Both orders: the last one sees what the other did. */
  if (atomic_fetch_sub_explicit(&s->users, 1, memory_order_acq_rel) == 1)
    free(s);
}

static void *stopper_main(void *arg)
{
  struct ljp_stopper *s = arg;
  uint64_t now;
  bool deserted = false;
  prctl(PR_SET_NAME, "ljprof-stopper");
  atomic_store_explicit(&s->ready, 1, memory_order_release);
  ljp_futex_call(&s->ready, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
  while (!atomic_load(&s->ended) && (now = ljp_clock_ns()) < s->until_ns &&
         !(deserted = ljp_session_deserted())) {
    uint64_t left = s->until_ns - now;
    ljp_futex_wait(&s->ended, 0, left < DESERTED_NS ? left : DESERTED_NS);
  }
  if (!atomic_load(&s->ended) && !deserted)
    s->stop(s);
  stopper_leave(s);
  ljp_session_helper(-1);
  return NULL;
}

int ljp_stopper_start(struct ljp_stopper **out, uint64_t until_ns,
                      void (*stop)(const struct ljp_stopper *itself))
{
  enum { READY_NS = 100000000 };
  sigset_t all, before;
  pthread_attr_t attr;
  pthread_t thread;
  *out = NULL;
  struct ljp_stopper *s = calloc(1, sizeof *s);
  if (!s)
    return ENOMEM;
  s->until_ns = until_ns;
  s->stop = stop;
  atomic_store(&s->users, 2);
  int error = pthread_attr_init(&attr);
  if (error) {
    free(s);
    return error;
  }
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  pthread_attr_setstacksize(&attr, STACK_BYTES);
#endif
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  /* It reads memory of the program, and such a read may fault. */
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ljp_session_helper(1);
  error = pthread_create(&thread, &attr, stopper_main, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  if (error) {
    ljp_session_helper(-1);
    free(s);
    return error;
  }
  /* Without its name it would be taken for a thread of the program. */
  while (!atomic_load_explicit(&s->ready, memory_order_acquire))
    ljp_futex_wait(&s->ready, 0, READY_NS);
  *out = s;
  return 0;
}

enum ljp_status ljp_stopper_refused(struct ljp_failure *why, int error)
{
  return ljp_fail(why, LJP_ERR_MEM, error,
                  "option 'duration': no thread to end the session: %s",
                  strerror(error));
}

void ljp_stopper_missing(struct ljp_session *session, int error)
{
  char text[160];
  if (!error)
    return;
  snprintf(text, sizeof text,
           "this session goes on until its process ends: no thread to end it "
           "after its duration: %s",
           strerror(error));
  ljp_session_note(session, LJP_NOTE_WARNING, text);
}

void ljp_stopper_end(struct ljp_stopper **stopper)
{
  struct ljp_stopper *s = *stopper;
  *stopper = NULL;
  if (!s)
    return;
  atomic_store(&s->ended, 1);
  ljp_futex_call(&s->ended, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
  stopper_leave(s);
}

void ljp_stopper_forked(struct ljp_stopper **stopper)
{
  *stopper =
      NULL; /* its memory stays: a copy by a raw clone() cannot free it */
}
