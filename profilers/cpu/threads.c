/*
** The threads that a session samples; see threads.h.
**
** Other threads are found in /proc/self/task, in a round of the writer: no
** thread of the host has to do anything for it. A thread that blocks the signal
** is not sampled: it may be waiting for signals in sigwait().
*/
#include "profilers/cpu/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/cpu/handler_stack.h"
#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/state.h"
#include "profilers/cpu/timer_wish.h"
#include "profilers/cpu/watch.h"
#include "src/base/assert.h"
#include "src/base/clock.h"

enum {
  FRESH_ROUNDS = 8,
  WAIT_US = 100,
  MAX_LOOKS = 5, /* at a thread's mask, in one round */
  WAITS = 50000  /* number of waits for a handler before giving up */
};

static struct ljp_sysprof *const g = &ljp_sysprof;

/* -- One thread ------------------------------------------------------------ */
/* The first entry of the table that is not in use, or LJP_SAMPLERS. */
static uint32_t threads_free_entry(void)
{
  uint32_t i = 0;
  while (i < LJP_SAMPLERS && ljp_threads_at(i) && ljp_threads_at(i)->used)
    i++;
  return i;
}

/* A sampler that is not in use: an old one, or a new entry of the table. */
static struct ljp_sampler *threads_new_sampler(void)
{
  uint32_t i = threads_free_entry();
  if (i < LJP_SAMPLERS && ljp_threads_at(i))
    return ljp_threads_at(i);
  if (i == LJP_SAMPLERS)
    return NULL;
  struct ljp_sampler *s =
      ljp_handler_map(sizeof *s + LJP_STACK_MAX_FRAMES * sizeof(uint64_t) +
                      sizeof(struct ljp_memo));
  if (!s)
    return NULL;
  s->side = s;
  s->frames = (uint64_t *)(s + 1);
  s->memo = (struct ljp_memo *)(s->frames + LJP_STACK_MAX_FRAMES);
  s->index = i;
  s->fd = s->timer[0] = s->timer[1] = s->park = -1;
  atomic_store_explicit(&ljp_samplers[i], s, memory_order_release);
  return s;
}

/* CPU time that a thread has used so far; 0: the thread has ended. */
static uint64_t threads_task_cpu_ns(pid_t tid)
{
  return ljp_clock_of(ljp_task_cpu_clock(tid));
}

static void threads_begin_accounts(struct ljp_sampler *s)
{
  s->cpu_ns = s->cpu_begin_ns = threads_task_cpu_ns(s->tid);
  s->clock_ns = s->asked_ns = ljp_clock_ns();
  s->deferred = 0;
  s->deferred_ns = 0;
  s->throttle_time_ns = s->throttle_handler_ns = 0;
  s->told_lost_ns = s->told_outside_ns = 0;
  s->looked_cpu_ns = s->seen_cpu_ns = s->cpu_ns;
  s->looked_progress = 0;
  s->rest_until_ns = 0;
  s->memo->valid = false;
  ljp_timer_begin(s);
  atomic_store(&s->resync, true);
}

/* CPU time of a thread since its sampling began. If the thread has ended, only
** the part up to its last sample or the last look is known. */
static uint64_t threads_sampled_ns(const struct ljp_sampler *s)
{
  uint64_t now = threads_task_cpu_ns(s->tid);
  uint64_t known = s->cpu_ns > s->seen_cpu_ns ? s->cpu_ns : s->seen_cpu_ns;
  return (now ? now : known) - s->cpu_begin_ns;
}

uint64_t ljp_threads_cpu_ns(void)
{
  uint64_t sum = 0;
  LJP_FOR_EACH_SAMPLER(s)
  sum += threads_sampled_ns(s);
  return sum;
}

