/*
** The handler's side of the trap source: whose SIGTRAP it is, and what becomes
** of one that is nobody's. LJP_SIGSAFE throughout; the life cycle is
** timer_perf.c's.
*/
#include "profilers/cpu/timer.h"

#include <string.h>
#include <sys/syscall.h>

/* Headers of C libraries may not know this part of siginfo_t. */
enum { TRAP_PERF_CODE = 6, TRAP_PERF_DATA_AT = 24 };

const void *ljp_timer_trap_value(const siginfo_t *info)
{
  const void *value = NULL;
  if (info->si_signo == SIGTRAP && info->si_code == TRAP_PERF_CODE)
    memcpy(&value, (const char *)info + TRAP_PERF_DATA_AT, sizeof value);
  return value;
}

LJP_SIGSAFE static long call(long number, long a, long b, long c, long d)
{
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return number;
}

void ljp_timer_trap_default(const siginfo_t *info)
{
  /* As the kernel has it: handler, flags, restorer, mask. */
  static const uint64_t plain[4] = {0, 0, 0, 0};
  call(SYS_rt_sigaction, SIGTRAP, (long)plain, 0, 8);
  /* Blocked until the handler returns, to where the trap was. */
  call(SYS_rt_tgsigqueueinfo, call(SYS_getpid, 0, 0, 0, 0),
       call(SYS_gettid, 0, 0, 0, 0), SIGTRAP, (long)info);
}
