/*
** Side stacks: memory of ours that code of ours runs on instead of the stack of
** the thread, which may be a coroutine's or an alternate signal stack and have
** little room left.
**
** The program's code must not get onto a side stack. So whoever calls
** ljp_side_call() has the program's signals blocked, or the side stack is large
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
