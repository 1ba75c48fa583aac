/*
** The SIGTRAP of the trap source, in the handler: whether a SIGTRAP is ours,
** and what happens to one that nobody handles. LJP_SIGSAFE throughout; see
** timer.h.
*/
#include <string.h>
#include <sys/syscall.h>

#include "profilers/cpu/timer.h"

/* Headers of C libraries may lack this part of siginfo_t. */
enum { TRAP_PERF_CODE = 6, TRAP_PERF_DATA_AT = 24 };

const void *ljp_sigtrap_value(const siginfo_t *info)
{
  const void *value = NULL;
  if (info->si_signo == SIGTRAP && info->si_code == TRAP_PERF_CODE)
    memcpy(&value, (const char *)info + TRAP_PERF_DATA_AT, sizeof value);
  return value;
}

LJP_SIGSAFE static long sigtrap_call(long number, long a, long b, long c,
                                     long d)
{
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return number;
}

void ljp_sigtrap_default(const siginfo_t *info)
{
  /* The kernel's struct sigaction: handler, flags, restorer, mask. */
  static const uint64_t plain[4] = {0, 0, 0, 0};
  sigtrap_call(SYS_rt_sigaction, SIGTRAP, (long)plain, 0, 8);
  /* The signal stays blocked until the handler returns to the place of the
  ** trap. */
  sigtrap_call(SYS_rt_tgsigqueueinfo, sigtrap_call(SYS_getpid, 0, 0, 0, 0),
               sigtrap_call(SYS_gettid, 0, 0, 0, 0), SIGTRAP, (long)info);
}
