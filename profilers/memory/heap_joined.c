/*
** See heap_joined.h. A VM that does not come to the meeting in time is copied
** anyway, and the walk over the copy expects anything.
*/
#include "profilers/memory/heap_joined.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/memory/heap_meeting.h"
#include "profilers/memory/heap_session.h"
#include "profilers/memory/heap_snapshot.h"
#include "src/base/clock.h"
#include "src/luajit/joined_heap.h"
#include "src/luajit/snapshot.h"

struct joined_call {
  const struct ljp_heap_joined *request;
  struct ljp_heap_meeting meeting;
  struct lua_State *L; /* whose heap is copied; NULL: there is none */
};

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
  return call->meeting.came ? ljp_guest_snapshot(call->L, out)
                            : ljp_guest_snapshot_guarded(call->L, out);
}

/* -- What can go wrong ----------------------------------------------------- */

static enum ljp_status joined_failed(uint32_t vm,
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
                  (unsigned)vm, strerror(error));
}

static enum ljp_status joined_fail_busy(struct ljp_failure *why)
{
  return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                  "another heap snapshot is being written");
}

static enum ljp_status joined_fail_gone(uint32_t vm, struct ljp_failure *why)
{
  return ljp_fail(why, LJP_ERR_USE, ENOENT, "there is no VM %u any more",
                  (unsigned)vm);
}

static enum ljp_status joined_fail_slow(struct ljp_failure *why)
{
  return ljp_fail(why, LJP_ERR_RUN, ETIMEDOUT,
                  "the copy of the process took longer than a second, for "
                  "which the VM was stopped; try again");
}

static enum ljp_status joined_fail_moment(uint32_t vm, struct ljp_failure *why)
{
  return ljp_fail(why, LJP_ERR_LIMIT, ETIMEDOUT,
                  "VM %u does not come to a moment at which its heap is whole: "
                  "it waits, allocates nothing, or its collector is stopped",
                  (unsigned)vm);
}

/* -- Into a file of its own ------------------------------------------------ */

