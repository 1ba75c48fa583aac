/*
** Restarts a waiting call that a signal of ours has ended: the handler makes
** the thread call again.
*/
#ifndef LJP_RESTART_H
#define LJP_RESTART_H

#include <stdbool.h>

#include "src/base/sigsafe.h"

/* At the end of the handler, for a signal that may arrive while a thread waits
** or is about to. If the interrupted code has just got EINTR from a waiting
** call, and no signal of the host is pending that would have ended the call,
** changes the context so that the call is made again. number: of our signal.
** False: a call may have ended that could not be made again. */
LJP_SIGSAFE bool ljp_restart_call(void *context, int number);

/* The number of a signal that the program handles, so that no call can be made
** again in a thread that takes it; 0: there is none. blocked: signals that the
** thread does not take, a bit each. */
LJP_SIGSAFE int ljp_restart_obstacle(unsigned long blocked, int number);

#endif
