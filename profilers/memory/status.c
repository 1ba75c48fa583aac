/*
** What the memory profiler says about its session, and marks in it; see
** memprof.h.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/memory/followed.h"
#include "profilers/memory/state.h"
#include "src/base/clock.h"
#include "src/luajit/vms.h"
#include "src/push/event.h"

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
  out->unwritten =
      g->unwritten ||
      (g->running && ljp_session_state(g->session) != LJP_SESSION_RUNNING);
  if (g->failed || g->replaced || out->unwritten)
    out->state = "failed";
  out->client = g->running ? g->options.client : 0;
  out->ljm = g->options.output.ljm;
  out->sample_bytes = g->options.sample_bytes;
  out->max_samples = g->options.max_samples;
  out->sample_now =
      g->running ? ljp_followed_sample_bytes() : g->options.sample_bytes;
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

enum ljp_status ljp_memprof_mark_all(const char *name, size_t bytes,
                                     struct ljp_failure *why)
{
  enum ljp_status status = LJP_OK;
  struct ljp_memprof_counts counts;
  uint64_t heap_bytes = 0;
  ljp_profiler_lock(&g->lock);
  if (g->running)
    ljp_followed_counts(&counts, &heap_bytes);
  if (!g->running)
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  else if (g->options.output.ljm)
    status = ljp_fail(why, LJP_ERR_USE, EINVAL,
                      "a file of format \"ljm\" has no marks");
  else if (!ljp_push_mark(g->events, ljp_clock_ns(), 0, 0, (int64_t)heap_bytes,
                          name, bytes))
    status = ljp_fail(why, LJP_ERR_LIMIT, EAGAIN,
                      "the mark is lost: the session's writer is too slow");
  else /* Later events shall come after it in the file, too. */
    ljp_session_wake(g->session);
  ljp_profiler_unlock(&g->lock);
  return status;
}
