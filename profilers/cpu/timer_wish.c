/*
** See timer_wish.h.
*/
#include "profilers/cpu/timer_wish.h"

#include <sys/syscall.h>
#include <time.h>

/* The handler shares no code with libc, whose calls set errno. */
LJP_SIGSAFE static long wish_call(long number, long first, long second,
                                  const void *third)
{
  long ret = number;
  register long r10 __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "+a"(ret)
                   : "D"(first), "S"(second), "d"(third), "r"(r10)
                   : "rcx", "r11", "memory");
  return ret;
}

LJP_SIGSAFE static void wish_set(int timer, uint64_t period_ns)
{
  struct timespec period = {.tv_sec = (time_t)(period_ns / 1000000000u),
                            .tv_nsec = (long)(period_ns % 1000000000u)};
  const struct itimerspec spec = {.it_interval = period, .it_value = period};
  wish_call(SYS_timer_settime, timer, 0, &spec);
}

void ljp_timer_grant(struct ljp_sampler *s)
{
  uint32_t wish = atomic_load(&s->wish);
  /* A late signal may come to a thread whose sampler now belongs to another. */
  if (wish_call(SYS_gettid, 0, 0, NULL) != s->tid ||
      (wish != LJP_WISH_PARK && wish != LJP_WISH_DELETE) ||
      !atomic_compare_exchange_strong(&s->wish, &wish, LJP_WISH_BUSY))
    return;
  for (int i = 0; i < 2; i++)
    if (wish == LJP_WISH_DELETE)
      wish_call(SYS_timer_delete, s->timer[i], 0, NULL);
    else
      wish_set(s->timer[i], 0);
  if (wish == LJP_WISH_PARK) {
    /* Before the first signal: with this flag set, it reads the CPU clock. */
    atomic_store(&s->parked, true);
    wish_set(s->park, s->park_ns);
  }
  atomic_store(&s->wish,
               wish == LJP_WISH_DELETE ? LJP_WISH_DONE : LJP_WISH_NONE);
}

uint32_t ljp_timer_wish(struct ljp_sampler *s, enum ljp_timer_wish wish)
{
  uint32_t before = atomic_load(&s->wish);
  while (before != LJP_WISH_BUSY && before != LJP_WISH_DONE)
    if (atomic_compare_exchange_weak(&s->wish, &before, wish))
      return before;
  return LJP_WISH_BUSY;
}

bool ljp_timer_unwish(struct ljp_sampler *s, enum ljp_timer_wish wish)
{
  uint32_t before = wish;
  return atomic_compare_exchange_strong(&s->wish, &before, LJP_WISH_NONE);
}
