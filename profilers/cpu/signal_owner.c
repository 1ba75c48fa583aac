/*
** Whose sampler a signal is for; see signal_owner.h. Only the handler calls this;
** LJP_SIGSAFE throughout.
**
** Somebody else's signal is SIGPROF, in sessions of the C interface. Tarantool's
** profiler takes its samples at SIGPROF, and programs written for it send SIGPROF
** themselves. Without a handler it would end them.
*/
#include "profilers/cpu/signal_owner.h"

#include <stddef.h>
#include <sys/syscall.h>

LJP_SIGSAFE static long owner_tid(void)
{
  long ret = SYS_gettid;
  __asm__ volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
  return ret;
}

LJP_SIGSAFE static struct ljp_sampler *owner_asked(void)
{
  long tid = owner_tid();
  for (uint32_t i = 0; i < LJP_SAMPLERS; i++) {
    struct ljp_sampler *s =
        atomic_load_explicit(&ljp_samplers[i], memory_order_acquire);
    if (!s)
      break;
    if (s->tid != tid || !atomic_load(&s->active))
      continue;
    if (!atomic_load(&s->inside)) {
      /* As after a long gap: the sample stands for the CPU time since the one
      ** before, which only the clock knows. */
      atomic_store_explicit(&s->resync, true, memory_order_relaxed);
      s->clock_ns = 0;
    }
    return s;
  }
  return NULL;
}

/* Which sampler the signal names. */
LJP_SIGSAFE static struct ljp_sampler *owner_named(const siginfo_t *info)
{
  if (info->si_code == SI_TIMER) {
    uintptr_t at = (uintptr_t)info->si_value.sival_ptr;
    uintptr_t first = (uintptr_t)&ljp_samplers[0];
    if (at - first < sizeof ljp_samplers &&
        (at - first) % sizeof ljp_samplers[0] == 0)
      /* Acquire: the sampler was set up before its entry. */
      return atomic_load_explicit(
          &ljp_samplers[(at - first) / sizeof ljp_samplers[0]],
          memory_order_acquire);
    return NULL;
  }
  if (info->si_code >= POLL_IN && info->si_code <= POLL_HUP) {
    int fd = info->si_fd;
    if (fd < 0 || fd >= LJP_SAMPLER_FDS)
      return NULL;
    unsigned index =
        atomic_load_explicit(&ljp_sampler_of_fd[fd], memory_order_acquire);
    return index ? atomic_load_explicit(&ljp_samplers[index - 1],
                                        memory_order_acquire)
                 : NULL;
  }
  return NULL;
}

struct ljp_sampler *ljp_signal_owner(const siginfo_t *info)
{
  uintptr_t self;
  if (LJP_UNLIKELY(info->si_signo == ljp_sampler_shared.asked))
    return owner_asked();
  struct ljp_sampler *s = owner_named(info);
  if (LJP_UNLIKELY(!s))
    return NULL;
  /* The thread's pointer is its identity that costs no system call. */
  __asm__("movq %%fs:0, %0" : "=r"(self));
  if (LJP_LIKELY(atomic_load_explicit(&s->self, memory_order_relaxed) == self))
    return s;
  if (owner_tid() != s->tid)
    return NULL;
  atomic_store_explicit(&s->self, self, memory_order_relaxed);
  return s;
}