/* Waits until no handler uses the sampler. False: a handler hangs, perhaps in
** the host's own backtracer. */
static bool threads_deactivate(struct ljp_sampler *s)
{
  atomic_store(&s->active, false);
  for (int i = 0; atomic_load(&s->inside); i++) {
    if (i % 100 == 99 && !threads_task_cpu_ns(s->tid))
      break; /* the thread has ended in the handler */
    if (i > WAITS)
      return false;
    usleep(WAIT_US);
  }
  atomic_store(&s->inside, 0);
  return true;
}

/* Tells the stream what samples stood for that are not in it. */
static void threads_tell_lost(struct ljp_sampler *s)
{
  uint64_t lost = atomic_load(&s->counts.lost_ns);
  uint64_t outside = atomic_load(&s->counts.outside_ns);
  ljp_unsampled_tell(s->thread, LJP_UNSAMPLED_LOST, lost - s->told_lost_ns);
  ljp_unsampled_tell(s->thread, LJP_UNSAMPLED_NO_LUA,
                     outside - s->told_outside_ns);
  s->told_lost_ns = lost;
  s->told_outside_ns = outside;
}

/* Time of a sampled thread up to now that no signal has accounted for. */
static uint64_t threads_open_ns(const struct ljp_sampler *s)
{
  if (g->options.wall)
    return 0; /* the watcher tells */
  uint64_t ran = threads_sampled_ns(s);
  uint64_t known = atomic_load(&s->counts.time_ns) +
                   atomic_load(&s->counts.lost_ns) +
                   atomic_load(&s->counts.outside_ns);
  return ran > known ? ran - known : 0;
}

/* The handler may come back at any time, even when the session is long over. So
** all that it uses stays. */
static void threads_leave_hanging(struct ljp_sampler *s)
{
  s->hangs = g->hangs = true;
  if (s->producer)
    ljp_producer_abandon(s->producer);
  ljp_threads_note_hanging(s);
}

/* why: the reason for the time since the last sample. stays: the thread goes
** on, and for this reason it is not sampled. */
static void threads_drop(struct ljp_sampler *s, enum ljp_unsampled why,
                         bool stays)
{
  s->source->disarm(s);
  bool quiet = threads_deactivate(s);
  /* Samples that were deferred and never taken. */
  if (s->deferred) {
    atomic_fetch_add(&s->counts.lost[LJP_LOSS_BUSY], s->deferred);
    atomic_fetch_add(&s->counts.lost_ns, s->deferred_ns);
    if (s->producer)
      ljp_count_loss(s->producer, LJP_LOSS_BUSY, s->deferred);
    s->deferred = 0;
  }
  threads_tell_lost(s);
  uint64_t ran = threads_sampled_ns(s);
  ljp_unsampled_tell(s->thread, why, threads_open_ns(s));
  uint64_t until_ns = s->life_ns;
  if (s->watch) {
    ljp_report_add(&g->ended, ljp_watch_end(s, why, &until_ns));
    ljp_watch_drop(s);
  }
  ljp_report_add(&g->ended, &s->counts);
  g->sampled_ns += ran;
  if (s->producer && quiet)
    ljp_producer_retire(s->producer);
  else if (!quiet)
    threads_leave_hanging(s);
  ljp_unsampled_elapsed(s->thread, s->life_ns, until_ns);
  if (stays)
    ljp_unsampled_see(s->tid, s->name, s->thread, why,
                      g->options.wall ? until_ns : s->cpu_begin_ns + ran);
  else if (s->thread)
    ljp_session_end_thread(g->session, s->thread);
  if (!quiet)
    return;
  s->producer = NULL;
  s->used = false;
}

/* Its id in the session, and its producer. */
static int threads_announce(struct ljp_sampler *s)
{
  enum ljp_status status = LJP_OK;
  if (g->options.mode == LJP_SAMPLER_COUNT)
    return 0;
  if (!s->thread)
    status = ljp_session_add_thread(g->session, s->tid, s->name, &s->thread);
  if (!status)
    status = ljp_session_add_sampling_producer(
        g->session, g->options.wall ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU,
        s->thread, atomic_load(&s->interval_ns), s->source->kind,
        s->refused ? s->refused : g->refused, &s->producer);
  return !status ? 0 : status == LJP_ERR_MEM ? ENOMEM : EIO;
}

