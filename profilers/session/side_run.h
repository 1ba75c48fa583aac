/*
** Runs work that needs much stack, such as the start or stop of a session, on a
** side stack. The program may ask for such work on a coroutine of 16 KiB, and
** lua_close() and the first VM of a thread cause such work, too. Ordinary code.
*/
#ifndef LJP_SIDE_RUN_H
#define LJP_SIDE_RUN_H

#include "profilers/session/failure.h"

/* Returns work(a, b, why), called on a stack of 256 KiB; on the present one if
** there is no memory. A sample that is taken meanwhile shows the caller of this.
** The host's own code must not be called there. */
enum ljp_status ljp_side_run(enum ljp_status (*work)(void *a, const void *b,
                                                     struct ljp_failure *why),
                             void *a, const void *b, struct ljp_failure *why);

/* Binds the library's calls (src/base/bind.h), once in a process. Each function
** that can start a session calls this first: from then on no call of ours takes
** the stack that binding takes. */
void ljp_side_bind(void);

#endif
