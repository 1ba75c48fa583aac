/*
** Sleep and wake on a 32-bit word. LJP_SIGSAFE on x86-64, where the system call
** does not go through libc: errno does not change, and no symbol is bound in a
** signal handler.
*/
#ifndef LJP_FUTEX_H
#define LJP_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/sigsafe.h"

static inline long ljp_futex_call(_Atomic uint32_t *word, int op, uint32_t val,
                                  const struct timespec *timeout)
{
#if defined(__x86_64__)
  long ret = SYS_futex;
  register const struct timespec *r10 __asm__("r10") = timeout;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"(word), "S"((long)op), "d"((unsigned long)val), "r"(r10)
                   : "rcx", "r11", "memory");
  return ret;
#else
  int saved = errno;
  long ret = syscall(SYS_futex, word, op, val, timeout, NULL, 0);
  if (ret < 0)
    ret = -errno;
  errno = saved;
  return ret;
#endif
}

static inline void ljp_futex_wake(_Atomic uint32_t *word)
{
  ljp_futex_call(word, FUTEX_WAKE_PRIVATE, 1, NULL);
}

/* Returns when woken, when *word != val, on a signal or after timeout_ns. */
static inline void ljp_futex_wait(_Atomic uint32_t *word, uint32_t val,
                                  uint64_t timeout_ns)
{
  struct timespec ts = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                        .tv_nsec = (long)(timeout_ns % 1000000000u)};
  ljp_futex_call(word, FUTEX_WAIT_PRIVATE, val, &ts);
}

#endif
