/*
** See restart.h. LJP_SIGSAFE throughout.
**
** perf's signal is raised while a thread uses the CPU, but the thread may be in
** the kernel by then, about to wait: the wait would end before it began. The
** kernel restarts some calls by itself, but never these, whatever the handler's
** flags. The call has hardly waited, so it is made again with its arguments,
** which the kernel has left in the registers. (Where the kernel writes back the
** time that is left, the call uses that time.)
**
** Is EINTR ours? The kernel delivers signals in ascending order, and our
** handler blocks all others. If another signal was delivered before ours, the
** handler's context is the beginning of that signal's handler, not the call. If
** another signal is to be delivered after ours, it is pending now: then the
** call is left alone. A signal that arrives even later arrives before the new
** call, as it might without a profiler. One case is left: our signal may be
** raised in the rt_sigreturn of a handler of the host, which returns to the
** same context. A program may rely on that EINTR. So no call is made again if
** the program has a handler for signals that are sent (except SIGINT, which the
** command luajit handles).
*/
#include "profilers/cpu/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "src/base/saferead.h"

/* Calls that wait, and that may be made again after they were interrupted. */
LJP_SIGSAFE static bool restart_waits(uint64_t call)
{
  switch (call) {
  case SYS_poll:
  case SYS_ppoll:
  case SYS_select:
  case SYS_pselect6:
  case SYS_epoll_wait:
  case SYS_epoll_pwait:
  case 441: /* epoll_pwait2, which older headers lack */
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
  case SYS_futex:
  case SYS_pause:
  case SYS_rt_sigsuspend:
  case SYS_rt_sigtimedwait:
  case SYS_semop:
  case SYS_semtimedop:
  case SYS_msgrcv:
  case SYS_msgsnd:
  case SYS_mq_timedreceive:
  case SYS_mq_timedsend:
  case SYS_io_getevents:
  case SYS_recvfrom:
  case SYS_recvmsg:
  case SYS_recvmmsg:
  case SYS_sendto:
  case SYS_sendmsg:
  case SYS_accept:
  case SYS_accept4:
  case SYS_read:
  case SYS_readv:
    return true;
  default:
    return false;
  }
}

/* The number of the call that ends at rip. The kernel has put the result into
** rax, but the code says where the number came from: mov eax, number (or
** another register, which is unchanged), perhaps with a load of edi from the
** stack behind it. False: the code is different. */
LJP_SIGSAFE static bool restart_number(const greg_t *gregs, uint64_t *number)
{
  static const uint8_t low[8] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX,
                                 REG_RSP, REG_RBP, REG_RSI, REG_RDI};
  enum { BYTES = 11, CALL = 9, LOAD = 5 };
  uint8_t code[BYTES];
  uint32_t value, at = CALL;
  uint64_t rip = (uint64_t)gregs[REG_RIP];
  if (ljp_safe_copy(code, (const void *)(uintptr_t)(rip - BYTES), BYTES) !=
          BYTES ||
      code[CALL] != 0x0f || code[CALL + 1] != 0x05)
    return false;
  if (code[LOAD] == 0x8b && code[LOAD + 1] == 0x7c && code[LOAD + 2] == 0x24)
    at = LOAD;
  if (code[at - 5] == 0xb8) {
    memcpy(&value, code + at - 4, sizeof value);
    *number = value;
    return true;
  }
  /* mov eax, register */
  uint32_t modrm = code[at - 1], reg = modrm >> 3 & 7;
  bool high = code[at - 3] == 0x44;
  if (code[at - 2] != 0x89 || (modrm & 0xc7) != 0xc0)
    return false;
  /* The kernel's call changes rcx and r11. */
  if (high ? reg == 3 : reg == 0 || reg == 1)
    return false;
  *number = (uint32_t)gregs[high ? REG_R8 + (int)reg : low[reg]];
  return true;
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

/* Does the program handle a signal that is sent, other than ours? Signals that
** instructions raise interrupt no call; 32 and 33 are glibc's own. */
LJP_SIGSAFE static bool restart_host_handles(int number)
{
  enum { SIGNALS = 64, CANCEL = 32, SETXID = 33 };
  struct {
    uintptr_t handler;
    uint64_t flags, restorer, mask;
  } action;
  for (int i = 1; i <= SIGNALS; i++) {
    if (i == number || i == SIGINT || i == SIGSEGV || i == SIGBUS ||
        i == SIGILL || i == SIGFPE || i == SIGTRAP || i == SIGSYS ||
        i == SIGKILL || i == SIGSTOP || i == CANCEL || i == SETXID)
      continue;
    long ret = SYS_rt_sigaction;
    register long r10 __asm__("r10") = sizeof action.mask;
    __asm__ volatile("syscall"
                     : "+a"(ret)
                     : "D"((long)i), "S"(0L), "d"(&action), "r"(r10)
                     : "rcx", "r11", "memory");
    if (ret || (action.handler != (uintptr_t)SIG_DFL &&
                action.handler != (uintptr_t)SIG_IGN))
      return true;
  }
  return false;
}

void ljp_restart_call(void *context, int number)
{
  ucontext_t *uc = context;
  greg_t *gregs = uc->uc_mcontext.gregs;
  uint64_t call;
  if (LJP_LIKELY(gregs[REG_RAX] != -EINTR) ||
      !ljp_saferead_enter(&uc->uc_sigmask) || !restart_number(gregs, &call) ||
      !restart_waits(call) || restart_signal_pending(uc, number) ||
      restart_host_handles(number))
    return;
  gregs[REG_RAX] = (greg_t)call;
  gregs[REG_RIP] -= 2;
}