/* The accounts have begun: from now on its signals are samples. */
static void threads_begin(struct ljp_sampler *s)
{
  if (g->options.wall && ljp_watch_add(s))
    ljp_session_note(g->session, LJP_NOTE_WARNING,
                     "out of memory: the waits of a thread are not recorded");
  atomic_store(&s->active, true);
}

int ljp_threads_add(pid_t tid, const char *name, enum ljp_thread_age age)
{
  struct ljp_sampler *s = threads_new_sampler();
  struct ljp_unsampled_thread was = {0};
  if (!s)
    return ENOMEM;
  ljp_assert(!atomic_load(&s->active) && s->fd < 0);
  memset(&s->counts, 0, sizeof s->counts);
  s->tid = tid;
  atomic_store(&s->self, 0);
  atomic_store(&s->ran_lua, false);
  atomic_store(&s->owed_ns, 0);
  s->fresh = FRESH_ROUNDS;
  s->producer = NULL;
  snprintf(s->name, sizeof s->name, "%s", name);
  atomic_store(&s->interval_why, 0);
  /* The user asked for this source, and the session has no samples yet. */
  bool strict = g->options.timer != LJP_TIMER_NONE && age == LJP_THREAD_FIRST;
  int error = ljp_timer_arm(s, g->source, strict);
  if (error)
    return error;
  s->used = true;
  bool known = ljp_unsampled_leave(tid, &was);
  threads_begin_accounts(s);
  s->thread = was.thread;
  s->life_ns = known ? was.life_ns : s->clock_ns;
  error = threads_announce(s);
  if (error) {
    threads_drop(s, LJP_UNSAMPLED_NO_TIMER, false);
    return error;
  }
  if (s->refused)
    ljp_threads_note_refusal(s);
  if (age == LJP_THREAD_NEW && !known && !g->options.wall) {
    ljp_unsampled_tell(s->thread, LJP_UNSAMPLED_NOT_FOUND, s->cpu_begin_ns);
    g->unsampled.told_ns += s->cpu_begin_ns;
  }
  if (known && g->options.wall)
    ljp_unsampled_tell(s->thread, LJP_UNSAMPLED_NOT_FOUND,
                       s->clock_ns - was.told_ns);
  threads_begin(s);
  return 0;
}

void ljp_threads_drop_all(enum ljp_unsampled why, bool stay)
{
  ljp_accounts_round(true);
  LJP_FOR_EACH_SAMPLER(s)
  if (s->source->end)
    s->source->end(s);
  LJP_FOR_EACH_SAMPLER(s)
  s->source->disarm(s);
  LJP_FOR_EACH_SAMPLER(s)
  threads_drop(s, why, stay);
}

/* -- All threads ----------------------------------------------------------- */
static struct ljp_sampler *threads_find(pid_t tid)
{
  LJP_FOR_EACH_SAMPLER(s)
  if (s->tid == tid)
    return s;
  return NULL;
}

static bool threads_is_ours(const char *name)
{
  static const char *const ours[] = {"ljprof-writer",  "ljprof-watcher",
                                     "ljprof-stopper", "ljprof-heap",
                                     "ljprof-helper",  "ljprof-door"};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    if (strcmp(name, ours[i]) == 0)
      return true;
  return false;
}

