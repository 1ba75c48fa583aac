/*
** Who may stop the memory profiler's session: the VM or the client that has
** begun it; see memprof.h.
*/
#include <errno.h>
#include <unistd.h>

#include "profilers/memory/heap_session.h"
#include "profilers/memory/state.h"
#include "src/luajit/vms.h"

static struct ljp_memprof *const g = &ljp_memprof;

static void owner_lock(void)
{
  ljp_profiler_lock(&g->lock);
}

static void owner_unlock(void)
{
  ljp_profiler_unlock(&g->lock);
}

enum ljp_status ljp_memprof_busy(struct ljp_failure *why)
{
  return g->options.client
             ? ljp_fail(why, LJP_ERR_RUN, EBUSY,
                        "memory profiler is running already, for ljprof "
                        "(process %d), which has joined the program",
                        (int)g->options.client)
             : ljp_fail(why, LJP_ERR_RUN, EBUSY, "profiler is running already");
}

enum ljp_status ljp_memprof_stop(struct lua_State *L, struct ljp_failure *why)
{
  struct ljp_failure missing;
  enum ljp_status status, last = ljp_heap_session_last(L, &missing);
  owner_lock();
  if (!g->running)
    status = ljp_fail(why, LJP_ERR_RUN, EINVAL, "profiler is not running");
  else if (g->options.client)
    status = ljp_fail(why, LJP_ERR_USE, EPERM,
                      "the session was started by ljprof (process %d), which "
                      "has joined the program: 'ljprof stop -p %d' ends it",
                      (int)g->options.client, (int)getpid());
  else if (g->owner && ljp_guest_vm_id(L) != g->owner)
    status = ljp_fail(
        why, LJP_ERR_USE, EPERM,
        "memory profiler was started by another VM (number %u); only that VM "
        "can stop it",
        g->owner);
  else
    status = ljp_memprof_stop_locked(L, why);
  owner_unlock();
  if (!status && last)
    *why = missing;
  return status ? status : last;
}

enum ljp_status ljp_memprof_stop_joined(struct ljp_failure *why)
{
  owner_lock();
  enum ljp_status status =
      g->running && g->options.client
          ? ljp_memprof_stop_locked(NULL, why)
          : ljp_fail(why, LJP_ERR_RUN, EINVAL,
                     "no session runs that ljprof has started");
  owner_unlock();
  return status;
}

void ljp_memprof_disown(void)
{
  owner_lock();
  g->owner = 0;
  owner_unlock();
}
