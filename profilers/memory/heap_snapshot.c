/*
** See heap_snapshot.h. While a copy of the process writes a file, a thread of
** ours waits for it. It then gives the file its name, or hands it over to the
** session, whose writer tells when all of it is in the stream. One static
** struct: exit() waits for that, and has no argument.
*/
#include "profilers/memory/heap_snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "profilers/memory/heap_session.h"
#include "profilers/session/side_run.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/luajit/functions.h"
#include "src/luajit/snapshot.h"
#include "src/luajit/vms.h"

enum { STACK_BYTES = 256 << 10 };
#define AWAIT_NS (UINT64_C(10) * 1000000000) /* Somebody else's snapshot. */
#define OWN_AWAIT_NS (UINT64_C(60) * 1000000000)

/* Who takes a snapshot: the process, and the thread whose call finishes it; 0:
** another thread of ours does. One word: a signal finds both, or neither. */
#define OWNER(process, thread) ((uint64_t)(process) << 32 | (uint32_t)(thread))
#define OWNER_PROCESS(owner) ((pid_t)((owner) >> 32))
#define OWNER_THREAD(owner) ((pid_t)(uint32_t)(owner))

static struct {
  _Atomic uint64_t owner; /* 0: nobody. */
  _Atomic uint32_t ended;
  _Atomic int whom;
} now;

/* One snapshot. Whoever comes last frees it: the caller that waits, or what
** ends the snapshot. */
struct ljp_snapshot_job {
  _Atomic uint32_t users, over;
  struct ljp_snapshot *snapshot;
  bool in_session;
  struct ljp_heap_target target;
  struct ljp_snapshot_result result;
  enum ljp_status status;
  int error;
};

void ljp_heap_snapshot_options_init(struct ljp_heap_snapshot_options *options)
{
  *options =
      (struct ljp_heap_snapshot_options){.text_limit = LJP_HEAP_SNAPSHOT_TEXT};
}

/* -- One at a time --------------------------------------------------------- */

/* A fork's child inherits the number of its parent. */
bool ljp_heap_snapshot_claim(enum ljp_heap_for whom)
{
  pid_t self = getpid();
  uint64_t owner = atomic_load(&now.owner), mine = OWNER(self, gettid());
  while (OWNER_PROCESS(owner) != self)
    if (atomic_compare_exchange_weak(&now.owner, &owner, mine)) {
      atomic_store(&now.whom, (int)whom);
      return true;
    }
  return false;
}

/* Who finishes it: this thread, or another one of ours. */
static void snapshot_finished_by(pid_t thread)
{
  atomic_store(&now.owner, OWNER(getpid(), thread));
}

void ljp_heap_snapshot_unclaim(void)
{
  atomic_store(&now.owner, 0);
  atomic_fetch_add(&now.ended, 1);
  ljp_futex_wake(&now.ended);
}

static bool snapshot_is_awaited(bool any)
{
  int whom = atomic_load(&now.whom);
  return whom == LJP_HEAP_FOR_SESSION || (any && whom == LJP_HEAP_FOR_FILE);
}

/* A handler of a signal that calls exit() would wait for its own thread. */
static void snapshot_await(bool any)
{
  uint64_t end = ljp_clock_ns() + AWAIT_NS;
  uint32_t ended = atomic_load(&now.ended);
  for (uint64_t owner;
       OWNER_PROCESS(owner = atomic_load(&now.owner)) == getpid() &&
       OWNER_THREAD(owner) != gettid() && snapshot_is_awaited(any) &&
       ljp_clock_ns() < end;
       ended = atomic_load(&now.ended))
    ljp_futex_wait(&now.ended, ended, AWAIT_NS / 100);
}

void ljp_heap_snapshot_await(void)
{
  snapshot_await(false);
}

/* exit(): a copy is writing a file that has no name yet. */
__attribute__((destructor)) static void snapshot_at_exit(void)
{
  snapshot_await(true);
}

/* -- The end --------------------------------------------------------------- */

void ljp_heap_job_leave(struct ljp_snapshot_job *job)
{
  /* Both orders: the last one sees what the other did. (Clang's analyzer does
  ** not know how many users there are.) */
#ifndef __clang_analyzer__
  if (atomic_fetch_sub_explicit(&job->users, 1, memory_order_acq_rel) == 1)
    free(job);
#else
  (void)job;
#endif
}

/* The snapshot is over, well or not. */
static void job_over(struct ljp_snapshot_job *job)
{
  ljp_heap_snapshot_unclaim(); /* The caller that waits may take the next one at once. */
  atomic_store_explicit(&job->over, 1, memory_order_release);
  ljp_futex_wake(&job->over);
  ljp_heap_job_leave(job);
}

