/*
** Timers, which raise the signals. A session has one of three sources, chosen
** when it starts (timer_choice.c). A thread that cannot have a timer of this
** source gets one of the source tick.
**
** perf    a task-clock event for each thread: counts CPU time, in the kernel
**         as well, and leaves a waiting thread alone. Needs the right to count
**         in the kernel (perf_event_paranoid <= 1 or CAP_PERFMON): without it
**         the kernel drops the events that fall into system calls.
** tick    a timer on the thread's CPU clock, which expires only at the kernel's
**         ticks. Always available. Leaves a waiting thread alone.
** posix   timers on the monotonic clock for each thread. On request. They wake
**         a thread that waits, whose call is then made again; so they are given
**         up for tick where a call cannot be made again (restart.h).
**
** For the life cycle only. The handler sets no timer.
*/
#ifndef LJP_TIMER_H
#define LJP_TIMER_H

#include "profilers/cpu/sampler.h"

struct ljp_timer_source {
  const char *name;
  enum ljp_timer kind;
  /* 0, or the errno that says why the source cannot be used. */
  int (*available)(void);
  /* Starts the signals to s->tid, one every s->period_ns. Returns an errno, or
  ** 0. */
  int (*arm)(struct ljp_sampler *s, int signal);
  /* Soon disarm() will follow. NULL: nothing to do. */
  void (*end)(struct ljp_sampler *s);
  /* After this, only a signal that is already pending may arrive. */
  void (*disarm)(struct ljp_sampler *s);
  /* Is the timer still there? NULL: always. */
  bool (*lives)(const struct ljp_sampler *s);
  /* Gives the running timer another period, and sets s->period_ns. False: not
  ** now, because the next signal would come later than it is due. (Never false
  ** if at_once.) */
  bool (*renew)(struct ljp_sampler *s, uint64_t period_ns, bool at_once);
};

struct ljp_failure;
struct ljp_sysprof_options;

/* Chooses the source from the options, and fills in options->signal. *refused:
** why a better source is not available, an errno, or 0. */
enum ljp_status ljp_timer_choose(struct ljp_sysprof_options *options,
                                 const struct ljp_timer_source **source,
                                 int *refused, struct ljp_failure *why);

/* Tells the new session's file if the choice is not what the user named. */
void ljp_timer_note(void);

/* Starts the signals to s->tid, by this source or else, unless it is `strict`,
** by tick. Sets s->source, and s->refused to the errno for which it is not this
** source. Returns an errno, or 0. */
int ljp_timer_arm(struct ljp_sampler *s, const struct ljp_timer_source *source,
                  bool strict);

extern const struct ljp_timer_source ljp_timer_perf, ljp_timer_tick,
    ljp_timer_posix;

/* In the child of a fork: gives up the inherited descriptor, which still names
** the parent's event. */
void ljp_timer_perf_forget(struct ljp_sampler *s);

/* The time between two ticks of the kernel. */
uint64_t ljp_timer_tick_ns(void);

/* A POSIX timer that sends the signal to s->tid. Returns an errno, or 0. */
int ljp_timer_create(struct ljp_sampler *s, clockid_t clock, int signal,
                     int *out);
/* Does nothing for -1, which it leaves. */
void ljp_timer_delete(int *timer);

/* When the sampler's accounts begin. */
void ljp_timer_begin(struct ljp_sampler *s);
/* The writer's look at a thread, between its rounds: draws a new period if the
** old one has been in force for long enough, and parks the thread if posix has
** ended a wait of it. True: the thread is parked. */
bool ljp_timer_look(struct ljp_sampler *s);
/* Draws a random period that differs from the interval by at most a quarter.
** at_once: the interval has changed, so the period may not wait. */
void ljp_timer_draw(struct ljp_sampler *s, bool at_once);

/* Starts both timers of the monotonic clock; period 0 stops them. Returns an
** errno, or 0. */
int ljp_timer_posix_set(struct ljp_sampler *s, uint64_t period_ns);
/* True: the caller may park the thread now. False: the thread was asked to do
** it by itself, at its next signal. s->park_ns is set. */
bool ljp_timer_posix_park(struct ljp_sampler *s);
/* True: the thread is parked. */
bool ljp_timer_posix_look(struct ljp_sampler *s);

/* Sets one POSIX timer by the kernel's number; first_ns 0 stops it. flags: as
** for timer_settime(). Returns an errno, or 0. */
int ljp_timer_set(int timer, int flags, uint64_t first_ns, uint64_t period_ns);
/* The time until the timer expires. */
uint64_t ljp_timer_left_ns(int timer);

#endif
