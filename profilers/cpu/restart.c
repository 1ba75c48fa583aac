/*
** See restart.h. LJP_SIGSAFE throughout.
**
** perf's signal is raised while a thread uses the CPU, but the thread may be in
** the kernel by then, about to wait: the wait would end before it began. The
** timers of posix expire in a thread that waits, too. The kernel restarts some
** calls by itself, but never these, whatever the handler's flags. The call is
** made again with its arguments, which the kernel has left in the registers.
** (Where the kernel writes back the time that is left, the call uses that
** time. Other calls wait longer by what they have waited so far: with perf
** hardly at all, with posix at most since the last signal to the thread.)
**
** Is EINTR ours? The kernel delivers signals in ascending order, and our
** handler blocks all others. If another signal was delivered before ours, the
** handler's context is the beginning of that signal's handler, not the call. If
** another signal is to be delivered after ours, it is pending now: then the
** call is left alone. A signal that arrives even later arrives before the new
** call, as it might without a profiler. One case is left: our signal may be
** raised in the rt_sigreturn of a handler of the host, which returns to the
** same context. A program may rely on that EINTR. So no call is made again in a
** thread that takes a signal for which the program has a handler (except
** SIGINT, which the command luajit handles). Calls that change the mask while
** they wait need a program without any handler.
**
** A signal that the kernel drops on its way ends a wait, too; see timer_wish.h.
*/
#include "profilers/cpu/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "profilers/cpu/sampler.h"
#include "src/base/call_number.h"
#include "src/base/saferead.h"
#include "src/base/waits.h"

/* A signal may be handled after its session, when no handler of ours catches
** faults any more (not `safe`). Then the kernel copies. */
LJP_SIGSAFE static bool restart_read(void *out, uint64_t at, size_t bytes,
                                     bool safe)
{
  struct iovec to = {.iov_base = out, .iov_len = bytes};
  struct iovec from = {.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
  long ret = SYS_getpid;
  if (safe)
    return ljp_safe_copy(out, (const void *)(uintptr_t)at, bytes) == bytes;
  __asm__ volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
  const long pid = ret;
  register void *r10 __asm__("r10") = &from;
  register long r8 __asm__("r8") = 1;
  register long r9 __asm__("r9") = 0;
  ret = SYS_process_vm_readv;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"(pid), "S"(&to), "d"(1L), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return ret == (long)bytes;
}

/* For ljp_call_number(). */
LJP_SIGSAFE static bool restart_read_for(const void *safe, void *out,
                                         uint64_t at, size_t bytes)
{
  return restart_read(out, at, bytes, *(const bool *)safe);
}

LJP_SIGSAFE static void restart_place(struct ljp_call_place *p,
                                      const greg_t *gregs, const bool *safe)
{
  static const uint8_t order[16] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  for (int i = 0; i < 16; i++)
    p->reg[i] = (uint64_t)gregs[order[i]];
  p->rip = (uint64_t)gregs[REG_RIP];
  p->read = restart_read_for;
  p->ctx = safe;
}

/* Is a signal pending that the interrupted code does not block? */
LJP_SIGSAFE static bool restart_signal_pending(const ucontext_t *uc, int number)
{
  uint64_t pending = 0, blocked;
  long ret = SYS_rt_sigpending;
  memcpy(&blocked, &uc->uc_sigmask, sizeof blocked);
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"(&pending), "S"(sizeof pending)
                   : "rcx", "r11", "memory");
  return ret || (pending & ~blocked & ~(UINT64_C(1) << (number - 1)));
}

/* Only signals that are sent count: those that instructions raise interrupt no
** call; 32 and 33 are glibc's own. Our handler stays where an earlier session with
** another signal has set it. */
int ljp_restart_obstacle(unsigned long blocked, int number)
{
  enum { SIGNALS = 64, CANCEL = 32, SETXID = 33 };
  struct {
    uintptr_t handler;
    uint64_t flags, restorer, mask;
  } action;
  for (int i = 1; i <= SIGNALS; i++) {
    if (i == number || i == SIGINT || i == SIGSEGV || i == SIGBUS ||
        i == SIGILL || i == SIGFPE || i == SIGTRAP || i == SIGSYS ||
        i == SIGKILL || i == SIGSTOP || i == CANCEL || i == SETXID ||
        (blocked >> (i - 1) & 1))
      continue;
    long ret = SYS_rt_sigaction;
    register long r10 __asm__("r10") = sizeof action.mask;
    __asm__ volatile("syscall"
                     : "+a"(ret)
                     : "D"((long)i), "S"(0L), "d"(&action), "r"(r10)
                     : "rcx", "r11", "memory");
    if (ret || (action.handler != (uintptr_t)SIG_DFL &&
                action.handler != (uintptr_t)SIG_IGN &&
                action.handler != (uintptr_t)ljp_sampler_signal))
      return i;
  }
  return 0;
}

/* The signals that the thread does not take while it is in the call. */
LJP_SIGSAFE static unsigned long restart_blocked(const ucontext_t *uc,
                                                 uint64_t call)
{
  unsigned long blocked;
  switch (call) {
  case SYS_ppoll:
  case SYS_pselect6:
  case SYS_epoll_pwait:
  case 441:
  case 333:
  case 426:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigtimedwait:
    return 0;
  }
  memcpy(&blocked, &uc->uc_sigmask, sizeof blocked);
  return blocked;
}

bool ljp_restart_call(void *context, int number)
{
  ucontext_t *uc = context;
  greg_t *gregs = uc->uc_mcontext.gregs;
  uint64_t call;
  struct ljp_call_place place;
  uint8_t code[LJP_CALL_CODE] = {0};
  if (LJP_LIKELY(gregs[REG_RAX] != -EINTR))
    return true;
  bool safe = ljp_saferead_enter(&uc->uc_sigmask);
  restart_place(&place, gregs, &safe);
  if (!ljp_call_code(&place, code))
    return safe;
  if (!ljp_call_number(&place, code, &call) || !ljp_call_waits((long)call))
    return false;
  if (restart_signal_pending(uc, number))
    return true; /* the call ends for that one */
  if (ljp_restart_obstacle(restart_blocked(uc, call), number))
    return false;
  gregs[REG_RAX] = (greg_t)call;
  gregs[REG_RIP] -= 2;
  return true;
}
