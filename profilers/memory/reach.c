/*
** The memory profiler and VMs that other threads run; see state.h. A session that
** a client has begun puts stubs (stubs.h) before the allocators of the VMs that
** there are. The VM's own thread then does at its next allocation what it
** otherwise does at its collector's next phase.
*/
#include <errno.h>
#include <unistd.h>

#include "profilers/memory/record.h"
#include "profilers/memory/state.h"
#include "src/luajit/stubs.h"

static struct ljp_memprof *const g = &ljp_memprof;

/* Under the lock, on any thread. */
static bool reach_wants_stub(const void *recorder)
{
  const struct ljp_recorder *r = recorder;
  return r ? atomic_load(&r->ended) : g->running && g->options.all;
}

/* On a VM's own thread, which is about to allocate. In a copy of the process,
** nobody wants the stub any more. */
static void reach_on_stub(struct lua_State *L)
{
  int *error = &errno, saved = *error;
  if (atomic_load(&g->lock.pid) != getpid())
    ljp_guest_stub_clear(L);
  else if (ljp_profiler_trylock(&g->lock)) /* else at the next call */
    ljp_memprof_meet_locked(L);
  *error = saved;
}

void ljp_memprof_reach_vms(void)
{
  ljp_guest_stubs_take();
  if (g->options.client && atomic_load(&g->meets))
    ljp_guest_stubs_put(reach_wants_stub, reach_on_stub);
}
