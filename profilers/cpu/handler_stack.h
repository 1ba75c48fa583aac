/*
** Which stack the handler works on. The kernel puts the handler on the
** interrupted stack or on the thread's alternate signal stack. Either may have
** room for little more than the kernel's frame: the runtime of Rust gives each
** thread an alternate stack of 8 KiB, and coroutines may have small stacks. So
** the handler needs at most LJP_HANDLER_BYTES there and does its work on the
** sampler's side stack (src/base/side_stack.h).
**
** Invariants: while code runs on a side stack, every signal is blocked but those
** that an instruction raises. Of these, SIGSEGV and SIGBUS come from fault-safe
** reads. All of them get their frames on the side stack.
*/
#ifndef LJP_HANDLER_STACK_H
#define LJP_HANDLER_STACK_H

#include <stddef.h>

#include "src/base/sigsafe.h"

enum {
  /* What the handler needs of the stack that the kernel gives it, besides the
  ** kernel's own frame. test/e2e/stack_bounds.sh checks it. */
  LJP_HANDLER_BYTES = 1024,
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  LJP_SIDE_BYTES = 512 << 10,
#else
  LJP_SIDE_BYTES = 64 << 10,
#endif
  LJP_SIDE_READY_BYTES = 16 << 10 /* populated when it is mapped */
};

/* Maps `bytes` that are populated, zero and aligned to 16, and a side stack
** below, with a guard page. NULL: out of memory. The result is the side stack's
** top. Never unmapped. */
void *ljp_handler_map(size_t bytes);

/* For the handler: calls work(a, info, context) on the side stack, or on the
** present one if that is an alternate stack with much room left. */
LJP_SIGSAFE void
ljp_handler_run(void *top, void (*work)(void *a, void *info, void *context),
                void *a, void *info, void *context);

/* For ordinary code of the sampler's thread: blocks the signals meanwhile. */
LJP_SIGSAFE void ljp_handler_run_late(void *top,
                                      void (*work)(void *a, void *b, void *c),
                                      void *a, void *b);

#endif
