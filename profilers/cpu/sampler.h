/*
** The sampler: the signal handler of the CPU profiler, and what it shares with
** the life cycle (sysprof.c, threads.c).
**
** Each sampled thread has one struct ljp_sampler in a table. The handler finds
** the thread's sampler without a system call: by the address that the signal of
** a POSIX timer carries, or by the descriptor of the perf event.
**
** Invariants: the memory of a sampler is never freed, so that a late signal
** does no harm. A handler works only while `active` is set, and sets `inside`
** while it works. So if `inside` is zero after `active` was cleared, no handler
** uses the sampler, its producer or its map any more.
**
** Safety: sampler.c is LJP_SIGSAFE throughout. Members that the handler shares
** with other contexts are atomic; the rest belong to the sampled thread.
*/
#ifndef LJP_SAMPLER_H
#define LJP_SAMPLER_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profilers/cpu/deferred.h"
#include "profilers/unwind/walk.h"
#include "src/push/producer.h"

enum {
  LJP_SAMPLERS = 1024,     /* threads at a time */
  LJP_SAMPLER_FDS = 65536, /* perf descriptors above have no entry */
  LJP_SAMPLER_STATES = 16
};

enum ljp_sampler_mode {
  LJP_SAMPLER_COUNT, /* "D": states only */
  LJP_SAMPLER_LEAF,  /* "L": the leaf and the innermost guest frame */
  LJP_SAMPLER_STACKS /* "C": whole stacks */
};

/* Counters that one context increments and any other reads. */
struct ljp_sampler_counts {
  _Atomic uint64_t samples; /* in the file, or counted in mode "D" */
  _Atomic uint64_t state[LJP_SAMPLER_STATES];
  _Atomic uint64_t lfunc; /* of state INTERP: in the VM, in a Lua function */
  _Atomic uint64_t cut[16];
  _Atomic uint64_t lost[LJP_LOSS_COUNT];
  _Atomic uint64_t overruns;
  _Atomic uint64_t deferred; /* samples taken after the move of a stack */
  _Atomic uint64_t outside;  /* in threads that have not run Lua yet */
  _Atomic uint64_t idle;     /* signals to a thread that was waiting */
  _Atomic uint64_t looks;    /* of the watcher */
  _Atomic uint64_t moved;    /* looks at a thread that began to run meanwhile */
  _Atomic uint64_t time_ns;  /* that the samples stand for */
  _Atomic uint64_t lost_ns, outside_ns; /* that others stood for */
  _Atomic uint64_t handler_ns;
};

/* The same for all samplers of a session; written while none is active. */
struct ljp_sampler_shared {
  struct ljp_unwind *unwind;
  enum ljp_sampler_mode mode;
  bool wall;      /* waiting threads are watched (watch.h) */
  bool only_lua;  /* drop samples of threads that have not run Lua yet */
  uint32_t depth; /* frames at most */
  /* A signal may have ended a wait whose call could not be repeated. */
  _Atomic bool ended_wait;
  int asked; /* a signal of others that asks for a sample, or 0 */
  /* Walks the host frames instead of our unwinder; see lmisclib.h. */
  void (*backtracer)(void *(*frame_writer)(int frame_no, void *addr));
};
extern struct ljp_sampler_shared ljp_sampler_shared;

struct ljp_timer_source;

struct ljp_sampler {
  _Atomic bool active;
  _Atomic uint32_t inside;
  pid_t tid;
  _Atomic uintptr_t self; /* the thread's own pointer; 0: not known yet */
  void *side;             /* the top of its side stack (handler_stack.h) */
  struct ljp_producer *producer;
  struct ljp_sampler_counts counts;

  /* The timer. */
  bool perf;           /* it counts CPU time: perf, tick */
  bool tick;           /* but looks at it only now and then */
  int fd;              /* of the perf event, or -1 */
  int timer[2], park;  /* the kernel's numbers of the POSIX timers, or -1 */
  _Atomic bool parked; /* the third timer runs: see timer_idle.c */
  _Atomic bool waits;  /* a POSIX timer has ended a wait: it is to be parked */
  _Atomic uint32_t wish;         /* enum ljp_timer_wish */
  uint64_t park_ns;              /* the period of the third timer */
  _Atomic uint64_t period_ns;    /* as armed: random, about the interval */
  _Atomic uint64_t interval_ns;  /* as shown to the user */
  _Atomic bool resync;           /* read the CPU clock at the next sample */
  _Atomic uint32_t interval_why; /* LJP_INTERVAL_* to write, or 0 */

  /* Wall time in which the thread was ready but had no CPU: goes to the next
  ** sample. The watcher adds to it. */
  _Atomic uint64_t owed_ns;
  _Atomic bool ran_lua; /* the watcher may find out, too */

  /* Of the sampled thread only. */
  uint64_t cpu_ns;        /* CPU time that is accounted for */
  uint64_t cpu_begin_ns;  /* the same when sampling began */
  uint64_t clock_ns;      /* of the last signal */
  uint64_t asked_ns;      /* when the CPU clock was last read */
  uint64_t rest_until_ns; /* no walk before */
  uint32_t long_run;      /* samples in a row that took half an interval */
  uint64_t deferred_ns;   /* time that the deferred samples stand for */
  uint32_t deferred;      /* how many there are */
  struct ljp_deferred_place deferred_at; /* of the first */
  uint64_t *frames;                      /* LJP_STACK_MAX_FRAMES of them */
  struct ljp_memo *memo;

  struct ljp_watch *watch; /* NULL: not watched; see watch.h */

  /* Of the life cycle (threads.c, throttle.c, timer_period.c). */
  const struct ljp_timer_source *source;
  int refused;      /* why it is not a better one, an errno, or 0 */
  int signal;       /* of the timers of posix */
  int event_signal; /* by this and its number the perf event is known again */
  uint64_t event;
  uint32_t thread; /* id in the session */
  uint64_t throttle_time_ns, throttle_handler_ns;
  uint64_t told_lost_ns, told_outside_ns;  /* to the stream */
  uint64_t looked_cpu_ns, looked_progress; /* when last checked for silence */
  bool looked_blocked;  /* ... it was silent, and blocked the signal */
  uint64_t seen_cpu_ns; /* at the last look, for when the thread has ended */
  uint32_t index;
  uint32_t random;       /* the state of the generator of periods */
  uint64_t drawn_cpu_ns; /* cpu_ns when the period was drawn */
  uint32_t draws;        /* times that the new period had to wait since then */
  bool drawn_one;        /* the next one is its counterpart */
  /* At the last look at a parked thread. */
  uint64_t parked_ns, parked_cpu_ns, parked_waits;
  uint32_t unparked; /* looks in a row at which it was not parked yet */
  bool used;
  bool hangs;       /* its handler never came back: never used again */
  uint32_t fresh;   /* rounds in which the thread may still get its name */
  uint64_t life_ns; /* since when the session knows the thread */
  char name[16];
};

/* The table. An entry is set once and stays. */
extern struct ljp_sampler *_Atomic ljp_samplers[LJP_SAMPLERS];
/* Index + 1 of the sampler whose perf event has this descriptor, or 0. */
extern _Atomic uint16_t ljp_sampler_of_fd[LJP_SAMPLER_FDS];

/* The handler that ours has replaced; it gets signals that are not ours. */
extern struct sigaction ljp_sampler_before;

/* The handler. */
LJP_SIGSAFE void ljp_sampler_signal(int number, siginfo_t *info, void *context);

/* Takes the sample that was deferred by the move of a stack. From ordinary code
** of the sampled thread. */
void ljp_sampler_take_deferred(struct ljp_sampler *sampler);

#endif
