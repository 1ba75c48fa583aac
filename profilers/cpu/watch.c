/*
** The watcher's thread, and the list of what it watches; see watch.h.
**
** Invariants: s->watch is changed, and its target is used, only under the
** mutex. The watcher holds the mutex for one look at a time. Order: the lock of
** the CPU profiler, then this mutex, then a session's. The thread blocks all
** signals except those of faulting reads. It ends by itself when the program's
** last thread has ended. It has a table of descriptors of its own, so that the
** host never meets the ones that it opens for a moment.
*/
#include "profilers/cpu/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profilers/cpu/threads.h"
#include "profilers/cpu/watch_look.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/push/event.h"
#include "src/session/session.h"

enum {
  STACK_BYTES = 256 << 10,
  RING_BYTES = 64 << 10,
  JUDGE_NS = 200000000, /* how often it judges what it costs */
  STRETCH_MOST = 256,
  DESERTED_NS = 1000000000,
  READY_NS = 1000000000
};

/* Threads that were ready to run, but had no CPU, for much of their time. */
struct watch_crowding {
  uint32_t threads;
  double worst; /* the largest part */
  pid_t tid;
  char name[16];
};

static struct {
  pthread_mutex_t lock;
  pthread_t thread;
  bool runs, forking;
  struct ljp_session *session;
  uint64_t period_ns;
  double most;
  uint32_t stretch; /* the period is longer by this factor */
  _Atomic uint32_t stop, ready;
  _Atomic uint64_t cpu_ns;
  struct watch_crowding crowding;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void watch_lock(void)
{
  pthread_mutex_lock(&watch.lock);
}

static void watch_unlock(void)
{
  pthread_mutex_unlock(&watch.lock);
}

/* -- Threads without a CPU ------------------------------------------------- */

/* The places of such a thread's short waits are known less exactly. */
static void watch_note_crowding(const struct ljp_sampler *s)
{
  enum { LEAST_NS = 20000000, LEAST_PART = 20 };
  const struct ljp_watch *w = s->watch;
  uint64_t lived = w->looked_ns - w->began_ns;
  if (w->ready_ns < LEAST_NS || w->ready_ns < lived / LEAST_PART)
    return;
  double part = (double)w->ready_ns / (double)lived;
  watch.crowding.threads++;
  if (part <= watch.crowding.worst)
    return;
  watch.crowding.worst = part;
  watch.crowding.tid = s->tid;
  memcpy(watch.crowding.name, s->name, sizeof s->name);
}

/* Tells the file. */
static void watch_tell_crowding(void)
{
  const struct watch_crowding *c = &watch.crowding;
  char text[256];
  if (!c->threads)
    return;
  snprintf(text, sizeof text,
           "%" PRIu32 " threads were ready to run, but had no CPU, for more "
           "than 5 %% of their time (thread %d (%s) for %.0f %%): the shares "
           "of their waits that are shorter than the interval are less exact",
           c->threads, (int)c->tid, c->name, 100 * c->worst);
  ljp_session_note(watch.session, LJP_NOTE_WARNING, text);
}

/* -- fork() ---------------------------------------------------------------- */

/* No look is under way while the process is copied. */
static void watch_before_fork(void)
{
  watch_lock();
  watch.forking = true;
}

/* In the child ljp_watch_forked() may come first. */
static void watch_after_fork(void)
{
  if (!watch.forking)
    return;
  watch.forking = false;
  watch_unlock();
}

/* -- The thread ------------------------------------------------------------ */

static uint64_t watch_period(void)
{
  return watch.period_ns * watch.stretch;
}

/* A quarter of the time early will do: so threads come together, and the
** watcher wakes up less often. */
static bool watch_is_due(const struct ljp_watch *w, uint64_t now)
{
  uint64_t gap = w->due_ns - w->looked_ns;
  return w->due_ns <= now + gap / 4;
}

/* Looks at each thread that is due. Returns when the next one is. */
static uint64_t watch_look_at_all(uint64_t now)
{
  uint64_t next = now + watch_period() * 64;
  for (uint32_t i = 0; i < LJP_SAMPLERS && ljp_threads_at(i); i++) {
    struct ljp_sampler *s = ljp_threads_at(i);
    watch_lock();
    struct ljp_watch *w = s->watch;
    if (w && !w->gone && watch_is_due(w, now))
      ljp_watch_look(s, watch_period());
    if (w && !w->gone && w->due_ns < next)
      next = w->due_ns;
    watch_unlock();
  }
  return next;
}

/* Tells the file of a new period. */
static void watch_set_stretch(uint32_t stretch)
{
  enum ljp_interval_why why =
      stretch > watch.stretch ? LJP_INTERVAL_THROTTLE : LJP_INTERVAL_RECOVER;
  if (stretch == watch.stretch)
    return;
  watch.stretch = stretch;
  for (uint32_t i = 0; i < LJP_SAMPLERS && ljp_threads_at(i); i++) {
    struct ljp_sampler *s = ljp_threads_at(i);
    watch_lock();
    if (s->watch && s->watch->producer)
      ljp_push_interval(s->watch->producer, ljp_clock_ns(), watch_period(),
                        why);
    watch_unlock();
  }
}

/* share: of a CPU. */
static void watch_judge(double share)
{
  if (watch.most <= 0)
    return;
  if (share > watch.most && watch.stretch < STRETCH_MOST)
    watch_set_stretch(watch.stretch * 2);
  else if (share < watch.most / 3 && watch.stretch > 1)
    watch_set_stretch(watch.stretch / 2);
}

/* The new table is empty, so that the host's files close when the host closes
** them. Where the kernel does not permit the call (or does not have it, before
** Linux 5.9), the watcher shares the host's table. Then a host that chooses
** numbers by dup2() or close() may get EBUSY, or lose a descriptor whose number
** was one of ours. */
static void watch_leave_descriptors(void)
{
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  enum { CLOSE_RANGE = 436, UNSHARE = 2 };
  syscall(CLOSE_RANGE, 0u, ~0u, UNSHARE);
#endif
  atomic_store_explicit(&watch.ready, 1, memory_order_release);
  ljp_futex_wake(&watch.ready);
}

static void *watch_main(void *arg)
{
  uint64_t judged_ns = ljp_clock_ns(), used_ns = 0, deserted_ns = judged_ns;
  (void)arg;
  prctl(PR_SET_NAME, "ljprof-watcher");
  watch_leave_descriptors();
  /* Our waits need not be more exact than a twentieth of the period. */
  prctl(PR_SET_TIMERSLACK, (unsigned long)(watch.period_ns / 20 + 1));
  while (!atomic_load_explicit(&watch.stop, memory_order_acquire)) {
    uint64_t now = ljp_clock_ns();
    uint64_t next = watch_look_at_all(now);
    uint64_t cpu = ljp_clock_of(CLOCK_THREAD_CPUTIME_ID);
    atomic_store_explicit(&watch.cpu_ns, cpu, memory_order_relaxed);
    now = ljp_clock_ns();
    if (now - judged_ns > JUDGE_NS) {
      watch_judge((double)(cpu - used_ns) / (double)(now - judged_ns));
      judged_ns = now;
      used_ns = cpu;
    }
    if (now - deserted_ns > DESERTED_NS) {
      deserted_ns = now;
      if (ljp_session_deserted())
        break;
    }
    uint64_t least = now + watch.period_ns / 4;
    ljp_futex_wait(&watch.stop, 0, (next > least ? next : least) - now);
  }
  return NULL;
}

int ljp_watch_start(struct ljp_session *session, uint64_t period_ns,
                    double most)
{
  sigset_t all, before;
  pthread_attr_t attr;
  static bool hooked;
  ljp_assert(!watch.runs);
  if (!hooked &&
      pthread_atfork(watch_before_fork, watch_after_fork, watch_after_fork))
    return ENOMEM;
  hooked = true;
  watch.session = session;
  watch.period_ns = period_ns;
  watch.most = most;
  watch.stretch = 1;
  atomic_store(&watch.stop, 0);
  atomic_store(&watch.ready, 0);
  atomic_store(&watch.cpu_ns, 0);
  watch.crowding = (struct watch_crowding){0};
  int error = pthread_attr_init(&attr);
  if (error)
    return error;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  pthread_attr_setstacksize(&attr, STACK_BYTES);
#endif
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ljp_session_helper(1);
  error = pthread_create(&watch.thread, &attr, watch_main, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  watch.runs = !error;
  if (error)
    ljp_session_helper(-1);
  /* From now on the host may forbid the call, and end whoever makes it. */
  while (!error && !atomic_load_explicit(&watch.ready, memory_order_acquire))
    ljp_futex_wait(&watch.ready, 0, READY_NS);
  return error;
}

void ljp_watch_stop(void)
{
  if (!watch.runs)
    return;
  atomic_store_explicit(&watch.stop, 1, memory_order_release);
  ljp_futex_wake(&watch.stop);
  pthread_join(watch.thread, NULL);
  watch_tell_crowding();
  ljp_session_helper(-1);
  watch.runs = false;
}

uint64_t ljp_watch_cpu_ns(void)
{
  return atomic_load_explicit(&watch.cpu_ns, memory_order_relaxed);
}

/* -- The list -------------------------------------------------------------- */

static void watch_free(struct ljp_watch *w)
{
  if (!w)
    return;
  free(w->place);
  free(w->next);
  free(w);
}

int ljp_watch_add(struct ljp_sampler *s)
{
  ljp_assert(!s->watch);
  struct ljp_watch *w = calloc(1, sizeof *w);
  if (w) {
    w->place = calloc(1, sizeof *w->place);
    w->next = calloc(1, sizeof *w->next);
  }
  if (!w || !w->place || !w->next) {
    watch_free(w);
    return ENOMEM;
  }
  if (s->producer &&
      ljp_session_add_producer(watch.session, LJP_PRODUCER_WALL, s->thread,
                               watch.period_ns, RING_BYTES, &w->producer)) {
    watch_free(w);
    return ENOMEM;
  }
  ljp_watch_begin(w, s->clock_ns, s->cpu_begin_ns);
  watch_lock();
  s->watch = w;
  watch_unlock();
  return 0;
}

/* Not under the mutex, because of fork(), which takes that of the session
** first. */
static void watch_tell_unsampled(const struct ljp_sampler *s,
                                 enum ljp_unsampled why, uint64_t ns)
{
  if (ns && s->thread)
    ljp_session_unsampled(watch.session, s->thread, LJP_PRODUCER_WALL, why, ns);
}

/* Under the mutex: the time since the last call, which is to be told. */
static uint64_t watch_take_unreadable(struct ljp_watch *w)
{
  uint64_t ns = w->unreadable_ns;
  w->untold_ns += ns;
  w->unreadable_ns = 0;
  return ns;
}

struct ljp_sampler_counts *ljp_watch_counts(struct ljp_sampler *s)
{
  return &s->watch->counts;
}

struct ljp_sampler_counts *
ljp_watch_end(struct ljp_sampler *s, enum ljp_unsampled why, uint64_t *until_ns)
{
  struct ljp_watch *w = s->watch;
  watch_lock();
  uint64_t rest_ns = ljp_watch_finish(s);
  uint64_t unreadable_ns = watch_take_unreadable(w);
  watch_note_crowding(s);
  *until_ns = w->looked_ns;
  watch_unlock();
  watch_tell_unsampled(s, LJP_UNSAMPLED_WAITING, unreadable_ns);
  watch_tell_unsampled(s, why, rest_ns);
  watch_tell_unsampled(s, LJP_UNSAMPLED_LOST, atomic_load(&w->counts.lost_ns));
  watch_tell_unsampled(s, LJP_UNSAMPLED_NO_LUA,
                       atomic_load(&w->counts.outside_ns));
  return &w->counts;
}

void ljp_watch_drop(struct ljp_sampler *s)
{
  watch_lock();
  struct ljp_watch *w = s->watch;
  s->watch = NULL;
  watch_unlock();
  if (w->producer)
    ljp_producer_retire(w->producer);
  watch_free(w);
}

void ljp_watch_round(void)
{
  for (uint32_t i = 0; i < LJP_SAMPLERS && ljp_threads_at(i); i++) {
    struct ljp_sampler *s = ljp_threads_at(i);
    uint64_t unreadable_ns = 0;
    watch_lock();
    if (s->watch) {
      ljp_watch_tell_outdated(s);
      unreadable_ns = watch_take_unreadable(s->watch);
    }
    watch_unlock();
    watch_tell_unsampled(s, LJP_UNSAMPLED_WAITING, unreadable_ns);
  }
}

void ljp_watch_forked(bool recording)
{
  if (watch.forking)
    watch_after_fork();
  else /* a raw clone(): a thread that is not here may have held it */
    pthread_mutex_init(&watch.lock, NULL);
  watch.runs = false;
  for (uint32_t i = 0; i < LJP_SAMPLERS && ljp_threads_at(i); i++) {
    struct ljp_sampler *s = ljp_threads_at(i);
    if (s->watch && s->watch->producer && recording)
      ljp_producer_retire(s->watch->producer);
    watch_free(s->watch);
    s->watch = NULL;
  }
}
