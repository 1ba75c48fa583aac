/*
** Threads that block all signals, as thread pools do, beside one that blocks
** none.
*/
#include <signal.h>
#include <stdint.h>

#include "test/hosts/zoo/zoo.h"

enum { THREADS = 3 };

static void *work(void *argument)
{
  sigset_t mine;
  (void)argument;
  long sum = zoo_work_alone(ZOO_ROUNDS / 2);
  pthread_sigmask(SIG_BLOCK, NULL, &mine);
  for (int i = 1; i < NSIG; i++)
    if (i != SIGKILL && i != SIGSTOP && i != 32 && i != 33 &&
        sigismember(&mine, i) != 1)
      zoo_say("signal %d is not blocked", i);
  return (void *)(intptr_t)sum;
}

int main(void)
{
  sigset_t all, before;
  pthread_t threads[THREADS];
  lua_State *L = zoo_vm();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < THREADS; i++)
    threads[i] = zoo_thread(work, NULL, 0);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  for (int i = 0; i < THREADS; i++)
    zoo_say("thread %ld", (long)(intptr_t)zoo_join(threads[i]));
  lua_close(L);
  return 0;
}
