/*
** Stops one thread by ptrace, without losing a signal that comes meanwhile; see
** visit_priv.h. A traced thread stops for each signal that it gets. So while this
** file waits for one thread, it lets all others that have stopped go on.
*/
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/join/visit_priv.h"

enum { PATIENCE_NS = 100000000, LOOK_US = 20, LATE = 64 };

/* Threads that have not stopped in time, and will. More are not followed. */
static pid_t stop_late[LATE];

uint64_t ljp_visit_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum ljp_stop ljp_stop_seize(pid_t tid)
{
  if (!ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)(PTRACE_O_TRACEEXEC)))
    return LJP_STOP_GOOD;
  return errno == ESRCH ? LJP_STOP_GONE : LJP_STOP_REFUSED;
}

static bool stop_is_halt(int signal)
{
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
         signal == SIGTTOU;
}

bool ljp_stop_has_signal(pid_t tid)
{
  struct ljp_proc_status status;
  return !ljp_proc_status(tid, 0, &status) ||
         (status.pending & ~status.blocked);
}

/* The kernel does not begin again each wait that a stop has ended. */
static void stop_wait_again(pid_t tid)
{
  struct user_regs_struct regs;
  struct iovec all = {&regs, sizeof regs};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all) ||
      (int64_t)regs.rax != -EINTR || !ljp_moment_interrupted(&regs) ||
      ljp_stop_has_signal(tid))
    return;
  ljp_frame_restart(&regs);
  regs.orig_rax = UINT64_MAX;
  ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &all);
}

void ljp_stop_release(pid_t tid)
{
  stop_wait_again(tid);
  ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

void ljp_stop_resume(pid_t tid)
{
  stop_wait_again(tid);
  ptrace(PTRACE_CONT, tid, NULL, NULL);
}

static void stop_note_late(pid_t tid, bool late)
{
  int free = -1;
  for (int i = 0; i < LATE; i++) {
    if (stop_late[i] == tid)
      stop_late[i] = 0;
    if (!stop_late[i])
      free = i;
  }
  if (late && free >= 0)
    stop_late[free] = tid;
}

/* A thread that nobody waits for has stopped, or ended. */
static void stop_let_go(pid_t tid, int status)
{
  int event = status >> 16, signal = WSTOPSIG(status);
  if (!WIFSTOPPED(status) || event)
    stop_note_late(tid, false);
  if (!WIFSTOPPED(status))
    return;
  if (event == PTRACE_EVENT_STOP && stop_is_halt(signal))
    ptrace(PTRACE_LISTEN, tid, NULL, NULL);
  else if (event == PTRACE_EVENT_EXEC)
    ptrace(PTRACE_DETACH, tid, NULL, NULL);
  else if (event)
    ljp_stop_resume(tid);
  else
    ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)signal);
}

void ljp_stop_serve(void)
{
  int status;
  pid_t tid;
  while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
    stop_let_go(tid, status);
}

enum ljp_stop ljp_stop_thread(pid_t tid)
{
  int status;
  uint64_t until = ljp_visit_now() + PATIENCE_NS;
  if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
    return LJP_STOP_GONE;
  for (;;) {
    pid_t got = waitpid(-1, &status, __WALL | WNOHANG);
    if (got < 0 || (got == tid && !WIFSTOPPED(status)))
      return LJP_STOP_GONE;
    if (got > 0 && got != tid) {
      stop_let_go(got, status);
      continue;
    }
    if (got == tid) {
      int event = status >> 16, signal = WSTOPSIG(status);
      if (event == PTRACE_EVENT_STOP) {
        stop_note_late(tid, false);
        return stop_is_halt(signal) ? LJP_STOP_HALTED : LJP_STOP_GOOD;
      }
      if (event == PTRACE_EVENT_EXEC) {
        stop_let_go(tid, status);
        return LJP_STOP_GONE;
      }
      /* A signal was on its way: the thread gets it, and stops afterwards. */
      ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)(event ? 0 : signal));
      continue;
    }
    if (ljp_visit_now() > until) {
      stop_note_late(tid, true);
      return LJP_STOP_LATE;
    }
    usleep(LOOK_US);
  }
}

void ljp_stop_settle(void)
{
  enum { SETTLE_NS = 1000000000 };
  uint64_t until = ljp_visit_now() + SETTLE_NS;
  bool late;
  do {
    late = false;
    ljp_stop_serve();
    for (int i = 0; i < LATE; i++)
      late |= stop_late[i] != 0;
    if (late)
      usleep(LOOK_US);
  } while (late && ljp_visit_now() < until);
}
