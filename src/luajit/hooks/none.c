/*
** The hooks of the patches in a build without profilers: they do nothing but
** what the metrics need.
*/
#include <stddef.h>
#include <stdint.h>

#include "src/luajit/metrics.h"

struct lua_State;
struct GCproto;
struct global_State;
struct GCtrace;
struct jit_State;

void ljp_hook_vm_new(struct lua_State *L);
void ljp_hook_vm_closing(struct lua_State *L);
void ljp_hook_vm_gone(struct lua_State *L);
void ljp_hook_owner(struct lua_State *L, void *owner);
void ljp_hook_allocator(struct lua_State *L,
                        void *(*f)(void *, void *, size_t, size_t), void *ud);
void ljp_hook_resize(struct lua_State *L, int begin);
void ljp_hook_proto(struct lua_State *L, struct GCproto *pt);
void ljp_hook_proto_gone(struct GCproto *pt);
void ljp_hook_gc(struct global_State *g);
void ljp_hook_refused(void *msp, size_t nb);
void ljp_hook_trace_start(struct jit_State *J);
void ljp_hook_trace_stop(struct jit_State *J, struct GCtrace *T);
void ljp_hook_trace_abort(struct jit_State *J, unsigned error);
void ljp_hook_trace_blacklist(struct jit_State *J, struct GCproto *pt,
                              unsigned *pc);
void ljp_hook_trace_unlink(struct jit_State *J, struct GCtrace *T);
void ljp_hook_trace_flush(struct jit_State *J);
void ljp_hook_trace_free(struct jit_State *J, struct GCtrace *T);
void ljp_hook_marker(struct jit_State *J);
unsigned short *ljp_hook_marker_copies(struct jit_State *J);
unsigned short *ljp_hook_marker_code(struct jit_State *J);

void ljp_hook_vm_new(struct lua_State *L)
{
  (void)L;
}

void ljp_hook_owner(struct lua_State *L, void *owner)
{
  (void)L;
  (void)owner;
}

void ljp_hook_vm_closing(struct lua_State *L)
{
  (void)L;
}

void ljp_hook_vm_gone(struct lua_State *L)
{
  (void)L;
}

void ljp_hook_allocator(struct lua_State *L,
                        void *(*f)(void *, void *, size_t, size_t), void *ud)
{
  (void)L;
  (void)f;
  (void)ud;
}

void ljp_hook_resize(struct lua_State *L, int begin)
{
  (void)L;
  (void)begin;
}

void ljp_hook_proto(struct lua_State *L, struct GCproto *pt)
{
  (void)L;
  (void)pt;
}

void ljp_hook_proto_gone(struct GCproto *pt)
{
  (void)pt;
}

void ljp_hook_gc(struct global_State *g)
{
  ljp_metrics_phase(g);
}

void ljp_hook_refused(void *msp, size_t nb)
{
  (void)msp;
  (void)nb;
}

void ljp_hook_trace_start(struct jit_State *J)
{
  (void)J;
}

void ljp_hook_trace_stop(struct jit_State *J, struct GCtrace *T)
{
  (void)J;
  (void)T;
}

void ljp_hook_trace_abort(struct jit_State *J, unsigned error)
{
  (void)J;
  (void)error;
}

void ljp_hook_trace_blacklist(struct jit_State *J, struct GCproto *pt,
                              unsigned *pc)
{
  (void)J;
  (void)pt;
  (void)pc;
}

void ljp_hook_trace_unlink(struct jit_State *J, struct GCtrace *T)
{
  (void)J;
  (void)T;
}

void ljp_hook_trace_flush(struct jit_State *J)
{
  (void)J;
}

void ljp_hook_trace_free(struct jit_State *J, struct GCtrace *T)
{
  (void)J;
  (void)T;
}

void ljp_hook_marker(struct jit_State *J)
{
  (void)J;
}

/* Written for each IR reference, from REF_BASE on, and never read. */
static unsigned short nowhere[0x8000];

static unsigned short *before_nowhere(void)
{
  return (unsigned short *)((uintptr_t)nowhere - sizeof nowhere);
}

unsigned short *ljp_hook_marker_copies(struct jit_State *J)
{
  (void)J;
  return before_nowhere();
}

unsigned short *ljp_hook_marker_code(struct jit_State *J)
{
  (void)J;
  return before_nowhere();
}
