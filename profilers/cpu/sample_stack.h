/*
** What a sample keeps of its walk: the VM state that the stack tells, and the
** frames that the session's mode wants.
**
** LJP_SIGSAFE throughout; only the handler (sampler.c) calls it.
*/
#ifndef LJP_SAMPLE_STACK_H
#define LJP_SAMPLE_STACK_H

#include <stdbool.h>

#include "profilers/unwind/walk.h"

/* The state of the VM. INTERP is refined by the innermost guest frame. *lfunc:
** the thread is in the VM's assembly, in a Lua function. */
LJP_SIGSAFE enum ljp_vmstate ljp_sample_vmstate(const struct ljp_walk *walk,
                                                bool *lfunc);

/* Mode "L": keeps the leaf (of a [kernel] or [profiler] frame the caller too)
** and the innermost guest frame. */
LJP_SIGSAFE void ljp_sample_keep_leaf(struct ljp_stack *stack);

/* Puts a [kernel] or [profiler] frame on top of the frame that made the call.
** The stack has at most `limit` frames after that. */
LJP_SIGSAFE void ljp_sample_add_leaf(struct ljp_stack *stack,
                                     enum ljp_frame_kind kind, uint32_t limit);

/* Keeps the guest frames and appends the host frames that the host's own
** backtracer finds. */
LJP_SIGSAFE void ljp_sample_backtrace(
    struct ljp_stack *stack,
    void (*backtracer)(void *(*frame_writer)(int frame_no, void *addr)));

#endif
