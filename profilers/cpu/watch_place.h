/*
** Where a thread of this process waits: what the kernel says, and the stack
** from there. For the watcher (watch.h).
*/
#ifndef LJP_WATCH_PLACE_H
#define LJP_WATCH_PLACE_H

#include "profilers/cpu/sampler.h"

/* /proc/self/task/TID/syscall of a thread. */
enum ljp_task_state {
  LJP_TASK_RUNS,      /* or is ready to run */
  LJP_TASK_WAITS,     /* regs are set */
  LJP_TASK_UNREADABLE /* the file may not be read, or does not exist */
};

/* Asks where a thread is. regs: its program counter, its stack pointer and, in
** a system call, the arguments; no other register is known. */
enum ljp_task_state ljp_task_place(pid_t tid, struct ljp_regs *regs);

/* From /proc/self/task/TID/schedstat. */
struct ljp_task_turns {
  uint64_t queued_ns; /* time for which it was ready and did not run */
  uint64_t turns;     /* how often it got a CPU */
};
/* False: the kernel does not say. */
bool ljp_task_turns(pid_t tid, struct ljp_task_turns *turns);

/* How often the thread has given its CPU up in order to wait, from
** /proc/self/task/TID/status. False: the kernel does not say. */
bool ljp_task_waits(pid_t tid, uint64_t *waits);

/* The stack of a place. */
struct ljp_watch_place {
  uint64_t generation; /* of the guest's prototypes when it was walked */
  uint32_t vm;         /* number of the VM, or 0 */
  uint32_t labels;     /* of the innermost Lua thread, or 0 */
  uint32_t count;
  enum ljp_cut cut;
  uint64_t frames[LJP_STACK_MAX_FRAMES];
};

/* Walks from there. False: not now, because the unwind tables are being
** replaced. */
bool ljp_watch_walk(const struct ljp_regs *from, struct ljp_watch_place *place);

#endif