static const char *job_reason(const struct ljp_snapshot_job *job)
{
  if (job->result.signal)
    return "the copy of the process was killed";
  const char *known = ljp_errno_text(job->error);
  return known ? known : "for an unknown reason";
}

/* On the writer's thread: all is in the stream, or was dropped. */
static void job_appended(void *arg, int error)
{
  struct ljp_snapshot_job *job = arg;
  job->error = error;
  job->status = error ? LJP_ERR_IO : LJP_OK;
  job_over(job);
}

static struct ljp_snapshot_job *job_new(bool in_session)
{
  struct ljp_snapshot_job *job = calloc(1, sizeof *job);
  if (job) {
    atomic_store(&job->users, 2);
    job->in_session = in_session;
  }
  return job;
}

/* Waits for the copy, if there is one. */
static void job_finish(struct ljp_snapshot_job *job)
{
  enum ljp_status status =
      ljp_snapshot_end(job->snapshot, &job->result, &job->error);
  if (!status && job->in_session) {
    const struct ljp_heap_target target = job->target;
    const struct ljp_session_heap heap = {.fd = target.scratch,
                                          .bytes = job->result.file_bytes,
                                          .done = job_appended,
                                          .ctx = job};
    snapshot_finished_by(0);
    status = ljp_heap_target_append(&target, &heap);
    if (!status)
      return; /* job_appended() follows, or the job is gone by now. */
    snapshot_finished_by(gettid());
    job->error = status == LJP_ERR_MEM ? ENOMEM : ECANCELED;
    close(target.scratch);
  }
  job->status = status;
  if (status && job->in_session)
    ljp_heap_target_missing(&job->target, job_reason(job));
  job_over(job);
}

/* -- The thread ------------------------------------------------------------ */

static void *snapshot_thread(void *job)
{
  prctl(PR_SET_NAME, "ljprof-heap", 0, 0, 0);
  job_finish(job);
  ljp_session_helper(-1);
  return NULL;
}

static bool snapshot_leave_to_thread(struct ljp_snapshot_job *job)
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
  snapshot_finished_by(0);
  int error = pthread_create(&thread, &attr, snapshot_thread, job);
  if (error) {
    snapshot_finished_by(gettid());
    ljp_session_helper(-1);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return !error;
}

/* -- Taking one ------------------------------------------------------------ */

struct snapshot_call {
  struct lua_State *L;
  struct ljp_snapshot_result *result;
  const struct ljp_heap_target *target;
};

static void snapshot_head(void *call, struct ljp_heap_head *head)
{
  ljp_guest_snapshot_head(((struct snapshot_call *)call)->L, head);
}

static bool snapshot_walk(void *call, struct ljp_heap_out *out)
{
  return ljp_guest_snapshot(((struct snapshot_call *)call)->L, out);
}

static bool snapshot_moment(void *arg, uint64_t *vm)
{
  const struct snapshot_call *call = arg;
  (void)vm;
  ljp_heap_target_moment(call->L, call->target);
  return true;
}

bool ljp_heap_snapshot_builtin(void *ctx, uint64_t ffid,
                               char name[LJP_NAME_BYTES])
{
  const char *known = ljp_guest_builtin((uint32_t)ffid);
  (void)ctx;
  if (known)
    snprintf(name, LJP_NAME_BYTES, "%s", known);
  return known != NULL;
}

static enum ljp_status snapshot_failed(const char *path, enum ljp_status status,
                                       int error,
                                       const struct ljp_snapshot_result *result,
                                       struct ljp_failure *why)
{
  char place[330] = "the session's file";
  if (path)
    snprintf(place, sizeof place, "'%.300s'", path);
  if (status == LJP_ERR_NOTSUP)
    return ljp_fail(why, status, ljp_status_errno(status), LJP_NO_ZSTD);
  if (result->signal)
    return ljp_fail(why, status, error,
                    "cannot write the heap into %s: the copy of the "
                    "process was killed by signal %d; try in_place = true",
                    place, result->signal);
  return ljp_fail(why, status, error, "cannot write the heap into %s: %s%s",
                  place, strerror(error), ljp_errno_advice(error));
}

