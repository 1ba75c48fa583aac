/*
** What the CPU profiler says about its session; see sysprof.h.
*/
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "profilers/cpu/watch.h"
#include "src/luajit/traces.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

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
    out->bytes = g->running ? ljp_session_bytes(g->session) : g->bytes;
    out->blocked = g->blocked;
    snprintf(out->path, sizeof out->path, "%s", g->path);
  }
  if (g->running)
    status_threads(out);
  out->throttled = out->interval_ns > out->asked_ns;
  ljp_profiler_unlock(&g->lock);
}
