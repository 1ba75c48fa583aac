/*
** Children made by the system call clone(), of which no library is told: they
** use the VM and end by exit().
** zoo: children 0
*/
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { CHILDREN = 5, LONG_S = 8 };

int main(void)
{
  struct timespec before, after;
  zoo_skip_forks();
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  for (int i = 0; i < CHILDREN; i++) {
    clock_gettime(CLOCK_MONOTONIC, &before);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      bool good = zoo_work(L, 2) == zoo_work_alone(2);
      lua_close(L);
      exit(good ? 7 : 1);
    }
    int code = zoo_wait(child);
    clock_gettime(CLOCK_MONOTONIC, &after);
    zoo_say("child ended with %d%s", code,
            after.tv_sec - before.tv_sec > LONG_S ? ", late" : "");
  }
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
