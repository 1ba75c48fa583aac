/*
** Threads of several kinds of scheduling: SCHED_FIFO, SCHED_IDLE, a low
** priority, one that is bound to a CPU, all with Lua. The profiler's threads
** inherit none of that. Needs root.
*/
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { FIFO, IDLE, LOW, BOUND, KINDS };

static void *work(void *kind)
{
  struct sched_param first = {.sched_priority = 1}, none = {0};
  cpu_set_t cpus;
  int error = 0;
  switch ((intptr_t)kind) {
  case FIFO:
    error = sched_setscheduler(0, SCHED_FIFO, &first);
    break;
  case IDLE:
    error = sched_setscheduler(0, SCHED_IDLE, &none);
    break;
  case LOW:
    error = setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
    break;
  case BOUND:
    sched_getaffinity(0, sizeof cpus, &cpus);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
      if (CPU_ISSET(i, &cpus) && found++)
        CPU_CLR(i, &cpus);
    error = sched_setaffinity(0, sizeof cpus, &cpus);
    break;
  }
  if (error)
    return NULL;
  return (void *)(intptr_t)zoo_work_alone(5);
}

int main(void)
{
  pthread_t threads[KINDS];
  lua_State *L = zoo_vm();
  for (intptr_t i = 0; i < KINDS; i++)
    threads[i] = zoo_thread(work, (void *)i, 0);
  for (int i = 0; i < KINDS; i++) {
    void *sum = zoo_join(threads[i]);
    if (!sum)
      zoo_skip("the kind %d is not permitted", i);
    zoo_say("%d: %ld", i, (long)(intptr_t)sum);
  }
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
