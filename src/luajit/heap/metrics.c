/*
** Metrics of a VM; see metrics.h. Patch 0011 keeps the counters in jit_State;
** what they leave out is worked out here. In every build, with profilers or
** without. On the VM's own thread.
*/
#define LUA_CORE

#include <stdbool.h>

#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_err.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/metrics.h"

#if LJ_GC64
_Static_assert(sizeof(((jit_State *)0)->penalty) + sizeof(struct LJPCounts) ==
                   16 * PENALTY_SLOTS,
               "the counters fill the padding of the penalty slots");
#endif
_Static_assert(LUAJIT_SECURITY_STRID == 1 || LUAJIT_SECURITY_STRID == 2,
               "new strings are counted when their ids get a new seed");

/* Not inlined: otherwise the compiler checks the size first, in every call. */
static LJ_NOINLINE void *metrics_no_memory(lua_State *L, GCSize size)
{
  if (size > 0)
    lj_err_mem(L);
  return NULL;
}

/* Part of the VM: new memory. Nothing is counted as freed here. */
void *lj_mem_new(lua_State *L, GCSize size)
{
  void *p = G(L)->allocf(G(L)->allocd, NULL, 0, size);
  if (LJ_UNLIKELY(!p))
    return metrics_no_memory(L, size);
  G(L)->gc.total += size;
  return p;
}

/* The states in which the collector lowers gc.estimate by what it frees. */
static bool metrics_sweeps(uint64_t state)
{
  return state == GCSsweepstring || state == GCSsweep;
}

/* Bytes that this sweep has freed so far. */
static uint64_t metrics_swept(const struct LJPCounts *c, const global_State *g)
{
  return (GCSize)(c->estimate - g->gc.estimate);
}

void ljp_metrics_phase(global_State *g)
{
  struct LJPCounts *c = ljp_counts(g);
  switch (g->gc.state) {
  case GCSpropagate:
    c->steps[GCSpause]++;
    break;
  case GCSsweepstring:
    c->estimate = g->gc.estimate;
    break;
  case GCSsweep:
    c->steps[GCSsweepstring] += (uint64_t)g->str.mask + 1;
    break;
  default:
    if (metrics_sweeps(c->state))
      c->freed += metrics_swept(c, g);
  }
  c->state = g->gc.state;
}

static uint64_t metrics_traces(jit_State *J)
{
  uint64_t count = 0;
  for (MSize i = 1; i < J->sizetrace; i++) {
    GCtrace *trace = traceref(J, i);
    count += trace && trace != &J->cur; /* J->cur is still being recorded */
  }
  return count;
}

void ljp_guest_metrics(lua_State *L, struct ljp_metrics *out)
{
  global_State *g = G(L);
  jit_State *J = G2J(g);
  const struct LJPCounts *c = ljp_counts(g);
  out->strhash_hit = c->strhit;
  out->strhash_miss = c->strmiss - g->str.idreseed;
  out->gc_strnum = g->str.num;
  out->gc_tabnum = c->tabs;
  out->gc_udatanum = c->udatas;
  out->gc_cdatanum = c->cdatas;
  out->gc_total = g->gc.total;
  out->gc_freed = c->freed;
  if (metrics_sweeps(g->gc.state))
    out->gc_freed += metrics_swept(c, g);
  out->gc_allocated = out->gc_freed + out->gc_total;
  out->gc_steps_pause = c->steps[GCSpause];
  out->gc_steps_propagate = c->steps[GCSpropagate];
  out->gc_steps_atomic = c->steps[GCSatomic];
  out->gc_steps_sweepstring = c->steps[GCSsweepstring];
  if (g->gc.state == GCSsweepstring)
    out->gc_steps_sweepstring += g->gc.sweepstr;
  out->gc_steps_sweep = c->steps[GCSsweep];
  out->gc_steps_finalize = c->steps[GCSfinalize];
  out->jit_snap_restore = c->restores;
  out->jit_trace_abort = c->aborts;
  out->jit_mcode_size = J->szallmcarea;
  out->jit_trace_num = metrics_traces(J);
}
