/*
** See heap_snapshot.h. While a copy of the process writes a file, a thread of
** ours waits for it, and gives the file its name. One static struct: exit()
** waits for that thread, and has no argument.
*/
#include "profilers/memory/heap_snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "profilers/session/side_run.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/luajit/functions.h"
#include "src/luajit/snapshot.h"
#include "src/luajit/vms.h"
#include "src/session/session.h"

enum { STACK_BYTES = 256 << 10 };
#define EXIT_WAIT_NS (UINT64_C(10) * 1000000000)

static struct {
  _Atomic pid_t owner; /* The process that takes a snapshot; 0: none. */
  _Atomic uint32_t ended;
} now;

void ljp_heap_snapshot_options_init(struct ljp_heap_snapshot_options *options)
{
  *options =
      (struct ljp_heap_snapshot_options){.text_limit = LJP_HEAP_SNAPSHOT_TEXT};
}

/* -- One at a time --------------------------------------------------------- */

/* False: this process is taking one. (A fork's child inherits the number of its
** parent.) */
static bool snapshot_claim(void)
{
  pid_t self = getpid(), owner = atomic_load(&now.owner);
  while (owner != self)
    if (atomic_compare_exchange_weak(&now.owner, &owner, self))
      return true;
  return false;
}

static void snapshot_unclaim(void)
{
  atomic_store(&now.owner, 0);
  atomic_fetch_add(&now.ended, 1);
  ljp_futex_wake(&now.ended);
}

/* exit(): a copy is writing a file that has no name yet. */
__attribute__((destructor)) static void snapshot_at_exit(void)
{
  uint64_t end = ljp_clock_ns() + EXIT_WAIT_NS;
  uint32_t ended = atomic_load(&now.ended);
  while (atomic_load(&now.owner) == getpid() && ljp_clock_ns() < end) {
    ljp_futex_wait(&now.ended, ended, EXIT_WAIT_NS / 100);
    ended = atomic_load(&now.ended);
  }
}

/* -- The thread ------------------------------------------------------------ */

static void *snapshot_thread(void *arg)
{
  struct ljp_snapshot_result result;
  int error;
  prctl(PR_SET_NAME, "ljprof-heap", 0, 0, 0);
  ljp_snapshot_end(arg, &result, &error);
  ljp_session_helper(-1);
  snapshot_unclaim();
  return NULL;
}

static bool snapshot_leave_to_thread(struct ljp_snapshot *s)
{
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t all, before;
  if (pthread_attr_init(&attr))
    return false;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  pthread_attr_setstacksize(&attr, STACK_BYTES);
#endif
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ljp_session_helper(1);
  int error = pthread_create(&thread, &attr, snapshot_thread, s);
  if (error)
    ljp_session_helper(-1);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return !error;
}

/* -- Taking one ------------------------------------------------------------ */

struct snapshot_call {
  struct lua_State *L;
  struct ljp_snapshot_result *result;
};

static void snapshot_head(void *L, struct ljp_heap_head *head)
{
  ljp_guest_snapshot_head(L, head);
}

static bool snapshot_walk(void *L, struct ljp_heap_out *out)
{
  return ljp_guest_snapshot(L, out);
}

static bool snapshot_builtin(void *L, uint64_t ffid, char name[LJP_NAME_BYTES])
{
  const char *known = ljp_guest_builtin((uint32_t)ffid);
  (void)L;
  if (known)
    snprintf(name, LJP_NAME_BYTES, "%s", known);
  return known != NULL;
}

static enum ljp_status snapshot_failed(const char *path, enum ljp_status status,
                                       int error,
                                       const struct ljp_snapshot_result *result,
                                       struct ljp_failure *why)
{
  if (result->signal)
    return ljp_fail(why, status, error,
                    "cannot write the heap into '%.300s': the copy of the "
                    "process was killed by signal %d; try in_place = true",
                    path, result->signal);
  return ljp_fail(why, status, error, "cannot write the heap into '%.300s': %s",
                  path, strerror(error));
}

/* On a side stack. */
static enum ljp_status snapshot_take(void *a, const void *b,
                                     struct ljp_failure *why)
{
  const struct snapshot_call *call = a;
  const struct ljp_heap_snapshot_options *o = b;
  const struct ljp_snapshot_options options = {.path = o->path,
                                               .text_limit = o->text_limit,
                                               .in_place = o->in_place,
                                               .vm = ljp_guest_vm_id(call->L),
                                               .builtin = snapshot_builtin,
                                               .head = snapshot_head,
                                               .walk = snapshot_walk,
                                               .ctx = call->L};
  struct ljp_snapshot *s;
  int error;
  if (!snapshot_claim())
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "another heap snapshot is being written");
  memset(call->result, 0, sizeof *call->result);
  enum ljp_status status =
      ljp_snapshot_begin(&s, &options, call->result, &error);
  if (!status && !o->wait && call->result->taken == LJP_HEAP_TAKEN_COPY &&
      snapshot_leave_to_thread(s))
    return LJP_OK;
  if (!status)
    status = ljp_snapshot_end(s, call->result, &error);
  snapshot_unclaim();
  return status ? snapshot_failed(o->path, status, error, call->result, why)
                : LJP_OK;
}

enum ljp_status
ljp_heap_snapshot(struct lua_State *L,
                  const struct ljp_heap_snapshot_options *options,
                  struct ljp_snapshot_result *result, struct ljp_failure *why)
{
  struct snapshot_call call = {L, result};
  return ljp_side_run(snapshot_take, &call, options, why);
}