/* Why a thread is not to be sampled, or 0. */
static enum ljp_unsampled threads_obstacle(pid_t tid, const char *name,
                                           int looks,
                                           struct ljp_task_look *look)
{
  if (tid == g->writer_tid || threads_is_ours(name))
    return LJP_UNSAMPLED_WRITER;
  if (g->options.threads == LJP_THREADS_THIS)
    return LJP_UNSAMPLED_NOT_ASKED;
  if (!g->armed)
    return LJP_UNSAMPLED_HANDLER;
  switch (ljp_task_mask(tid, g->options.signal, looks, look)) {
  case LJP_TASK_TAKES:
    return 0;
  case LJP_TASK_BLOCKS:
    return LJP_UNSAMPLED_BLOCKED;
  case LJP_TASK_UNKNOWN:
    break;
  }
  return LJP_UNSAMPLED_NOT_FOUND; /* the next look may know more */
}

/* A thread that has no sampler: gets one, or is noted as not sampled. */
static void threads_meet(pid_t tid, enum ljp_thread_age age)
{
  char name[16], text[160];
  struct ljp_unsampled_thread *known = ljp_unsampled_find(tid);
  struct ljp_task_look look = {0, 0};
  uint64_t cpu_ns = threads_task_cpu_ns(tid);
  if (known && ljp_unsampled_again(known, cpu_ns))
    return;
  if (known)
    look = known->look;
  ljp_task_name(tid, name);
  /* The start of a session does not wait for others. */
  enum ljp_unsampled why =
      threads_obstacle(tid, name, age == LJP_THREAD_NEW ? MAX_LOOKS : 1, &look);
  if (!why) {
    int error = ljp_threads_add(tid, name, age);
    if (!error)
      return;
    bool room = threads_free_entry() < LJP_SAMPLERS;
    why = room ? LJP_UNSAMPLED_NO_TIMER : LJP_UNSAMPLED_NO_ROOM;
    snprintf(text, sizeof text, "thread %d (%s) is not sampled: %s", (int)tid,
             name, room ? strerror(error) : "too many threads");
    if (!g->omissions++)
      ljp_session_note(g->session, LJP_NOTE_WARNING, text);
  }
  g->blocked += why == LJP_UNSAMPLED_BLOCKED;
  if (why == LJP_UNSAMPLED_NOT_FOUND)
    g->unsure = LJP_UNSURE_LOOKS;
  uint64_t from_ns = age == LJP_THREAD_NEW && !g->options.wall ? 0
                     : tid == gettid() && age == LJP_THREAD_OLD
                         ? g->starter_ns /* a client's: our own thread */
                         : ljp_unsampled_clock(tid);
  ljp_unsampled_see(tid, name, 0, why, from_ns);
  if ((known = ljp_unsampled_find(tid)) != NULL) {
    known->look = look;
    known->met_cpu_ns = cpu_ns;
  }
}

void ljp_threads_ensure(pid_t tid)
{
  struct ljp_sampler *s = threads_find(tid);
  /* Without a list nobody knows when the thread began. */
  if (s)
    return;
  /* A thread that is in a sandbox: a filter may end a program that makes a timer.
  ** The writer's filter is that of the session's start, if it has any. */
  if (ljp_task_is_filtered())
    ljp_session_wake(g->session);
  else
    threads_meet(tid, g->no_list ? LJP_THREAD_OLD : LJP_THREAD_NEW);
}

/* Reads the thread's name again: threads get their names shortly after they
** begin, which may be after they were found. */
static void threads_rename(struct ljp_sampler *s)
{
  char name[16];
  if (!s->fresh || !s->thread)
    return;
  s->fresh--;
  ljp_task_name(s->tid, name);
  if (!name[0] || strcmp(name, s->name) == 0)
    return;
  memcpy(s->name, name, sizeof name);
  ljp_session_name_thread(g->session, s->thread, name);
}

/* Looks after a sampled thread, which may have ended, or get no signals. */
static void threads_look_after(struct ljp_sampler *s)
{
  uint64_t cpu = threads_task_cpu_ns(s->tid);
  threads_tell_lost(s);
  if (cpu < s->looked_cpu_ns) { /* another thread has its number now */
    threads_drop(s, LJP_UNSAMPLED_LAST, false);
    return;
  }
  s->seen_cpu_ns = cpu;
  enum ljp_unsampled why = ljp_threads_silence(s, cpu);
  if (why)
    threads_drop(s, why, true);
}

