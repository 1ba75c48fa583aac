/*
** Threads with 16 KiB of stack, the least that glibc permits.
*/
#include <limits.h>
#include <stdint.h>

#include "test/hosts/zoo/zoo.h"

enum { THREADS = 3, STACK_BYTES = 16384 };

static void *work(void *vm)
{
  return (void *)(intptr_t)zoo_light(vm, ZOO_ROUNDS);
}

int main(void)
{
  lua_State *vms[THREADS];
  pthread_t threads[THREADS];
  if (ZOO_SANITIZED)
    zoo_skip("the sanitizer's own functions need more stack");
  for (int i = 0; i < THREADS; i++)
    vms[i] = zoo_vm();
  for (int i = 0; i < THREADS; i++)
    threads[i] = zoo_thread(work, vms[i], STACK_BYTES);
  for (int i = 0; i < THREADS; i++) {
    zoo_say("light %ld", (long)(intptr_t)zoo_join(threads[i]));
    lua_close(vms[i]);
  }
  return 0;
}
