/*
** Containers: children that are process 1 of a namespace of their own, two with
** the same number.
** zoo: children 4
*/
#include <sched.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static int inside(lua_State *L)
{
  if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
    return 77;
  pid_t child = fork();
  if (child == 0) {
    zoo_say("process %d: %ld", (int)getpid(), zoo_work(L, ZOO_ROUNDS / 2));
    lua_close(L);
    return 5;
  }
  return zoo_wait(child);
}

int main(void)
{
  zoo_skip_forks();
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  for (int i = 0; i < 2; i++) {
    pid_t child = fork();
    if (child == 0)
      return inside(L);
    int code = zoo_wait(child);
    if (code == 77)
      zoo_skip("no process namespaces for this user");
    zoo_say("container ended with %d", code);
  }
  lua_close(L);
  return 0;
}