static void threads_visit(pid_t tid, void *age)
{
  struct ljp_sampler *s = threads_find(tid);
  if (s)
    threads_rename(s);
  else
    threads_meet(tid, *(const enum ljp_thread_age *)age);
}

/* The number of threads that the session knows; 0: one of them has ended. */
static uint32_t threads_known(void)
{
  uint32_t count = g->unsampled.count, living = ljp_unsampled_living();
  LJP_FOR_EACH_SAMPLER(s)
  {
    count++;
    living += threads_task_cpu_ns(s->tid) != 0;
  }
  return living == count ? count : 0;
}

/* Meets the threads that have no sampler. False: the list cannot be read. To
** read it takes a descriptor, which the host may meet or close. So it is read
** only if threads have come or gone: there are as many as at the last time, and
** none of those that are known has ended. */
static bool threads_list(enum ljp_thread_age age)
{
  uint32_t count = ljp_task_count();
  if (g->counted && count && count == threads_known()) {
    LJP_FOR_EACH_SAMPLER(s)
    threads_rename(s);
    for (uint32_t i = g->unsampled.count; i--;)
      threads_meet(g->unsampled.list[i].tid, age);
    return true;
  }
  uint32_t listed = ljp_task_each(threads_visit, &age);
  g->counted = listed && listed == count && count == ljp_task_count();
  return listed > 0;
}

void ljp_threads_scan(enum ljp_thread_age age)
{
  uint64_t process_ns = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID);
  bool no_list = g->no_list;
  g->blocked = 0;
  g->unsure = 0;
  if (g->writer_tid)
    ljp_unsampled_see(g->writer_tid, "ljprof-writer", 0, LJP_UNSAMPLED_WRITER,
                      0);
  g->no_list = !threads_list(age);
  if (g->no_list && !no_list)
    ljp_session_note(g->session, LJP_NOTE_WARNING,
                     "the list of threads (/proc/self/task) cannot be read: "
                     "only threads that create a VM are found");
  LJP_FOR_EACH_SAMPLER(s)
  if (!threads_task_cpu_ns(s->tid)) /* it has ended */
    threads_drop(s, LJP_UNSAMPLED_LAST, false);
  LJP_FOR_EACH_SAMPLER(s)
  threads_look_after(s);
  ljp_unsampled_forget_ended();
  ljp_unsampled_rest(process_ns, false);
}

/* -- fork ------------------------------------------------------------------ */
void ljp_threads_after_fork(pid_t was, bool recording)
{
  LJP_FOR_EACH_SAMPLER(s)
  {
    /* The timers are the parent's; only a descriptor was inherited. */
    ljp_timer_perf_forget(s);
    s->timer[0] = s->timer[1] = s->park = -1;
    atomic_store(&s->active, false);
    atomic_store(&s->inside, 0);
    atomic_store(&s->wish, LJP_WISH_NONE);
    memset(&s->counts, 0, sizeof s->counts);
    if (!recording || s->tid != was) {
      s->used = false;
      s->producer = NULL;
      continue;
    }
    s->tid = gettid();
    atomic_store(&s->self, 0);
    if (ljp_timer_arm(s, g->source, false)) {
      s->used = false;
      s->producer = NULL; /* the writer drains its empty ring */
      ljp_unsampled_see(s->tid, s->name, s->thread, LJP_UNSAMPLED_NO_TIMER,
                        ljp_unsampled_clock(s->tid));
      continue;
    }
    if (s->producer)
      ljp_producer_set_timer(s->producer, s->source->kind,
                             s->refused ? s->refused : g->refused);
    threads_begin_accounts(s);
    s->life_ns = s->clock_ns;
    threads_begin(s);
  }
}
