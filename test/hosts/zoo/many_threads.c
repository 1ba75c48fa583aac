/*
** Hundreds of threads that live for a moment, with and without Lua.
** zoo: options --threads all
*/
#include "test/hosts/zoo/zoo.h"

enum { TURNS = 30, AT_ONCE = 10 };

static void *idle(void *argument)
{
  return argument;
}

int main(void)
{
  pthread_t workers[AT_ONCE], others[AT_ONCE];
  long sum = 0;
  lua_State *L = zoo_vm();
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < AT_ONCE; i++) {
      workers[i] = zoo_worker(0);
      others[i] = zoo_thread(idle, NULL, 0);
    }
    zoo_work(L, 1);
    for (int i = 0; i < AT_ONCE; i++) {
      sum += zoo_result(workers[i]) + 1;
      zoo_join(others[i]);
    }
  }
  zoo_say("%ld threads, work %ld", sum, zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
