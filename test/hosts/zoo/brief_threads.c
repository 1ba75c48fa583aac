/*
** Threads that end at once, made by four threads as fast as they can, as by
** servers with a thread for each request, beside a thread that runs Lua.
*/
#include <stdatomic.h>

#include "test/hosts/zoo/zoo.h"

enum { MAKERS = 4, THREADS = ZOO_SANITIZED ? 200 : 1000 };

static _Atomic int ended;

static void *brief(void *arg)
{
  ended++;
  return arg;
}

static void *maker(void *arg)
{
  for (int i = 0; i < THREADS; i++)
    zoo_need(zoo_join(zoo_thread(brief, arg, 0)) == arg, "a thread's result");
  return arg;
}

int main(void)
{
  lua_State *L = zoo_vm();
  pthread_t makers[MAKERS];
  for (int i = 0; i < MAKERS; i++)
    makers[i] = zoo_thread(maker, &makers[i], 0);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  for (int i = 0; i < MAKERS; i++)
    zoo_join(makers[i]);
  zoo_say("%d threads, alone %ld", ended, zoo_work_alone(2));
  lua_close(L);
  return 0;
}
