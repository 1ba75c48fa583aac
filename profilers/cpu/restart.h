/*
** Restarts a waiting call that a signal of ours has ended: the handler makes
** the thread call again.
*/
#ifndef LJP_RESTART_H
#define LJP_RESTART_H

#include "src/base/sigsafe.h"

/* At the end of the handler, for a signal that may arrive while a thread is
** about to wait. If the interrupted code has just got EINTR from a waiting
** call, and no signal of the host is pending that would have ended the call,
** changes the context so that the call is made again. number: of our signal. */
LJP_SIGSAFE void ljp_restart_call(void *context, int number);

#endif
