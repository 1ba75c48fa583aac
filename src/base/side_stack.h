/*
** Side stacks: our code runs on memory of ours instead of on the thread's
** current stack, which may belong to a coroutine or be an alternate signal
** stack, and may have little room left.
**
** The program's code must not run on a small side stack. So the caller of
** ljp_side_call() has blocked the program's signals, or the side stack is large
** (ljp_side_run()).
*/
#ifndef LJP_SIDE_STACK_H
#define LJP_SIDE_STACK_H

#include "src/base/sigsafe.h"

/* Calls function(a, b, c) on the stack that ends at `top`, which is a multiple
** of 16. Takes 32 bytes of the present stack. Unwinders step from the function
** to the caller of this. */
LJP_SIGSAFE void ljp_side_call(void *a, void *b, void *c,
                               void (*function)(void *a, void *b, void *c),
                               void *top) __attribute__((visibility("hidden")));

#endif
