/*
** A master that keeps root and starts workers that drop it, as nginx does.
** Needs root.
** zoo: children 3
*/
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { WORKERS = 3, NOBODY = 65534 };

int main(void)
{
  pid_t workers[WORKERS];
  zoo_skip_forks();
  if (getuid() != 0)
    zoo_skip("only root can change the user");
  lua_State *L = zoo_vm();
  zoo_say("master %ld", zoo_work(L, ZOO_ROUNDS));
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = fork();
    if (workers[i] == 0) {
      zoo_need(!setgid(NOBODY) && !setuid(NOBODY), "setuid");
      bool good = zoo_work(L, ZOO_ROUNDS / 2) == zoo_work_alone(ZOO_ROUNDS / 2);
      lua_close(L);
      return good ? 0 : 1;
    }
  }
  for (int i = 0; i < WORKERS; i++)
    zoo_say("worker ended with %d", zoo_wait(workers[i]));
  zoo_say("master %ld", zoo_work(L, ZOO_ROUNDS));
  lua_close(L);
  return 0;
}
