/*
** What the memory profiler says about its session; see memprof.h.
*/
#include <stdio.h>
#include <string.h>

#include "profilers/memory/followed.h"
#include "profilers/memory/state.h"

static struct ljp_memprof *const g = &ljp_memprof;

bool ljp_memprof_running(void)
{
  ljp_profiler_lock(&g->lock);
  bool running = g->running;
  ljp_profiler_unlock(&g->lock);
  return running;
}

void ljp_memprof_status(struct ljp_memprof_status *out)
{
  memset(out, 0, sizeof *out);
  ljp_profiler_lock(&g->lock);
  out->state = g->running ? "running" : !g->ever ? "idle" : "stopped";
  out->running = g->running;
  out->counts = g->counts;
  out->bytes = g->bytes;
  if (g->running) {
    ljp_followed_counts(&out->counts, &out->heap_bytes);
    out->bytes = ljp_session_bytes(g->session);
  }
  if (g->failed || g->replaced ||
      (g->running && ljp_session_state(g->session) != LJP_SESSION_RUNNING))
    out->state = "failed";
  out->ljm = g->options.output.ljm;
  out->sample_bytes = g->options.sample_bytes;
  out->native = g->options.native;
  snprintf(out->path, sizeof out->path, "%s", g->path);
  ljp_profiler_unlock(&g->lock);
}
