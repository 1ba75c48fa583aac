/*
** The threads that a session samples; see threads.h.
**
** Other threads are found in /proc/self/task at each round of the writer: no
** thread of the host has to do anything for it. A thread that blocks the signal
** is not sampled: it may be waiting for signals in sigwait().
*/
#include "profilers/cpu/threads.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/cpu/handler_stack.h"
#include "profilers/cpu/proc_task.h"
#include "profilers/cpu/state.h"
#include "src/base/assert.h"
#include "src/base/clock.h"

enum {
  FRESH_ROUNDS = 8,
  WAIT_US = 100,
  WAITS = 50000 /* number of waits for a handler before giving up */
};

static struct ljp_sysprof *const g = &ljp_sysprof;

/* -- One thread ------------------------------------------------------------ */
/* A sampler that is not in use: an old one, or a new entry of the table. */
static struct ljp_sampler *threads_new_sampler(void)
{
  uint32_t i = 0;
  for (; i < LJP_SAMPLERS && ljp_threads_at(i); i++)
    if (!ljp_threads_at(i)->used)
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
  s->switches = 0;
  s->idle_run = 0;
  s->deferred = 0;
  s->deferred_ns = 0;
  s->throttle_time_ns = s->throttle_handler_ns = 0;
  s->until_rearm = 0;
  s->rest_until_ns = 0;
  s->memo->valid = false;
  s->random = ((uint32_t)s->clock_ns ^ (uint32_t)s->tid << 8) | 1;
  atomic_store(&s->parked, false);
  atomic_store(&s->resync, true);
}

/* CPU time of a thread since its sampling began. If the thread has ended, only
** the part up to its last sample is known. */
static uint64_t threads_sampled_ns(const struct ljp_sampler *s)
{
  uint64_t now = threads_task_cpu_ns(s->tid);
  now = now ? now : s->cpu_ns;
  return now - s->cpu_begin_ns;
}

/* The timer runs already; from now on its signals are samples. */
static void threads_begin(struct ljp_sampler *s)
{
  threads_begin_accounts(s);
  atomic_store(&s->active, true);
}

static void threads_add_counts(struct ljp_sysprof_report *to,
                               struct ljp_sampler_counts *from)
{
  to->samples += atomic_load(&from->samples);
  to->lfunc += atomic_load(&from->lfunc);
  to->overruns += atomic_load(&from->overruns);
  to->deferred += atomic_load(&from->deferred);
  to->outside += atomic_load(&from->outside);
  to->idle += atomic_load(&from->idle);
  to->time_ns += atomic_load(&from->time_ns);
  to->handler_ns += atomic_load(&from->handler_ns);
  for (int i = 0; i < LJP_SAMPLER_STATES; i++)
    to->state[i] += atomic_load(&from->state[i]);
  for (int i = 0; i < 16; i++)
    to->cut[i] += atomic_load(&from->cut[i]);
  for (int i = 0; i < LJP_LOSS_COUNT; i++)
    to->lost[i] += atomic_load(&from->lost[i]);
}

void ljp_threads_add_counts(struct ljp_sysprof_report *out)
{
  LJP_FOR_EACH_SAMPLER(s)
  threads_add_counts(out, &s->counts);
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
    if (i % 100 == 99 && !ljp_task_exists(s->tid))
      break; /* the thread has ended in the handler */
    if (i > WAITS)
      return false;
    usleep(WAIT_US);
  }
  atomic_store(&s->inside, 0);
  return true;
}

static void threads_drop(struct ljp_sampler *s)
{
  s->source->disarm(s);
  bool quiet = threads_deactivate(s);
  /* Samples that were deferred and never taken. */
  if (s->deferred) {
    atomic_fetch_add(&s->counts.lost[LJP_LOSS_BUSY], s->deferred);
    if (s->producer)
      ljp_count_loss(s->producer, LJP_LOSS_BUSY, s->deferred);
    s->deferred = 0;
  }
  threads_add_counts(&g->ended, &s->counts);
  g->sampled_ns += threads_sampled_ns(s);
  if (s->producer && quiet)
    ljp_producer_retire(s->producer);
  if (s->thread)
    ljp_session_end_thread(g->session, s->thread);
  s->producer = quiet ? NULL : s->producer;
  s->used = !quiet; /* a sampler with a hanging handler is never reused */
}

/* Tells of the first thread that could not have the session's timer. Its
** producer tells of each. */
static void threads_note_refusal(const struct ljp_sampler *s)
{
  char text[200];
  if (g->refusals++)
    return;
  snprintf(text, sizeof text,
           "thread %d (%s) cannot have timer \"%s\" (%s): it is sampled by "
           "timer \"%s\", at most every %.0f ms",
           (int)s->tid, s->name, g->source->name, strerror(s->refused),
           s->source->name, (double)ljp_timer_tick_ns() / 1e6);
  ljp_session_note(g->session, LJP_NOTE_WARNING, text);
}

