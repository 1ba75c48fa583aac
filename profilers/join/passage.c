/*
** See passage.h.
*/
#include "profilers/join/passage.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profilers/join/helper.h"
#include "src/base/futex.h"
#include "src/base/join.h"
#include "src/session/session.h"

enum { HELPER_STACK_BYTES = 256 << 10 };

/* Shared by a door and its helper. The one that ends last frees it. */
struct ljp_passage {
  int fd;                /* the helper's end */
  _Atomic uint32_t done; /* 1: the door may close both ends */
  _Atomic uint32_t users;
};

static void passage_leave(struct ljp_passage *p)
{
  /* Acquire and release: the last one sees what the other did. */
  if (atomic_fetch_sub_explicit(&p->users, 1, memory_order_acq_rel) == 1)
    free(p);
}

/* The program's handlers do not run on our threads, whatever the mask of the
** thread in the entry is. */
int ljp_passage_thread(size_t stack_bytes, void *(*run)(void *), void *arg)
{
  pthread_t thread;
  pthread_attr_t attr;
  sigset_t all, before;
  int error = pthread_attr_init(&attr);
  if (error)
    return error;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  pthread_attr_setstacksize(&attr, stack_bytes);
#else
  (void)stack_bytes;
#endif
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  ljp_session_helper(1);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(&thread, &attr, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error)
    ljp_session_helper(-1);
  pthread_attr_destroy(&attr);
  return error;
}

static void passage_opened(void *passage)
{
  struct ljp_passage *p = passage;
  atomic_store_explicit(&p->done, 1, memory_order_release);
  ljp_futex_call(&p->done, FUTEX_WAKE_PRIVATE, 1, NULL);
}

/* The thread of the program that was sent into the entry may be one with a
** real-time policy, which ours and the threads that it makes must not have. (Not by
** libc: musl refuses.) */
static void passage_calm(void)
{
  const struct sched_param none = {0};
  long policy = syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;
  if (policy == SCHED_FIFO || policy == SCHED_RR)
    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}

static void *passage_helper(void *passage)
{
  struct ljp_passage *p = passage;
  sigset_t faults;
  prctl(PR_SET_NAME, "ljprof-helper");
  passage_calm();
  /* It reads memory of the program, and such a read may fault. */
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
  ljp_helper_run(p->fd, passage_opened, p);
  passage_opened(p);
  passage_leave(p);
  ljp_session_helper(-1);
  return NULL;
}

int ljp_passage_make(struct ljp_passage **out, int fd)
{
  struct ljp_passage *p = *out = calloc(1, sizeof *p);
  if (!p)
    return ENOMEM;
  p->fd = fd;
  atomic_store(&p->users, 2);
  int error = ljp_passage_thread(HELPER_STACK_BYTES, passage_helper, p);
  if (error) {
    free(p);
    *out = NULL;
  }
  return error;
}

/* The helper gives up by itself after a while, but it may be stopped by a
** debugger: the door does not wait for ever. */
void ljp_passage_await(struct ljp_passage *p)
{
  enum { WAIT_NS = 1000000000, WAITS = 2 * LJP_JOIN_PATIENCE_MS / 1000 };
  for (int i = 0;
       i < WAITS && !atomic_load_explicit(&p->done, memory_order_acquire); i++)
    ljp_futex_wait(&p->done, 0, WAIT_NS);
  passage_leave(p);
}
