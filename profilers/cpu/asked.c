/*
** A signal that somebody else sends for a sample; see asked.h. Only the handler
** calls this; LJP_SIGSAFE throughout.
*/
#include "profilers/cpu/asked.h"

#include <stddef.h>
#include <sys/syscall.h>

LJP_SIGSAFE static long asked_tid(void)
{
  long ret = SYS_gettid;
  __asm__ volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
  return ret;
}

LJP_SIGSAFE struct ljp_sampler *ljp_asked_sampler(void)
{
  long tid = asked_tid();
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
