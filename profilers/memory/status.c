/*
** What the memory profiler says about its session, and marks in it; see
** memprof.h.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/memory/followed.h"
#include "profilers/memory/state.h"
#include "src/luajit/vms.h"

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

enum ljp_status ljp_memprof_mark(struct lua_State *L, const char *name,
                                 size_t bytes, struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  ljp_profiler_lock(&g->lock);
  struct ljp_recorder *r = ljp_guest_recorder(L);
  if (!g->running) {
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  } else if (g->owner && ljp_guest_vm_id(L) != g->owner) {
    status = ljp_fail(why, LJP_ERR_USE, EPERM,
                      "memory profiler was started by another VM "
                      "(number %u); only that VM can set marks",
                      g->owner);
  } else if (g->options.output.ljm) {
    status = ljp_fail(why, LJP_ERR_USE, EINVAL,
                      "a file of format \"ljm\" has no marks");
  } else if (!r || r->ended) {
    status = ljp_fail(why, LJP_ERR_LIMIT, EAGAIN,
                      "this VM is not recorded: too many VMs are, or there "
                      "was no memory");
  } else {
    ljp_recorder_mark(r, name, bytes);
  }
  ljp_profiler_unlock(&g->lock);
  return status;
}
