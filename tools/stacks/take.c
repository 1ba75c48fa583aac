/*
** Taking the stacks of a joined program. Threads that wait are left alone. One
** that runs is stopped by ptrace, its registers go to the helper, which reads its
** stack, and it goes on: some 0.1 ms as a rule, a second if the helper does not
** answer.
*/
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/join/lend.h"
#include "tools/join/visit_priv.h"
#include "tools/shared/command.h"
#include "tools/stacks/stacks.h"

enum { THREADS = 4096, BEGIN_MS = 15000, PLACE_MS = 1000, TELL_MS = 15000 };

/* In the order of enum ljp_reg. */
static void take_registers(uint64_t *out, const struct user_regs_struct *r)
{
  const uint64_t all[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
                          r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
                          r->r12, r->r13, r->r14, r->r15, r->rip};
  memcpy(out, all, sizeof all);
}

/* The thread is stopped. -1, or the exit code: the helper cannot be talked to
** any more. */
static int take_stopped(struct ljp_talk *talk, pid_t tid, pid_t ns_tid)
{
  struct ljp_join_message m = {.type = LJP_JOIN_PLACE,
                               .number = {(uint64_t)ns_tid}};
  struct user_regs_struct regs;
  struct iovec all = {&regs, sizeof regs};
  int error = 0;
  bool have = !ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all);
  enum ljp_heard heard = LJP_HEARD;
  if (have) {
    take_registers(&m.number[1], &regs);
    error = ljp_talk_send(talk, &m);
    if (!error)
      do
        heard = ljp_talk_hear(talk, PLACE_MS, -1);
      while (heard == LJP_HEARD && talk->message.serial != talk->serial);
  }
  ljp_stop_release(tid);
  if (error)
    return ljp_talk_ended(talk, LJP_HEARD_END);
  return heard == LJP_HEARD ? -1 : ljp_talk_ended(talk, heard);
}

/* -1, or the exit code. */
static int take_thread(struct ljp_talk *talk, pid_t tid)
{
  struct ljp_proc_status s;
  if (!ljp_proc_status(talk->pid, tid, &s) || s.state != 'R' ||
      strncmp(s.comm, "ljprof-", 7) == 0 ||
      ljp_stop_seize(tid) != LJP_STOP_GOOD)
    return -1;
  enum ljp_stop stop = ljp_stop_thread(tid);
  if (stop == LJP_STOP_GOOD)
    return take_stopped(talk, tid, s.ns_pid);
  if (stop == LJP_STOP_HALTED)
    ljp_stop_release(tid);
  return -1;
}

static int take_each(struct ljp_talk *talk)
{
  static pid_t tids[THREADS];
  sigset_t keys;
  int code = -1;
  unsigned count = talk->pid ? ljp_proc_threads(talk->pid, tids, THREADS) : 0;
  /* Ctrl-Z must not stop this process while it holds a thread. */
  sigemptyset(&keys);
  sigaddset(&keys, SIGTSTP);
  sigaddset(&keys, SIGTTIN);
  sigaddset(&keys, SIGTTOU);
  sigprocmask(SIG_BLOCK, &keys, NULL);
  for (unsigned i = 0; i < count && code < 0; i++)
    code = take_thread(talk, tids[i]);
  ljp_stop_settle();
  return code;
}

/* A child process does it: with its end the kernel releases every thread, even
** one that would have stopped only later. -1, or the exit code. */
static int take_threads(struct ljp_talk *talk)
{
  enum { DONE = 100 };
  int status = 0;
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = getppid() == parent ? take_each(talk) : LJP_EXIT_FAILED;
    _exit(code < 0 ? DONE : code);
  }
  if (child < 0) {
    ljp_command_error(talk->command, "no process for reading threads: %s",
                      strerror(errno));
    return LJP_EXIT_FAILED;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  talk->serial += THREADS; /* the child has used some */
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == DONE ? -1 : WEXITSTATUS(status);
  ljp_command_error(talk->command, "the process that reads threads was killed");
  return LJP_EXIT_FAILED;
}

int ljp_stacks_take(struct ljp_talk *talk, int fd, bool locals)
{
  struct ljp_join_message begin = {
      .type = LJP_JOIN_STACKS,
      .number = {locals ? LJP_JOIN_STACKS_LOCALS : 0},
      .fd = {fd},
      .fds = 1};
  struct ljp_join_message tell = {.type = LJP_JOIN_TELL};
  ljp_lend_proc(talk);
  ljp_talk_send(talk, &begin);
  int code = ljp_talk_answer(talk, LJP_JOIN_READY, BEGIN_MS);
  if (code < 0)
    code = take_threads(talk);
  if (code >= 0)
    return code;
  ljp_talk_send(talk, &tell);
  code = ljp_talk_answer(talk, LJP_JOIN_TOLD, TELL_MS);
  if (code < 0 && !talk->message.number[0])
    ljp_command_note(talk->command,
                     "%s: its threads are not known: it has no /proc of its "
                     "own, and this ljprof may not lend it one (try sudo)",
                     talk->name);
  return code;
}
