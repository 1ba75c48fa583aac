/*
** The CPU profiler's signal handler and what it keeps for each thread.
**
** Mental picture: one struct ljp_sampler a profiled thread, in a table that
** the handler finds its own in without a system call: by the address that the
** thread's POSIX timer or trap carries, or by the descriptor of its perf event.
**
** Invariants: a sampler's memory is never given back, so that a signal which
** arrives late finds memory; a handler works only while `active`, and says so
** by `inside`: whoever clears `active` and then sees `inside` at zero knows
** that no handler uses the sampler, its producer or its map any more.
**
** Safety: sampler.c is LJP_SIGSAFE throughout. What the handler shares with
** others is atomic; the rest belongs to the thread that is sampled.
*/
#ifndef LJP_SAMPLER_H
#define LJP_SAMPLER_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profilers/unwind/walk.h"
#include "src/push/producer.h"

enum {
  LJP_SAMPLERS = 1024,    /* threads at a time */
  LJP_SAMPLER_FDS = 4096, /* perf descriptors above have no entry */
  LJP_SAMPLER_STATES = 16,
  LJP_SAMPLER_DEFERRED = 8
};

enum ljp_sampler_mode {
  LJP_SAMPLER_COUNT, /* "D": states only */
  LJP_SAMPLER_LEAF,  /* "L": where it is, and the innermost guest frame */
  LJP_SAMPLER_STACKS /* "C" */
};

/* Counters that one context adds to and any other reads. */
struct ljp_sampler_counts {
  _Atomic uint64_t samples; /* in the file, or counted in mode D */
  _Atomic uint64_t state[LJP_SAMPLER_STATES];
  _Atomic uint64_t lfunc; /* of state INTERP: in the VM, in a Lua function */
  _Atomic uint64_t cut[16];
  _Atomic uint64_t lost[LJP_LOSS_COUNT];
  _Atomic uint64_t overruns;
  _Atomic uint64_t deferred; /* samples taken after a stack resize */
  _Atomic uint64_t outside;  /* in threads that have not run Lua yet */
  _Atomic uint64_t idle;     /* signals to a thread that was waiting */
  _Atomic uint64_t time_ns;  /* that the samples stand for */
  _Atomic uint64_t handler_ns;
};

/* The same for all samplers of a session; set while none is active. */
struct ljp_sampler_shared {
  struct ljp_unwind *unwind;
  enum ljp_sampler_mode mode;
  bool wall;      /* event = "wall" */
  bool only_lua;  /* drop samples of threads that have not run Lua yet */
  uint32_t depth; /* frames at most */
  /* Walks the host part instead of us; see lmisclib.h. */
  void (*backtracer)(void *(*frame_writer)(int frame_no, void *addr));
};
extern struct ljp_sampler_shared ljp_sampler_shared;

/* The outermost host frames of a place. */
struct ljp_sampler_place {
  uint32_t count;
  uint64_t frames[LJP_SAMPLER_DEFERRED];
};

struct ljp_sampler {
  _Atomic bool active;
  _Atomic uint32_t inside;
  pid_t tid;
  struct ljp_producer *producer;
  struct ljp_sampler_counts counts;

  /* The timer: exact periods of CPU time (perf, trap), or of the clock (POSIX). */
  bool perf;
  int fd;              /* of the perf event, or -1 */
  int timer[2], park;  /* the kernel's numbers of the POSIX timers, or -1 */
  _Atomic bool parked; /* the last one runs: see timer_posix.c */
  _Atomic uint64_t period_ns;    /* as armed: random, about the interval */
  _Atomic uint64_t interval_ns;  /* as told to the user */
  _Atomic bool resync;           /* ask the CPU clock at the next sample */
  _Atomic uint32_t interval_why; /* to be recorded: LJP_INTERVAL_*, or 0 */

  /* Of the sampled thread only. */
  bool ran_lua;
  uint64_t cpu_ns;        /* CPU time that is accounted for */
  uint64_t cpu_begin_ns;  /* the same when it began to be sampled */
  uint64_t clock_ns;      /* of the last signal */
  uint64_t asked_ns;      /* when the CPU clock was asked last */
  uint64_t rest_until_ns; /* no walk before */
  uint64_t switches;      /* voluntary ones, when last asked for */
  uint32_t until_rearm;   /* samples until the next random period */
  uint64_t drawn_ns;      /* that period, if one of two timers has it already */
  uint64_t drawn_due_ns;  /* when that one expires */
  uint32_t drawn_by;      /* which of them */
  uint32_t random;
  uint32_t long_run;    /* samples in a row that took half an interval */
  uint32_t idle_run;    /* signals in a row that found it waiting */
  uint64_t deferred_ns; /* time that a deferred sample stands for */
  uint32_t deferred;
  struct ljp_sampler_place deferred_at; /* where the first fell */
  uint64_t *frames;                     /* shared.depth of them */
  struct ljp_memo *memo;

  /* Of the life cycle (threads.c). */
  uint32_t thread; /* id in the session */
  uint64_t throttle_time_ns, throttle_handler_ns;
  uint32_t index;
  bool used, seen;
  uint32_t fresh; /* rounds in which to look for another name */
  char name[16];
};

/* The table; entries are set once and stay. */
extern struct ljp_sampler *_Atomic ljp_samplers[LJP_SAMPLERS];
/* Index + 1 of the sampler whose perf event has this descriptor, or 0. */
extern _Atomic uint16_t ljp_sampler_of_fd[LJP_SAMPLER_FDS];

/* What was there before our handler; signals that are not ours go there. */
extern struct sigaction ljp_sampler_before;

/* The handler. */
LJP_SIGSAFE void ljp_sampler_signal(int number, siginfo_t *info, void *context);

/* The sample that a stack resize put off: from ordinary code of its thread. */
void ljp_sampler_deferred(struct ljp_sampler *sampler);

/* sampler_late.c: notes where a sample was put off, takes the hook's frames off
** the stack that is taken late. */
LJP_SIGSAFE void ljp_sampler_note_place(struct ljp_sampler_place *place,
                                        const struct ljp_stack *stack);
LJP_SIGSAFE void ljp_sampler_drop_hook(const struct ljp_sampler_place *place,
                                       struct ljp_stack *stack);

#endif