/* Takes the snapshot that is claimed. *job: gets it if the call is to wait. */
static enum ljp_status snapshot_begin(struct snapshot_call *call,
                                      const struct ljp_heap_snapshot_options *o,
                                      struct ljp_snapshot_job *job,
                                      struct ljp_failure *why)
{
  struct ljp_snapshot_options options = {.path = o->path,
                                         .text_limit = o->text_limit,
                                         .zstd_level = o->zstd_level,
                                         .in_place = o->in_place,
                                         .number = 1,
                                         .builtin = ljp_heap_snapshot_builtin,
                                         .vm = ljp_guest_vm_id(call->L),
                                         .head = snapshot_head,
                                         .walk = snapshot_walk,
                                         .ctx = call};
  if (job->in_session) {
    enum ljp_status status = ljp_heap_target_open(call->L, &job->target, why);
    if (status)
      return status;
    call->target = &job->target;
    options.scratch = job->target.scratch;
    options.number = job->target.number;
    options.vm = job->target.vm;
    options.moment = snapshot_moment;
  }
  enum ljp_status status =
      ljp_snapshot_begin(&job->snapshot, &options, &job->result, &job->error);
  if (!status)
    return LJP_OK;
  if (job->in_session)
    ljp_heap_target_missing(&job->target, job_reason(job));
  return snapshot_failed(o->path, status, job->error, &job->result, why);
}

/* Leaves the job to a thread, or finishes it here. */
static enum ljp_status snapshot_go_on(struct snapshot_call *call,
                                      const struct ljp_heap_snapshot_options *o,
                                      struct ljp_snapshot_job *job,
                                      struct ljp_failure *why)
{
  *call->result = job->result;
  bool copy = job->result.taken == LJP_HEAP_TAKEN_COPY;
  bool leave = copy && (!o->wait || job->in_session);
  if (!leave || !snapshot_leave_to_thread(job))
    job_finish(job);
  else if (!o->wait)
    return LJP_OK;
  if (!copy && !o->wait && job->in_session)
    return LJP_OK; /* The walk is over; the writer appends it. */
  uint64_t end = ljp_clock_ns() + OWN_AWAIT_NS;
  while (!atomic_load_explicit(&job->over, memory_order_acquire)) {
    uint64_t at = ljp_clock_ns();
    if (at >= end)
      return ljp_fail(why, LJP_ERR_IO, ETIMEDOUT,
                      "the heap snapshot is not complete after a minute; the "
                      "session goes on without it");
    ljp_futex_wait(&job->over, 0, end - at);
  }
  *call->result = job->result;
  return job->status ? snapshot_failed(o->path, job->status, job->error,
                                       &job->result, why)
                     : LJP_OK;
}

/* On a side stack. */
static enum ljp_status snapshot_take(void *a, const void *b,
                                     struct ljp_failure *why)
{
  struct snapshot_call *call = a;
  const struct ljp_heap_snapshot_options *o = b;
  memset(call->result, 0, sizeof *call->result);
  if (!ljp_heap_snapshot_claim(o->path ? LJP_HEAP_FOR_FILE
                                       : LJP_HEAP_FOR_SESSION))
    return ljp_fail(why, LJP_ERR_RUN, EBUSY,
                    "another heap snapshot is being written");
  struct ljp_snapshot_job *job = job_new(!o->path);
  if (!job) {
    ljp_heap_snapshot_unclaim();
    return ljp_fail(why, LJP_ERR_MEM, ENOMEM, "no memory for a heap snapshot%s",
                    ljp_errno_advice(ENOMEM));
  }
  enum ljp_status status = snapshot_begin(call, o, job, why);
  if (status) {
    ljp_heap_snapshot_unclaim();
    free(job);
    return status;
  }
  status = snapshot_go_on(call, o, job, why);
  ljp_heap_job_leave(job);
  return status;
}

enum ljp_status
ljp_heap_snapshot(struct lua_State *L,
                  const struct ljp_heap_snapshot_options *options,
                  struct ljp_snapshot_result *result, struct ljp_failure *why)
{
  struct snapshot_call call = {.L = L, .result = result};
  return ljp_side_run(snapshot_take, &call, options, why);
}

/* -- For a client ---------------------------------------------------------- */

struct ljp_snapshot_job *ljp_heap_job_new(void)
{
  return job_new(true);
}

void ljp_heap_job_follow(struct ljp_snapshot_job *job, struct ljp_snapshot *s,
                         const struct ljp_heap_target *target)
{
  job->snapshot = s;
  job->target = *target;
  if (!snapshot_leave_to_thread(job))
    job_finish(job);
}

bool ljp_heap_job_is_over(const struct ljp_snapshot_job *job)
{
  return atomic_load_explicit(&job->over, memory_order_acquire);
}

enum ljp_status ljp_heap_job_result(const struct ljp_snapshot_job *job,
                                    struct ljp_snapshot_result *result,
                                    int *error)
{
  *result = job->result;
  *error = job->error;
  return job->status;
}
