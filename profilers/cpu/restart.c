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

/* The 64-bit value at this distance above the interrupted rsp. */
LJP_SIGSAFE static bool restart_on_stack(const greg_t *gregs, uint64_t distance,
                                         uint64_t *value, bool safe)
{
  return restart_read(value, (uint64_t)gregs[REG_RSP] + distance, sizeof *value,
                      safe);
}

enum { CODE = 32 }; /* bytes that are looked at, before an address */

enum { RAX = 0, RSI = 6 }; /* as instructions number registers */

/* A register that functions and calls of the kernel leave as it is. */
LJP_SIGSAFE static bool restart_kept(const greg_t *gregs, uint32_t reg,
                                     uint64_t *number)
{
  static const uint8_t kept[16] = {
      [3] = REG_RBX,  [5] = REG_RBP,  [12] = REG_R12,
      [13] = REG_R13, [14] = REG_R14, [15] = REG_R15};
  if (!kept[reg])
    return false;
  *number = (uint32_t)gregs[kept[reg]];
  return true;
}

/* The value that `wanted` has got by the code before `end`: moves between
** registers, loads from the stack, and pushes. above: the bytes from the
** interrupted rsp to what was rsp at `end`. */
LJP_SIGSAFE static bool restart_moved(const uint8_t *code, int end,
                                      uint32_t wanted, uint64_t above,
                                      const greg_t *gregs, uint64_t *number,
                                      bool safe)
{
  enum { PUSH = 2, MOVE = 3, LOAD = 5 };
  for (int at = end; at >= LOAD;) {
    const uint8_t *load = code + at - LOAD, *move = code + at - MOVE;
    if ((load[0] & 0xfb) == 0x48 && load[1] == 0x8b &&
        (load[2] & 0xc7) == 0x44 && load[3] == 0x24) {
      if ((load[2] >> 3 & 7) + 2u * (load[0] & 4) == wanted)
        return restart_on_stack(gregs, load[4] + above, number, safe);
      at -= LOAD;
    } else if ((move[0] & 0xf8) == 0x48 && move[1] == 0x89 &&
               (move[2] & 0xc0) == 0xc0) {
      if ((move[2] & 7) + 8u * (move[0] & 1) == wanted)
        return restart_kept(gregs, (move[2] >> 3 & 7) + 2u * (move[0] & 4),
                            number);
      at -= MOVE;
    } else if (code[at - 2] == 0x41 && (code[at - 1] & 0xf8) == 0x50) {
      above += sizeof(uint64_t);
      at -= PUSH;
    } else {
      return false;
    }
  }
  return false;
}

/* glibc from 2.41 on, and musl, make waiting calls in one function, which gets
** the number as its second argument and loses it. code: the end of that
** function, up to the call. The caller has loaded the argument shortly before it
** called: glibc from its own stack arguments, musl from a register. */
LJP_SIGSAFE static bool restart_number_41(const uint8_t *code,
                                          const greg_t *gregs, uint64_t *number,
                                          bool safe)
{
  /* r11 = rdi, rax = rsi, rdi = rdx, rsi = rcx, rdx = r8, r10 = r9,
  ** r8 = rsp[1], r9 = rsp[2], rsp[1] = r11, syscall */
  static const uint8_t body[CODE + 3] = {
      0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, 0x48, 0x89, 0xce,
      0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca, 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c,
      0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05};
  enum { CALL = 5 };
  uint64_t back;
  uint8_t before[CODE] = {0};
  return memcmp(code, body + sizeof body - CODE, CODE) == 0 &&
         restart_on_stack(gregs, 0, &back, safe) &&
         restart_read(before, back - CODE, CODE, safe) &&
         before[CODE - CALL] == 0xe8 &&
         restart_moved(before, CODE - CALL, RSI, sizeof back, gregs, number,
                       safe);
}

/* Reads the code before rip. False: no call ends there. */
LJP_SIGSAFE static bool restart_code(const greg_t *gregs, uint8_t code[CODE],
                                     bool safe)
{
  return restart_read(code, (uint64_t)gregs[REG_RIP] - CODE, CODE, safe) &&
         code[CODE - 2] == 0x0f && code[CODE - 1] == 0x05;
}

/* The number of the call that ends at rip. The kernel has put the result into
** rax, but the code says where the number came from: mov eax, number (or
** another register, which is unchanged), perhaps with a load of edi from the
** stack behind it; or mov rax, [rsp + distance]; or moves of the arguments
** stand behind it, too. False: the code is different. */
LJP_SIGSAFE static bool restart_number(const uint8_t *code, const greg_t *gregs,
                                       uint64_t *number, bool safe)
{
  static const uint8_t low[8] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX,
                                 REG_RSP, REG_RBP, REG_RSI, REG_RDI};
  enum { CALL = CODE - 2, LOAD = CALL - 4 };
  uint32_t value, at = CALL;
  if (code[LOAD] == 0x8b && code[LOAD + 1] == 0x7c && code[LOAD + 2] == 0x24)
    at = LOAD;
  if (code[at - 5] == 0xb8) {
    memcpy(&value, code + at - 4, sizeof value);
    *number = value;
    return true;
  }
  if (code[CALL - 5] == 0x48 && code[CALL - 4] == 0x8b &&
      code[CALL - 3] == 0x44 && code[CALL - 2] == 0x24)
    return restart_on_stack(gregs, code[CALL - 1], number, safe);
  /* mov eax, register */
  uint32_t modrm = code[at - 1], reg = modrm >> 3 & 7;
  bool high = code[at - 3] == 0x44;
  if (code[at - 2] != 0x89 || (modrm & 0xc7) != 0xc0)
    return restart_moved(code, CALL, RAX, 0, gregs, number, safe) ||
           restart_number_41(code, gregs, number, safe);
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

/* Only signals that are sent count: those that instructions raise interrupt no
** call; 32 and 33 are glibc's own. */
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
                action.handler != (uintptr_t)SIG_IGN))
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
  uint8_t code[CODE] = {0};
  if (LJP_LIKELY(gregs[REG_RAX] != -EINTR))
    return true;
  bool safe = ljp_saferead_enter(&uc->uc_sigmask);
  if (!restart_code(gregs, code, safe))
    return safe;
  if (!restart_number(code, gregs, &call, safe) || !ljp_call_waits((long)call))
    return false;
  if (restart_signal_pending(uc, number))
    return true; /* the call ends for that one */
  if (ljp_restart_obstacle(restart_blocked(uc, call), number))
    return false;
  gregs[REG_RAX] = (greg_t)call;
  gregs[REG_RIP] -= 2;
  return true;
}
