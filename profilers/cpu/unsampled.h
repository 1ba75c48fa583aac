/*
** Time that no sample stands for: it is written to the stream by thread and
** reason. Also the list of the threads that are known but not sampled. Called
** under the lock of the CPU profiler.
**
** The time is CPU time, or elapsed time in a session with event = "wall". The
** process's CPU time is the time that is written here, plus the time of the
** samples, plus the rest (that of threads that were never seen).
*/
#ifndef LJP_UNSAMPLED_H
#define LJP_UNSAMPLED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profilers/cpu/proc_task.h"
#include "src/base/format.h"

/* A thread that is not sampled. */
struct ljp_unsampled_thread {
  pid_t tid;
  uint32_t thread; /* id in the session; 0: it has none yet */
  enum ljp_unsampled why;
  uint64_t told_ns; /* its clock, up to which the stream knows */
  uint64_t life_ns; /* since when a session of elapsed time knows it */
  struct ljp_task_look look;
  uint64_t met_cpu_ns; /* CPU time when it was last looked at */
  char name[16];
};

struct ljp_unsampled_threads {
  struct ljp_unsampled_thread *list;
  uint32_t count, room;
  uint64_t told_ns; /* of all threads while they were not sampled */
  uint64_t rest_ns; /* of threads that nobody has ever seen */
};

/* Forgets all threads: a new session begins, or a child of a fork. */
void ljp_unsampled_begin(void);

/* The thread's clock: of its CPU time, or of elapsed time. 0: it has ended. */
uint64_t ljp_unsampled_clock(pid_t tid);

/* Tells the stream. thread: its id in the session, or 0. */
void ljp_unsampled_tell(uint32_t thread, enum ljp_unsampled why, uint64_t ns);

/* Reports the elapsed time of a thread that has ended, or whose time is not
** reported any more. */
void ljp_unsampled_elapsed(uint32_t thread, uint64_t life_ns, uint64_t end_ns);

/* The thread is not sampled now. thread: its id in the session, or 0. from_ns:
** the clock up to which the stream knows about a thread that is new here. */
void ljp_unsampled_see(pid_t tid, const char *name, uint32_t thread,
                       enum ljp_unsampled why, uint64_t from_ns);

/* The thread, or NULL. Valid until the next call of another function. */
struct ljp_unsampled_thread *ljp_unsampled_find(pid_t tid);

/* Is a thread as it was when it was last looked at, since it is ours, or blocks
** the signal and has not run? Then this takes the place of ljp_unsampled_see().
** cpu_ns: its CPU time. */
bool ljp_unsampled_again(struct ljp_unsampled_thread *t, uint64_t cpu_ns);

/* How many of the threads have not ended. */
uint32_t ljp_unsampled_living(void);

/* From now on the thread is sampled. False: it was not known. *was: what was
** known about it; the stream knows its time up to was->told_ns. */
bool ljp_unsampled_leave(pid_t tid, struct ljp_unsampled_thread *was);

/* Forgets the threads that have ended. */
void ljp_unsampled_forget_ended(void);
/* The session ends: tells what has not been told yet. */
void ljp_unsampled_finish(void);

/* Tells of threads that nobody has ever seen. process_ns: CPU time that the
** process had used before the threads were looked at. */
void ljp_unsampled_rest(uint64_t process_ns, bool finish);

#endif
