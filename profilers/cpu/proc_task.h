/*
** What the kernel knows about a thread of this process: /proc/self/task, and
** the clock of its CPU time. From ordinary code of any thread.
*/
#ifndef LJP_PROC_TASK_H
#define LJP_PROC_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The number of threads, which takes no descriptor. 0: not known. */
uint32_t ljp_task_count(void);
/* Calls each() for each thread. Returns their number; 0: the list cannot be
** read, or is not that of this process. */
uint32_t ljp_task_each(void (*each)(pid_t tid, void *ctx), void *ctx);

/* "": the thread has ended. */
void ljp_task_name(pid_t tid, char name[16]);

/* Does a filter (seccomp) look at the system calls of this thread? */
bool ljp_task_is_filtered(void);

enum ljp_task_mask {
  LJP_TASK_UNKNOWN, /* not yet, or for ever: the files cannot be read */
  LJP_TASK_TAKES,
  LJP_TASK_BLOCKS /* or takes it by sigwait() */
};

/* An earlier look at a thread; all zero before the first. */
struct ljp_task_look {
  uint64_t switches, cpu_ns;
};

/* Does the thread take this signal? Looks that many times if necessary, with
** short pauses. *last: from the last call, and for the next. */
enum ljp_task_mask ljp_task_mask(pid_t tid, int signal, int looks,
                                 struct ljp_task_look *last);

/* What a thread does with a signal that has been sent to it, or is now. */
enum ljp_task_answer {
  LJP_TASK_SOON,  /* takes it when it runs */
  LJP_TASK_ASKED, /* the same, and a signal is on its way to it */
  LJP_TASK_NEVER  /* blocks it, has ended, or is in a sandbox, where a handler
                  ** may make no call; or nobody knows */
};
enum ljp_task_answer ljp_task_answer(pid_t tid, int signal);

/* The kernel's number of the clock of a thread's CPU time. */
static inline clockid_t ljp_task_cpu_clock(pid_t tid)
{
  return (clockid_t)(~(unsigned)tid << 3 | 6u);
}

#endif
