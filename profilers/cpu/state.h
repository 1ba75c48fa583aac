/*
** The state of the CPU profiler's one session, for the files of its life cycle:
** sysprof.c (start, stop and what happens between), status.c (questions),
** threads.c (which threads), signal_taken.c (whether the program lets us have
** the signal) and throttle.c (how often). Only they include this, and what
** chooses a thread's timer. All of it is under the one lock, but for what says
** otherwise.
*/
#ifndef LJP_SYSPROF_STATE_H
#define LJP_SYSPROF_STATE_H

#include "profilers/cpu/sysprof.h"
#include "profilers/cpu/timer.h"
#include "profilers/cpu/unsampled.h"

struct ljp_sysprof {
  struct ljp_profiler_lock lock;
  bool running, failed, ever;
  bool armed;     /* threads are sampled; not after the host took the signal */
  bool committed; /* the session has not been refused after all */
  uint32_t vm;    /* number of the VM that started it; 0: no VM owns it */
  struct ljp_sysprof_options options;
  char path[LJP_OUTPUT_PATH_BYTES];
  const struct ljp_timer_source *source; /* of all threads that can have it */
  int refused; /* why it is not a better one, an errno, or 0 */
  struct ljp_session *session;
  struct ljp_stopper *stopper; /* of a session whose time is limited */
  struct ljp_guest_hold hold;
  bool holds_traces;
  struct ljp_sysprof_report ended; /* counts of threads that are gone */
  uint64_t bytes;
  uint32_t blocked;
  /* The looks until the round that asks again for the mask of a thread, because
  ** the last round could not tell it; 0: all masks are known. */
  uint32_t unsure;
  /* A round of the writer could not have the lock: the next look asks for
  ** another one. Not under the lock. */
  _Atomic bool missed;
  uint32_t omissions; /* threads that could have no timer at all */
  uint32_t refusals;  /* threads that could not have this source */
  uint32_t resets;    /* times that the program reset the signal */
  bool unreadable;    /* reported: the handlers of reads are gone for good */
  /* A filter of system calls was there when the session began; one for all threads
  ** has come since then: see ljp_sandbox_began(). */
  bool filtered, jailed;
  bool hangs; /* a handler did not return: what it may use stays */
  /* CPU time of the process at the start, of the writer, and of threads that
  ** were sampled and are gone. */
  struct ljp_unsampled_threads unsampled;
  bool no_list;        /* the list of threads cannot be read */
  bool counted;        /* it has as many threads as the kernel counts */
  pid_t writer_tid;    /* of our own thread; 0: not known yet */
  uint64_t starter_ns; /* at the start, of the thread that starts the session */
  uint64_t process_ns, writer_cpu_ns, sampled_ns;
  uint64_t told_ns; /* CPU time of the process that the stream tells of */
  uint64_t look_ns, look_cpu_ns; /* until the next look; at the last one */
};
extern struct ljp_sysprof ljp_sysprof;

/* There is a session already: whose. Always fails. In status.c. */
enum ljp_status ljp_sysprof_busy(struct ljp_failure *why);

/* The first look comes at once after a round. */
enum { LJP_UNSURE_LOOKS = 2 };

/* Mode "D": the counters, at the end. In status.c. */
void ljp_sysprof_push_counts(void);

/* Looks between the writer's rounds whether the signal is still ours: a handler
** of the program gets our signals until then. Asks for a round, too, when the
** last one could not tell the mask of a thread: on a busy machine a thread may
** not run while the round looks, and the next round may be seconds away. After
** ljp_session_on_look(). In signal_taken.c. */
uint64_t ljp_sysprof_look(void);
/* How long after the start of a session the first look comes. */
uint64_t ljp_sysprof_first_look(void);

/* The session begins. In sandbox.c. */
void ljp_sandbox_begin(void);
/* Has a filter of system calls been set for all threads since then, the writer's
** included (SECCOMP_FILTER_FLAG_TSYNC)? It may end the program for a call that
** only the profiler makes. So the writer makes no timers any more and leaves
** those that there are alone. Not noticed if the session began under a filter.
** The calling thread is the writer's, with the lock. */
bool ljp_sandbox_began(void);

/* accounts.c: the session begins. */
void ljp_accounts_begin(void);
/* In each round of the writer, and (all) before the last times of threads are told:
** a file that ends in between must not account for more CPU time than it has. */
void ljp_accounts_round(bool all);
/* All threads have been dropped: what is left is told. end_ns: CPU time of the
** process when the session began to end. */
void ljp_accounts_end(uint64_t end_ns);
/* CPU time of the process that neither sampled threads nor the writer used. */
uint64_t ljp_sysprof_unsampled_ns(void);

/* Looks whether the program has changed the signal's handler. If it has reset
** the signal, as programs do that reset all signals, the handler is set again.
** If the program has a handler of its own, it must not get our signals.
**
** The timer posix ends waits, and the handler repeats the calls. Looks whether
** that has become impossible; if so, all threads get the timer tick. In
** signal_taken.c. */
void ljp_sysprof_check_signals(void);

#endif
