/*
** See heap_joined.h. The heap is whole at the end of the collector's atomic phase.
** There the VM's own thread stands still until the helper has made the copy of
** the process: the VM's thread could not, since the client's file is in the
** helper's table of descriptors. A VM that does not come there in time is copied
** anyway, and the walk over the copy expects anything.
**
** One request at a time (ljp_heap_snapshot_claim()). Its step:
**
**   WANTED --VM--> HERE --helper, after the copy--> NONE
**      \             \--VM, after a second--> NONE
**       \--helper, after some seconds--> NONE
*/
#include "profilers/memory/heap_joined.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profilers/memory/heap_snapshot.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/luajit/joined_heap.h"
#include "src/luajit/snapshot.h"
#include "src/luajit/vms.h"

enum { STEP_NONE, STEP_WANTED, STEP_HERE };

static struct {
  _Atomic int pid; /* of the process that asks: a child of fork() does not */
  _Atomic uint32_t step;
  _Atomic uint32_t vm, moments; /* moments: to let pass */
  struct lua_State *_Atomic L;  /* that stands still */
} joined;

#define STAND_NS UINT64_C(1000000000)

/* -- On the VM's thread ---------------------------------------------------- */

static void joined_at_whole(struct lua_State *L)
{
  uint32_t wanted = STEP_WANTED;
  int *error = &errno, saved = *error;
  if (atomic_load(&joined.step) != STEP_WANTED ||
      atomic_load(&joined.pid) != getpid() ||
      ljp_guest_vm_id(L) != atomic_load(&joined.vm))
    return;
  if (atomic_load(&joined.moments)) {
    atomic_fetch_sub(&joined.moments, 1);
    return;
  }
  atomic_store(&joined.L, L);
  if (!atomic_compare_exchange_strong(&joined.step, &wanted, STEP_HERE))
    return;
  ljp_futex_wake(&joined.step);
  uint64_t now = ljp_clock_ns(), end = now + STAND_NS;
  for (; now < end && atomic_load(&joined.step) == STEP_HERE;
       now = ljp_clock_ns())
    ljp_futex_wait(&joined.step, STEP_HERE, end - now);
  uint32_t here = STEP_HERE;
  atomic_compare_exchange_strong(&joined.step, &here, STEP_NONE);
  *error = saved;
}

/* -- On the helper's thread ------------------------------------------------ */

struct joined_call {
  const struct ljp_heap_joined *request;
  struct lua_State *L;
  bool whole, gone;
  uint64_t stood_ns; /* since when the VM stands still */
};

/* Waits until the VM stands still. False: it does not come. */
static bool joined_await(struct joined_call *call)
{
  /* A collector that marks needs some time, and a VM that never allocates never
  ** comes. */
  enum { TURN_NS = 2000000 };
  const uint64_t begin = ljp_clock_ns(), second = 1000000000;
  uint64_t limit = begin + (call->request->gc ? 10 : 2) * second;
  atomic_store(&joined.pid, getpid());
  atomic_store(&joined.vm, call->request->vm);
  atomic_store(&joined.moments, call->request->gc);
  atomic_store(&joined.step, STEP_WANTED);
  ljp_guest_listen_whole(joined_at_whole);
  while (ljp_clock_ns() < limit) {
    if (ljp_guest_hasten(call->request->vm) == LJP_GUEST_NO_VM)
      break;
    ljp_futex_wait(&joined.step, STEP_WANTED, TURN_NS);
    if (atomic_load(&joined.step) == STEP_HERE)
      return true;
  }
  uint32_t wanted = STEP_WANTED;
  return !atomic_compare_exchange_strong(&joined.step, &wanted, STEP_NONE) &&
         wanted == STEP_HERE;
}

static bool joined_moment(void *arg)
{
  struct joined_call *call = arg;
  call->whole = joined_await(call);
  call->L = call->whole ? atomic_load(&joined.L)
                        : ljp_guest_vm_running(call->request->vm);
  call->gone = !call->L;
  call->stood_ns = ljp_clock_ns();
  return call->whole;
}

