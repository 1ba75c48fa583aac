/*
** What a sample keeps of its walk: the VM state that follows from the stack,
** and the frames that the session's mode needs.
**
** LJP_SIGSAFE throughout; only the handler (sampler.c) calls it.
*/
#ifndef LJP_SAMPLE_STACK_H
#define LJP_SAMPLE_STACK_H

#include <stdbool.h>

#include "profilers/unwind/walk.h"

/* The state of the VM. The innermost guest frame refines the state INTERP.
** *lfunc: the thread is in the VM's assembly, in a Lua function. */
LJP_SIGSAFE enum ljp_vmstate ljp_sample_vmstate(const struct ljp_walk *walk,
                                                bool *lfunc);

/* Mode "L": keeps the leaf and the innermost guest frame. If a [kernel] or
** [profiler] frame was added, keeps it above these two. */
LJP_SIGSAFE void ljp_sample_keep_leaf(struct ljp_stack *stack);

/* Puts a [kernel] or [profiler] frame on top of the frame that made the call.
** Afterwards the stack has at most `limit` frames. */
LJP_SIGSAFE void ljp_sample_add_leaf(struct ljp_stack *stack,
                                     enum ljp_frame_kind kind, uint32_t limit);

/* Keeps the guest frames and appends the host frames that the host's own
** backtracer finds. */
LJP_SIGSAFE void ljp_sample_backtrace(
    struct ljp_stack *stack,
    void (*backtracer)(void *(*frame_writer)(int frame_no, void *addr)));

#endif
