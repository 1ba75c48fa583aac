/*
** Whose sampler a signal is for.
*/
#ifndef LJP_SIGNAL_OWNER_H
#define LJP_SIGNAL_OWNER_H

#include <signal.h>

#include "profilers/cpu/sampler.h"

/* The sampler of this thread, which the signal's timer belongs to. A signal that
** somebody else sends for a sample (ljp_sampler_shared.asked) makes it ready for one
** that its timer has not asked for. NULL: the signal is none of ours, or one for
** another thread: a thread that has blocked the signal takes it late, when a
** descriptor or an entry of the table may be used again. */
LJP_SIGSAFE struct ljp_sampler *ljp_signal_owner(const siginfo_t *info);

#endif
