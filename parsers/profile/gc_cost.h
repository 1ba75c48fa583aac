/*
** GC cost: which allocation sites the collector's time is spent on
** (options.gc_cost; RFC 6 has the model). One thread a profile.
*/
#ifndef LJP_PARSERS_GC_COST_H
#define LJP_PARSERS_GC_COST_H

#include "parsers/profile/profile.h"

/* Takes a sample of the collector, in any order. time_ns: since the origin.
** LJP_ERR_MEM, as for all below. */
enum ljp_status ljp_gc_cost_add(struct ljp_profile *p, uint64_t time_ns,
                                uint32_t context, uint64_t weight);

/* Takes a GC event; those of one VM come in the order of their times. vm: in
** vms[]. */
enum ljp_status ljp_gc_cost_phase(struct ljp_profile *p, uint32_t vm,
                                  const struct ljp_rec_gc *gc);

/* A memory block leaves its row after it has outlived `cycles` collections; or
** the session ends. */
static inline void ljp_gc_cost_outlived(struct ljp_profile_memory *m,
                                        uint64_t objects, uint64_t bytes,
                                        uint32_t cycles)
{
  if (!cycles) /* Most blocks: their cache line is left alone. */
    return;
  m->marked_objects += objects * cycles;
  m->marked_bytes += bytes * cycles;
}

/* Divides the collector's time among the rows: gc_ns and p->gc_cost, which stay
** zero without memory events. Call when all memory is counted. */
enum ljp_status ljp_gc_cost_finish(struct ljp_profile *p);

struct ljp_profile_pass;
void ljp_gc_cost_free(struct ljp_profile_pass *pass);

#endif
