/*
** Timers: what makes the signals. Three sources, each with the same three calls,
** of which one is chosen when a session starts.
**
** perf    a task-clock event for each thread: counts CPU time, in the kernel
**         as well; a thread that waits is left alone. Needs the right to count
**         in the kernel (perf_event_paranoid <= 1 or CAP_PERFMON): without it
**         the kernel drops the events that fall into system calls.
** trap    the same event, but its signal is raised when the thread leaves the
**         kernel, which spares an interrupt a sample. It is always a SIGTRAP.
** posix   timers on the monotonic clock for each thread. Always there; wake
**         threads that wait, unless they wait for long.
**
** Life cycle only, but for what is marked LJP_SIGSAFE.
*/
#ifndef LJP_TIMER_H
#define LJP_TIMER_H

#include "profilers/cpu/sampler.h"

struct ljp_timer_source {
  const char *name;
  int signal; /* the only one that it can send, or 0 */
  /* 0, or the errno that says why it cannot be used. */
  int (*available)(void);
  /* Starts the signals to s->tid, each s->period_ns; errno or 0. */
  int (*arm)(struct ljp_sampler *s, int signal, bool wall);
  /* No signal comes any more, but for one that is pending already. */
  void (*disarm)(struct ljp_sampler *s);
};

extern const struct ljp_timer_source ljp_timer_perf, ljp_timer_trap,
    ljp_timer_posix;

/* A new random period within a quarter of the interval, so that the samples do
** not beat with periodic work of the host. Called in the handler; info is the
** signal's. While s->until_rearm stays 0 it wants to be called again. */
LJP_SIGSAFE void ljp_timer_rearm(struct ljp_sampler *s, uint64_t now,
                                 const siginfo_t *info);

/* What a signal of the trap source carries, as those of POSIX timers do: a
** pointer into ljp_samplers. NULL: it is no such signal. */
LJP_SIGSAFE const void *ljp_timer_trap_value(const siginfo_t *info);
/* What the kernel would have done had there been no handler: the program ends
** when ours returns. */
LJP_SIGSAFE void ljp_timer_trap_default(const siginfo_t *info);

/* Starts both timers of the monotonic clock, or (0) stops them. */
LJP_SIGSAFE long ljp_timer_posix_set(struct ljp_sampler *s, uint64_t period_ns);

/* A thread that waits is not to be woken by our signals: until it has used
** CPU time again, its CPU clock (looked at by the kernel at each tick) takes
** over. Called in the handler. */
LJP_SIGSAFE void ljp_timer_posix_park(struct ljp_sampler *s);
LJP_SIGSAFE void ljp_timer_posix_unpark(struct ljp_sampler *s);
/* 0 or a negative errno; first_ns 0 stops it. */
LJP_SIGSAFE long ljp_timer_set(int timer, uint64_t first_ns,
                               uint64_t period_ns);

#endif
