/*
** What misc.getmetrics() and luaM_metrics() tell of a VM. Use on the VM's own
** thread, in ordinary code.
*/
#ifndef LJP_GUEST_METRICS_H
#define LJP_GUEST_METRICS_H

#include <stdint.h>

struct lua_State;

/* The names and their order are those of Tarantool's LuaJIT. */
#define LJP_METRICS_LIST(X)                                                    \
  X(strhash_hit)  /* strings that were wanted and existed already */           \
  X(strhash_miss) /* strings that were made */                                 \
  X(gc_strnum) /* objects in the heap, dead ones too until they are freed */   \
  X(gc_tabnum)                                                                 \
  X(gc_udatanum)                                                               \
  X(gc_cdatanum)                                                               \
  X(gc_total) /* bytes in use */                                               \
  X(gc_freed)                                                                  \
  X(gc_allocated)                                                              \
  X(gc_steps_pause) /* steps of the collector, by its state */                 \
  X(gc_steps_propagate)                                                        \
  X(gc_steps_atomic)                                                           \
  X(gc_steps_sweepstring)                                                      \
  X(gc_steps_sweep)                                                            \
  X(gc_steps_finalize)                                                         \
  X(jit_snap_restore) /* exits of traces that restored the interpreter */      \
  X(jit_trace_abort)                                                           \
  X(jit_mcode_size) /* bytes of memory for machine code */                     \
  X(jit_trace_num)

struct ljp_metrics {
#define LJP_X(name) uint64_t name;
  LJP_METRICS_LIST(LJP_X)
#undef LJP_X
};

void ljp_guest_metrics(struct lua_State *L, struct ljp_metrics *out);

/* For the hook of the collector: it has entered another phase. */
struct global_State;
void ljp_metrics_phase(struct global_State *g);

#endif
