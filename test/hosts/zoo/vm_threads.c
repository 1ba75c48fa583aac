/*
** A VM in each thread, threads that come and go, and VMs that move from one
** thread to another.
** zoo: cases own moving
*/
#include <stdint.h>
#include <string.h>

#include "test/hosts/zoo/zoo.h"

enum { THREADS = 4, TURNS = 5 };

static void *take(void *vm)
{
  return (void *)(intptr_t)zoo_work(vm, ZOO_ROUNDS / 12);
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  lua_State *vms[THREADS] = {NULL};
  bool moving = argc > 1 && !strcmp(argv[1], "moving");
  for (int i = 0; i < THREADS && moving; i++)
    vms[i] = zoo_vm();
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < THREADS; i++)
      threads[i] = moving ? zoo_thread(take, vms[(i + turn) % THREADS], 0)
                          : zoo_worker(ZOO_ROUNDS / 12);
    for (int i = 0; i < THREADS; i++)
      zoo_say("turn %d: %ld", turn, zoo_result(threads[i]));
  }
  for (int i = 0; i < THREADS && moving; i++)
    lua_close(vms[i]);
  return 0;
}
