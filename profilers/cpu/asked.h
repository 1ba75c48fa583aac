/*
** A signal that somebody else sends for a sample: SIGPROF, in sessions of the C
** interface. Tarantool's profiler takes its samples at SIGPROF, and programs
** written for it send SIGPROF themselves. Without a handler it would end them.
*/
#ifndef LJP_ASKED_H
#define LJP_ASKED_H

#include "profilers/cpu/sampler.h"

/* The sampler of this thread, made ready for a sample that its timer has not
** asked for. NULL: the thread is not sampled. */
LJP_SIGSAFE struct ljp_sampler *ljp_asked_sampler(void);

#endif