static void joined_head(void *arg, struct ljp_heap_head *head)
{
  const struct joined_call *call = arg;
  memset(head, 0, sizeof *head);
  if (call->L)
    ljp_guest_snapshot_head(call->L, head);
}

static bool joined_walk(void *arg, struct ljp_heap_out *out)
{
  const struct joined_call *call = arg;
  if (!call->L)
    return false;
  return call->whole ? ljp_guest_snapshot(call->L, out)
                     : ljp_guest_snapshot_guarded(call->L, out);
}

/* The copy is made: the VM goes on. False: it did so before, and the copy may be
** of any moment. */
static bool joined_let_go(const struct joined_call *call)
{
  uint32_t here = STEP_HERE;
  bool stood = atomic_compare_exchange_strong(&joined.step, &here, STEP_NONE);
  ljp_futex_wake(&joined.step);
  ljp_guest_listen_whole(NULL);
  return stood || !call->whole;
}

/* Waits for the copy's end, and ends it if the client goes. */
static void joined_watch(struct ljp_snapshot *s, int client)
{
  struct pollfd fds[2] = {{.fd = ljp_snapshot_pidfd(s), .events = POLLIN},
                          {.fd = client, .events = POLLIN}};
  int n;
  if (fds[0].fd < 0)
    return;
  do
    n = poll(fds, 2, -1);
  while (n < 0 && errno == EINTR);
  if (n > 0 && !fds[0].revents && fds[1].revents)
    ljp_snapshot_kill(s);
}

static enum ljp_status joined_failed(const struct ljp_heap_joined *request,
                                     const struct ljp_snapshot_result *result,
                                     enum ljp_status status, int error,
                                     struct ljp_failure *why)
{
  if (result->signal)
    return ljp_fail(why, status, error,
                    "the copy of the process was killed by signal %d",
                    result->signal);
  return ljp_fail(why, status, error,
                  "the heap of VM %u could not be copied or written: %s",
                  (unsigned)request->vm, strerror(error));
}

static enum ljp_status joined_take(struct joined_call *call,
                                   struct ljp_snapshot_result *result,
                                   struct ljp_failure *why)
{
  const struct ljp_heap_joined *request = call->request;
  const struct ljp_snapshot_options options = {
      .use_fd = true,
      .fd = request->output,
      .number = 1,
      .text_limit = request->text_limit,
      .only_copy = true,
      .vm = request->vm,
      .builtin = ljp_heap_snapshot_builtin,
      .head = joined_head,
      .walk = joined_walk,
      .moment = joined_moment,
      .ctx = call};
  struct ljp_snapshot *s;
  int error;
  enum ljp_status status = ljp_snapshot_begin(&s, &options, result, &error);
  bool stood = joined_let_go(call);
  uint64_t pause_ns = call->whole ? ljp_clock_ns() - call->stood_ns : 0;
  if (status)
    return joined_failed(request, result, status, error, why);
  request->begun(request->ctx);
  if (!stood || call->gone)
    ljp_snapshot_kill(s);
  joined_watch(s, request->client);
  status = ljp_snapshot_end(s, result, &error);
  result->pause_ns = pause_ns;
  if (call->gone)
    return ljp_fail(why, LJP_ERR_USE, ENOENT, "there is no VM %u any more",
                    (unsigned)request->vm);
  if (!stood)
    return ljp_fail(why, LJP_ERR_RUN, ETIMEDOUT,
                    "the copy of the process took longer than a second, for "
                    "which the VM was stopped; try again");
  return status ? joined_failed(request, result, status, error, why) : LJP_OK;
}

enum ljp_status ljp_heap_joined(const struct ljp_heap_joined *request,
                                struct ljp_snapshot_result *result,
                                struct ljp_failure *why)
{
  struct joined_call call = {.request = request};
  memset(result, 0, sizeof *result);
  if (!ljp_heap_snapshot_claim(false))
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "another heap snapshot is being written");
  enum ljp_status status = joined_take(&call, result, why);
  ljp_heap_snapshot_unclaim();
  return status;
}