static bool joined_moment(void *arg, uint64_t *vm)
{
  struct joined_call *call = arg;
  struct ljp_heap_meeting *m = &call->meeting;
  (void)vm;
  ljp_heap_meeting_begin(m);
  ljp_heap_meeting_wait(m, UINT64_MAX / 2);
  call->L = m->came ? m->L : ljp_guest_vm_running(m->vm);
  return m->came;
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

static enum ljp_status joined_take(struct joined_call *call,
                                   struct ljp_snapshot_result *result,
                                   struct ljp_failure *why)
{
  const struct ljp_heap_joined *request = call->request;
  const struct ljp_heap_meeting *m = &call->meeting;
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
  bool slow = !ljp_heap_meeting_end(&call->meeting) && m->came;
  uint64_t pause_ns = m->came ? ljp_clock_ns() - m->stood_ns : 0;
  if (status)
    return joined_failed(request->vm, result, status, error, why);
  request->begun(request->ctx);
  if (slow || !call->L)
    ljp_snapshot_kill(s);
  joined_watch(s, request->client);
  status = ljp_snapshot_end(s, result, &error);
  result->pause_ns = pause_ns;
  if (!call->L)
    return joined_fail_gone(request->vm, why);
  if (slow)
    return joined_fail_slow(why);
  return status ? joined_failed(request->vm, result, status, error, why)
                : LJP_OK;
}

enum ljp_status ljp_heap_joined(const struct ljp_heap_joined *request,
                                struct ljp_snapshot_result *result,
                                struct ljp_failure *why)
{
  struct joined_call call = {.request = request,
                             .meeting = {.vm = request->vm, .gc = request->gc}};
  memset(result, 0, sizeof *result);
  if (!ljp_heap_snapshot_claim(LJP_HEAP_FOR_CLIENT))
    return joined_fail_busy(why);
  enum ljp_status status = joined_take(&call, result, why);
  ljp_heap_snapshot_unclaim();
  return status;
}

/* -- Into a session -------------------------------------------------------- */

/* The VM is waited for; then job is set, and follows the copy. */
struct ljp_heap_asked {
  struct ljp_heap_joined request;
  struct joined_call call;
  struct ljp_heap_target target;
  struct ljp_snapshot_job *job;
  uint64_t pause_ns;
};

/* The VM stands still. */
static bool asked_moment(void *arg, uint64_t *vm)
{
  const struct joined_call *call = arg;
  *vm = call->meeting.target->vm;
  return true;
}

/* Hands the copy over to a job. */
static enum ljp_status asked_copy(struct ljp_heap_asked *a,
                                  struct ljp_failure *why)
{
  const struct ljp_heap_meeting *m = &a->call.meeting;
  const struct ljp_snapshot_options options = {
      .scratch = a->target.scratch,
      .number = a->target.number,
      .text_limit = a->request.text_limit,
      .only_copy = true,
      .builtin = ljp_heap_snapshot_builtin,
      .head = joined_head,
      .walk = joined_walk,
      .moment = asked_moment,
      .ctx = &a->call};
  struct ljp_heap_target target = a->target;
  struct ljp_snapshot_job *job = ljp_heap_job_new();
  struct ljp_snapshot_result result = {0};
  struct ljp_snapshot *s = NULL;
  int error = ENOMEM;
  a->call.L = m->L;
  enum ljp_status status =
      job ? ljp_snapshot_begin(&s, &options, &result, &error) : LJP_ERR_MEM;
  if (job)
    a->target.scratch = -1; /* the snapshot's */
  bool stood = ljp_heap_meeting_end(&a->call.meeting);
  a->pause_ns = ljp_clock_ns() - m->stood_ns;
  if (!status && stood) {
    ljp_heap_job_follow(job, s, &target);
    a->job = job;
    return LJP_OK;
  }
  free(job);
  if (status)
    return joined_failed(m->vm, &result, status, error, why);
  ljp_snapshot_kill(s);
  if (!ljp_snapshot_end(s, &result, &error))
    close(options.scratch);
  return joined_fail_slow(why);
}

/* There is no job. */
static void asked_fail(const struct ljp_heap_asked *a, const char *why)
{
  ljp_heap_target_missing(&a->target, why);
  ljp_heap_snapshot_unclaim();
}

enum ljp_status ljp_heap_ask(const struct ljp_heap_joined *request,
                             struct ljp_heap_asked **out,
                             struct ljp_failure *why)
{
  struct ljp_heap_asked *a = calloc(1, sizeof *a);
  if (!a) {
    close(request->output);
    return ljp_fail(why, LJP_ERR_MEM, ENOMEM, "no memory for a heap snapshot");
  }
  enum ljp_status status =
      ljp_heap_target_join(&a->target, request->output, why);
  if (!status && !ljp_heap_snapshot_claim(LJP_HEAP_FOR_CLIENT)) {
    status = joined_fail_busy(why);
    ljp_heap_target_missing(&a->target, why->text);
  }
  if (status) {
    free(a);
    close(request->output);
    return status;
  }
  a->request = *request;
  a->call = (struct joined_call){
      .request = &a->request,
      .meeting = {.vm = request->vm, .gc = request->gc, .target = &a->target}};
  ljp_heap_meeting_begin(&a->call.meeting);
  *out = a;
  return LJP_OK;
}

/* One turn of waiting for the VM. */
static bool asked_wait(struct ljp_heap_asked *a, enum ljp_status *status,
                       struct ljp_failure *why)
{
  enum { TURN_NS = 100000000 };
  struct ljp_heap_meeting *m = &a->call.meeting;
  enum ljp_heap_meeting_state state = ljp_heap_meeting_wait(m, TURN_NS);
  if (state == LJP_MEETING_WAITS)
    return false;
  if (state == LJP_MEETING_HERE) {
    *status = asked_copy(a, why);
  } else {
    ljp_heap_meeting_end(m);
    *status =
        m->gone ? joined_fail_gone(m->vm, why) : joined_fail_moment(m->vm, why);
  }
  if (*status)
    asked_fail(a, why->text);
  return *status != LJP_OK;
}

bool ljp_heap_asked_over(struct ljp_heap_asked *a,
                         struct ljp_snapshot_result *result,
                         enum ljp_status *status, struct ljp_failure *why)
{
  int error;
  memset(result, 0, sizeof *result);
  *status = LJP_OK;
  if (!a->job)
    return asked_wait(a, status, why);
  if (!ljp_heap_job_is_over(a->job))
    return false;
  *status = ljp_heap_job_result(a->job, result, &error);
  result->pause_ns = a->pause_ns;
  if (*status)
    joined_failed(a->request.vm, result, *status, error, why);
  return true;
}

bool ljp_heap_asked_waits(const struct ljp_heap_asked *a)
{
  return !a->job;
}

void ljp_heap_asked_free(struct ljp_heap_asked *a, bool over)
{
  if (a->job) {
    ljp_heap_job_leave(a->job);
  } else if (!over) {
    ljp_heap_meeting_end(&a->call.meeting);
    asked_fail(a, "the client has gone");
  }
  if (a->target.scratch >= 0)
    close(a->target.scratch);
  free(a);
}