int ljp_threads_add(pid_t tid, const char *name, bool first)
{
  struct ljp_sampler *s = threads_new_sampler();
  enum ljp_status status = LJP_OK;
  if (!s)
    return ENOMEM;
  ljp_assert(!atomic_load(&s->active) && s->fd < 0);
  memset(&s->counts, 0, sizeof s->counts);
  s->tid = tid;
  s->ran_lua = false;
  s->fresh = FRESH_ROUNDS;
  s->producer = NULL;
  s->thread = 0;
  snprintf(s->name, sizeof s->name, "%s", name);
  atomic_store(&s->interval_why, 0);
  s->used = true;
  /* The user asked for this source, and the session has no samples yet. */
  bool strict = g->options.timer != LJP_TIMER_NONE && first;
  int error = ljp_timer_arm(s, g->source, strict);
  if (!error && g->options.mode != LJP_SAMPLER_COUNT) {
    status = ljp_session_add_thread(g->session, tid, name, &s->thread);
    if (!status)
      status = ljp_session_add_sampling_producer(
          g->session, g->options.wall ? LJP_PRODUCER_WALL : LJP_PRODUCER_CPU,
          s->thread, atomic_load(&s->interval_ns), s->source->kind,
          s->refused ? s->refused : g->refused, &s->producer);
  }
  if (status)
    error = status == LJP_ERR_MEM ? ENOMEM : EIO;
  if (error) {
    threads_drop(s);
    return error;
  }
  if (s->refused)
    threads_note_refusal(s);
  threads_begin(s);
  return 0;
}

void ljp_threads_drop_all(void)
{
  LJP_FOR_EACH_SAMPLER(s)
  s->source->disarm(s);
  LJP_FOR_EACH_SAMPLER(s)
  threads_drop(s);
}

/* -- All threads ----------------------------------------------------------- */
static struct ljp_sampler *threads_find(pid_t tid)
{
  LJP_FOR_EACH_SAMPLER(s)
  if (s->tid == tid)
    return s;
  return NULL;
}

void ljp_threads_ensure(pid_t tid)
{
  char name[16];
  struct ljp_sampler *s = threads_find(tid);
  if (s || ljp_task_blocks(tid, g->options.signal))
    return;
  ljp_task_name(tid, name);
  ljp_threads_add(tid, name, false);
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

void ljp_threads_scan(void)
{
  DIR *dir = opendir("/proc/self/task");
  if (!dir)
    return;
  LJP_FOR_EACH_SAMPLER(s)
  s->seen = false;
  uint32_t blocked = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    pid_t tid = (pid_t)atol(entry->d_name);
    if (tid <= 0)
      continue;
    struct ljp_sampler *s = threads_find(tid);
    if (s) {
      s->seen = true;
      threads_rename(s);
      continue;
    }
    if (g->options.threads == LJP_THREADS_THIS)
      continue;
    char name[16];
    ljp_task_name(tid, name);
    if (strcmp(name, "ljprof-writer") == 0)
      continue;
    if (ljp_task_blocks(tid, g->options.signal)) {
      blocked++;
      continue;
    }
    if (ljp_threads_add(tid, name, false) == 0)
      threads_find(tid)->seen = true;
  }
  closedir(dir);
  g->blocked = blocked;
  LJP_FOR_EACH_SAMPLER(s)
  if (!s->seen)
    threads_drop(s);
}

/* -- fork ------------------------------------------------------------------ */
void ljp_threads_after_fork(pid_t was, bool recording)
{
  LJP_FOR_EACH_SAMPLER(s)
  {
    /* The timers are the parent's; only a descriptor was inherited. */
    if (s->fd >= 0) {
      if (s->fd < LJP_SAMPLER_FDS)
        atomic_store(&ljp_sampler_of_fd[s->fd], 0);
      close(s->fd);
    }
    s->fd = s->timer[0] = s->timer[1] = s->park = -1;
    atomic_store(&s->active, false);
    atomic_store(&s->inside, 0);
    memset(&s->counts, 0, sizeof s->counts);
    if (!recording || s->tid != was) {
      s->used = false;
      s->producer = NULL;
      continue;
    }
    s->tid = gettid();
    if (ljp_timer_arm(s, g->source, false))
      continue;
    if (s->producer)
      ljp_producer_set_timer(s->producer, s->source->kind,
                             s->refused ? s->refused : g->refused);
    threads_begin(s);
  }
}
