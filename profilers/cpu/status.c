/*
** What the CPU profiler says about its session; see sysprof.h.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "profilers/cpu/watch.h"
#include "profilers/jit/trace_events.h"
#include "src/base/clock.h"
#include "src/luajit/traces.h"
#include "src/push/event.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

void ljp_report_add(struct ljp_sysprof_report *to,
                    struct ljp_sampler_counts *from)
{
  to->samples += atomic_load(&from->samples);
  to->lfunc += atomic_load(&from->lfunc);
  to->overruns += atomic_load(&from->overruns);
  to->deferred += atomic_load(&from->deferred);
  to->outside += atomic_load(&from->outside);
  to->idle += atomic_load(&from->idle);
  to->looks += atomic_load(&from->looks);
  to->moved += atomic_load(&from->moved);
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
  {
    ljp_report_add(out, &s->counts);
    if (s->watch)
      ljp_report_add(out, ljp_watch_counts(s));
  }
}

void ljp_sysprof_report(struct ljp_sysprof_report *out)
{
  ljp_profiler_lock(&g->lock);
  *out = g->ended;
  out->watcher_ns = ljp_watch_cpu_ns();
  if (g->running) {
    ljp_threads_add_counts(out);
    out->unsampled_ns = ljp_sysprof_unsampled_ns();
  }
  ljp_profiler_unlock(&g->lock);
}

enum ljp_status ljp_sysprof_mark(const char *name, size_t bytes,
                                 struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  ljp_profiler_lock(&g->lock);
  if (!g->running)
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  else if (g->options.mode == LJP_SAMPLER_COUNT)
    status =
        ljp_fail(why, LJP_ERR_USE, EINVAL,
                 "a session of mode \"D\" has counters only, and no marks");
  else if (!ljp_trace_events_mark(name, bytes))
    status = ljp_fail(why, LJP_ERR_LIMIT, EAGAIN,
                      "the mark is lost: the session's writer is too slow");
  ljp_profiler_unlock(&g->lock);
  return status;
}

const char *ljp_sysprof_dump_error(void)
{
  return ljp_trace_events_dump_error();
}

static void status_threads(struct ljp_sysprof_status *out)
{
  LJP_FOR_EACH_SAMPLER(s)
  {
    uint64_t interval = atomic_load(&s->interval_ns);
    out->threads++;
    if (interval > out->interval_ns)
      out->interval_ns = interval;
  }
}

enum ljp_status ljp_sysprof_busy(struct ljp_failure *why)
{
  return g->options.client
             ? ljp_fail(why, LJP_ERR_RUN, EBUSY,
                        "profiler is running already, for ljprof (process "
                        "%d), which has joined the program",
                        (int)g->options.client)
             : ljp_fail(why, LJP_ERR_RUN, EBUSY, "profiler is running already");
}

bool ljp_sysprof_running(void)
{
  ljp_profiler_lock(&g->lock);
  bool running = g->running;
  ljp_profiler_unlock(&g->lock);
  return running;
}

void ljp_sysprof_status(struct ljp_sysprof_status *out)
{
  struct ljp_guest_jit_counts jit;
  ljp_guest_jit_counts(&jit);
  memset(out, 0, sizeof *out);
  out->marks_cut = jit.marks_cut;
  ljp_profiler_lock(&g->lock);
  out->running = g->running;
  out->state = g->running ? "running" : !g->ever ? "idle" : "stopped";
  if (g->failed ||
      (g->running && ljp_session_state(g->session) != LJP_SESSION_RUNNING))
    out->state = "failed";
  if (g->ever) {
    out->timer = g->source->name;
    out->asked_ns = out->interval_ns = g->options.interval_ns;
    out->mode = g->options.mode;
    out->wall = g->options.wall;
    out->signal = g->options.signal;
    out->client = g->running ? g->options.client : 0;
    out->bytes = g->running ? ljp_session_bytes(g->session) : g->bytes;
    out->blocked = g->blocked;
    snprintf(out->path, sizeof out->path, "%s", g->path);
  }
  if (g->running)
    status_threads(out);
  out->throttled = out->interval_ns > out->asked_ns;
  ljp_profiler_unlock(&g->lock);
}

void ljp_sysprof_disown(void)
{
  ljp_profiler_lock(&g->lock);
  g->vm = 0;
  ljp_profiler_unlock(&g->lock);
}

void ljp_sysprof_push_counts(void)
{
  uint64_t state[LJP_SAMPLER_STATES];
  struct ljp_producer *events;
  if (g->options.mode != LJP_SAMPLER_COUNT || !g->options.output.path)
    return;
  if (ljp_session_add_producer(g->session, LJP_PRODUCER_EVENTS, 0, 0, 0,
                               &events))
    return;
  memcpy(state, g->ended.state, sizeof state);
  ljp_push_vmstate(events, ljp_clock_ns(), 0, state, LJP_SAMPLER_STATES);
}
