/*
** Inside of the CPU profiler's life cycle: sysprof.c (start, stop, what the
** process does meanwhile), setup.c (what a session needs) and threads.c (which threads, how often).
** Nobody else. All of it under the one lock of sysprof.c.
*/
#ifndef LJP_SYSPROF_PRIV_H
#define LJP_SYSPROF_PRIV_H

#include <pthread.h>

#include "profilers/cpu/sysprof.h"
#include "profilers/cpu/timer.h"

struct ljp_sysprof {
  struct ljp_profiler_lock lock;
  bool running, failed, ever, armed;
  uint32_t vm; /* number of the VM that started it */
  struct ljp_sysprof_options options;
  char path[4096];
  const struct ljp_timer_source *source;
  struct ljp_session *session;
  struct ljp_guest_hold hold;
  struct ljp_sysprof_report ended; /* counts of threads that are gone */
  uint64_t bytes;
  uint32_t blocked;
  /* CPU clocks: of the process when it started, of the writer, of threads that
  ** were sampled and are gone. */
  uint64_t process_ns, writer_cpu_ns, sampled_ns;
};
extern struct ljp_sysprof ljp_sysprof;

/* -- setup.c -------------------------------------------------------- */

/* Puts the unsampled time into the stream. */
void ljp_sysprof_tell_unsampled(void);
bool ljp_sysprof_handler_is_ours(int signal);
enum ljp_status ljp_sysprof_take_signal(struct ljp_failure *why);
/* Which timer, and with it which signal. */
enum ljp_status ljp_sysprof_choose_source(struct ljp_failure *why);
enum ljp_status ljp_sysprof_open(struct ljp_failure *why,
                                 void (*round)(void *ctx),
                                 void (*fork_child)(void *ctx, bool recording));

/* -- threads.c ------------------------------------------------------ */

/* Starts to sample a thread; errno or 0. */
int ljp_threads_add(pid_t tid, const char *name);
/* The same, unless it is sampled already or blocks the signal. */
void ljp_threads_meet(pid_t tid);
/* CPU time that sampled threads have used since they are. */
uint64_t ljp_threads_cpu(void);
/* Stops to sample it. */
void ljp_threads_drop(struct ljp_sampler *s);
void ljp_threads_drop_all(void);
/* Looks which threads there are, and drops those that have gone. */
void ljp_threads_scan(void);
/* Intervals by the share that the handler takes. */
void ljp_threads_pace(void);
/* Does this thread block the signal? */
bool ljp_threads_blocks(pid_t tid, int signal);
void ljp_threads_name(pid_t tid, char name[16]);
/* In a fork's child. was: the tid that its only thread had in the parent. */
void ljp_threads_after_fork(pid_t was, bool recording);
/* Adds the counts of all samplers in use. */
void ljp_threads_sum(struct ljp_sysprof_report *out);

#endif
