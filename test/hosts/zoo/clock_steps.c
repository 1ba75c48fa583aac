/*
** A host whose clock is set while it runs: the time of day jumps by hours,
** there and back. The program's own clock functions take the place of libc's,
** as those of libfaketime do, and play the part of an administrator.
*/
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static _Atomic unsigned calls;

static time_t offset(void)
{
  static const time_t steps[] = {0, 7200, -7200, 10, -10};
  return steps[atomic_fetch_add(&calls, 1) % 5];
}

ZOO_PUBLIC int clock_gettime(clockid_t clock, struct timespec *now)
{
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += offset();
  return failed;
}

ZOO_PUBLIC int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
  struct timespec t;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &t);
  now->tv_sec = t.tv_sec;
  now->tv_usec = t.tv_nsec / 1000;
  return 0;
}

ZOO_PUBLIC time_t time(time_t *out)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out)
    *out = t.tv_sec;
  return t.tv_sec;
}

int main(void)
{
  struct timespec t;
  bool back = false;
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  for (time_t last = 0, i = 0; i < 10; i++, last = t.tv_sec) {
    clock_gettime(CLOCK_REALTIME, &t);
    back |= t.tv_sec + 3600 < last;
  }
  zoo_say("the clock went back: %d", back);
  zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  lua_close(L);
  return 0;
}
