/*
** Timers: what makes the signals. Two sources, each with the same three calls,
** of which one is chosen when a session starts.
**
** perf    a task-clock event for each thread: counts CPU time, in the kernel
**         as well; a thread that waits is left alone. Needs the right to count
**         in the kernel (perf_event_paranoid <= 1 or CAP_PERFMON): without it
**         the kernel drops the events that fall into system calls.
** posix   a timer on the monotonic clock for each thread. Always there; wakes
**         threads that wait, unless they wait for long.
**
** Life cycle only, but for what is marked LJP_SIGSAFE.
*/
#ifndef LJP_TIMER_H
#define LJP_TIMER_H

#include "profilers/sampler.h"

struct ljp_timer_source {
  const char *name;
  /* 0, or the errno that says why it cannot be used. */
  int (*available)(void);
  /* Starts the signals to s->tid, each s->period_ns; errno or 0. */
  int (*arm)(struct ljp_sampler *s, int signal, bool wall);
  /* No signal comes any more, but for one that is pending already. */
  void (*disarm)(struct ljp_sampler *s);
};

extern const struct ljp_timer_source ljp_timer_perf, ljp_timer_posix;

/* A new random period within a quarter of the interval, so that the samples do
** not beat with periodic work of the host. Called in the handler, for perf as
** well as for POSIX timers; there the old period has just ended. */
LJP_SIGSAFE void ljp_timer_rearm(struct ljp_sampler *s);

/* A thread that waits is not to be woken by our signals: until it has used
** CPU time again, its CPU clock (looked at by the kernel at each tick) takes
** over. Called in the handler. */
LJP_SIGSAFE void ljp_timer_posix_park(struct ljp_sampler *s);
LJP_SIGSAFE void ljp_timer_posix_unpark(struct ljp_sampler *s);
/* 0 or a negative errno; first_ns 0 stops it. */
LJP_SIGSAFE long ljp_timer_set(int timer, uint64_t first_ns,
                               uint64_t period_ns);

#endif
