/*
** Stand-ins: registers that a sample is taken from instead of the interrupted
** ones, while our own code runs in a thread of the host.
**
** That code (a walk, a push) has no frame information, and no user wants to see
** it. So it names the place that called it. A sample that interrupts it shows
** that place, with a [profiler] frame on top. Both variables belong to the
** thread that sets them; its signal handler reads them.
*/
#ifndef LJP_STAND_IN_H
#define LJP_STAND_IN_H

#include <stdatomic.h>

#include "profilers/session/caller.h"
#include "src/base/tls.h"

/* NULL: take the interrupted registers. */
extern __thread const struct ljp_regs
    *volatile ljp_stand_in_regs LJP_TLS_SIGSAFE;

/* The same for the allocator's hook, which is called so often that it can only
** afford one store. Takes precedence over the registers. */
extern __thread const struct ljp_caller
    *volatile ljp_stand_in_caller LJP_TLS_SIGSAFE;

/* From now on a sample shows this caller; NULL: the interrupted code. */
static inline void ljp_stand_in(const struct ljp_caller *caller)
{
  ljp_stand_in_caller = caller;
  atomic_signal_fence(memory_order_seq_cst);
}

/* The registers of the caller as they are when this returns: those that
** functions preserve, rsp and rip. Sets no other member of *regs. */
LJP_SIGSAFE void ljp_registers_here(struct ljp_regs *regs)
    __attribute__((visibility("hidden")));

#endif
