/*
** What the kernel knows about a thread of this process: /proc/self/task, and
** the clock of its CPU time. From ordinary code of any thread.
*/
#ifndef LJP_PROC_TASK_H
#define LJP_PROC_TASK_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* "": the thread has ended. */
void ljp_task_name(pid_t tid, char name[16]);
bool ljp_task_exists(pid_t tid);
/* Does the thread block this signal, or take it by sigwait()? True also if nobody
** can tell. */
bool ljp_task_blocks(pid_t tid, int signal);

/* The kernel's number of the clock of a thread's CPU time. */
static inline clockid_t ljp_task_cpu_clock(pid_t tid)
{
  return (clockid_t)(~(unsigned)tid << 3 | 6u);
}

#endif
