/*
** Three threads that run programs by vfork() and exec as fast as they can,
** beside a thread that runs Lua and one that makes threads.
*/
#include <stdatomic.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { LOOPS = 3, PROGRAMS = 100 };

static _Atomic int failed;

static void *loop(void *arg)
{
  static char *const argv[] = {(char *)"/bin/true", NULL};
  static char *const environment[] = {NULL};
  for (int i = 0; i < PROGRAMS; i++) {
    pid_t child = vfork();
    if (!child) {
      execve(argv[0], argv, environment);
      _exit(99);
    }
    failed += zoo_wait(child) != 0;
  }
  return arg;
}

int main(void)
{
  lua_State *L = zoo_vm();
  pthread_t loops[LOOPS];
  for (int i = 0; i < LOOPS; i++)
    loops[i] = zoo_thread(loop, NULL, 0);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  for (int i = 0; i < 50; i++)
    zoo_result(zoo_worker(0));
  for (int i = 0; i < LOOPS; i++)
    zoo_join(loops[i]);
  zoo_say("%d of %d failed", failed, LOOPS * PROGRAMS);
  lua_close(L);
  return 0;
}
