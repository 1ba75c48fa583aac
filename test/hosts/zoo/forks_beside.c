/*
** Forks from a third thread while two threads run Lua and make VMs. The
** children use Lua themselves. The two threads neither compile nor throw: in
** Debian 12 either action takes a lock of libgcc, and even without a profiler a
** child may find that lock held for ever.
** zoo: children 13
*/
#include <stdatomic.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { CHILDREN = 13 };

static _Atomic bool stop;

static void *make_vms(void *argument)
{
  while (!atomic_load(&stop)) {
    lua_State *L = luaL_newstate();
    zoo_need(L != NULL, "luaL_newstate");
    luaL_openlibs(L);
    zoo_need(!luaL_dostring(L, "jit.off()\n"
                               "local t = {}\n"
                               "for i = 1, 5000 do t[i] = {i .. ''} end\n"
                               "table.sort(t, function(a, b)\n"
                               "  return a[1] < b[1]\n"
                               "end)\n"),
             "dostring");
    lua_close(L);
  }
  return argument;
}

int main(void)
{
  zoo_skip_forks();
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  pthread_t first = zoo_thread(make_vms, NULL, 0);
  pthread_t second = zoo_thread(make_vms, NULL, 0);
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      return zoo_work_alone(3) > 0 && zoo_work(L, 3) > 0 ? 7 : 1;
    }
    zoo_say("child %d ended with %d", i, zoo_wait(child));
  }
  atomic_store(&stop, true);
  zoo_join(first);
  zoo_join(second);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
