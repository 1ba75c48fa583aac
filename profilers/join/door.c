/*
** Door: a thread that lives for as long as a client needs to come in. It makes
** a pair of sockets in the program's table of descriptors, where the client can
** take its end (pidfd_getfd), and a helper, which has a table of its own. When
** the client has said hello, the door closes both ends again, so the program
** has no descriptor of ours while it is joined.
**
** There is one door at a time: a client begins no attach before the last door
** has gone. The door's words are in ljp_join_state.
*/
#include "profilers/join/door.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profilers/join/entry.h"
#include "profilers/join/helper.h"
#include "profilers/session/host.h"
#include "src/base/futex.h"
#include "src/base/open_file.h"
#include "src/session/session.h"

enum { DOOR_STACK_BYTES = 64 << 10, HELPER_STACK_BYTES = 256 << 10 };

/* Shared by a door and its helper. The one that ends last frees it. */
struct passage {
  int fd;                /* the helper's end */
  _Atomic uint32_t done; /* 1: the door may close both ends */
  _Atomic uint32_t users;
};

static void door_leave(struct passage *p)
{
  /* Acquire and release: the last one sees what the other did. */
  if (atomic_fetch_sub_explicit(&p->users, 1, memory_order_acq_rel) == 1)
    free(p);
}

/* The program's handlers do not run on our threads, whatever the mask of the
** thread in the entry is. */
static int door_make_thread(size_t stack_bytes, void *(*run)(void *), void *arg)
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
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(&thread, &attr, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return error;
}

static void door_opened(void *passage)
{
  struct passage *p = passage;
  atomic_store_explicit(&p->done, 1, memory_order_release);
  ljp_futex_call(&p->done, FUTEX_WAKE_PRIVATE, 1, NULL);
}

static void *door_helper(void *passage)
{
  struct passage *p = passage;
  sigset_t faults;
  prctl(PR_SET_NAME, "ljprof-helper");
  /* It reads memory of the program, and such a read may fault. */
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
  ljp_helper_run(p->fd, door_opened, p);
  door_opened(p);
  door_leave(p);
  ljp_session_helper(-1);
  return NULL;
}

static int door_make_helper(struct passage *p)
{
  atomic_store(&p->users, 2);
  ljp_session_helper(1);
  int error = door_make_thread(HELPER_STACK_BYTES, door_helper, p);
  if (!error)
    return 0;
  ljp_session_helper(-1);
  atomic_store(&p->users, 1);
  return error;
}

/* The helper gives up by itself after a while, but it may be stopped by a
** debugger: the door does not wait for ever. */
static void door_await(struct passage *p)
{
  enum { WAIT_NS = 1000000000, WAITS = 2 * LJP_JOIN_PATIENCE_MS / 1000 };
  for (int i = 0;
       i < WAITS && !atomic_load_explicit(&p->done, memory_order_acquire); i++)
    ljp_futex_wait(&p->done, 0, WAIT_NS);
}

static void *door_main(void *unused)
{
  struct ljp_join_state *s = &ljp_join_state;
  struct passage *p = calloc(1, sizeof *p);
  struct ljp_open_file ends[2];
  int fd[2] = {-1, -1};
  (void)unused;
  prctl(PR_SET_NAME, "ljprof-door");
  ljp_host_pin();
  int error = !p ? ENOMEM
              : socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd)
                  ? errno
                  : 0;
  for (int i = 0; i < 2; i++) {
    ends[i] = (struct ljp_open_file){.fd = error ? -1 : fd[i]};
    if (!error)
      ljp_open_file_note(&ends[i], false);
  }
  ljp_join_step("paired");
  if (!error) {
    p->fd = fd[1];
    error = door_make_helper(p);
  }
  if (error) {
    s->error = error;
  } else {
    s->fd = fd[0];
    /* Release: whoever sees the door sees the number. */
    __atomic_store_n(&s->door, LJP_JOIN_DOOR_READY, __ATOMIC_RELEASE);
    door_await(p);
  }
  /* The program may have closed them by now, and use the numbers itself. */
  ljp_open_file_close(&ends[0]);
  ljp_open_file_close(&ends[1]);
  if (p)
    door_leave(p);
  ljp_session_helper(-1);
  __atomic_store_n(&s->door, error ? LJP_JOIN_DOOR_FAILED : LJP_JOIN_DOOR_GONE,
                   __ATOMIC_RELEASE);
  return NULL;
}

int ljp_door_start(void)
{
  ljp_session_helper(1);
  int error = door_make_thread(DOOR_STACK_BYTES, door_main, NULL);
  if (error)
    ljp_session_helper(-1);
  return error;
}
