/*
** A host that opens a VM to see whether Lua is there, closes it, and makes the
** VM that it works with later. "bare" probes without opening the libraries.
** zoo: cases full bare
*/
#include <string.h>

#include "test/hosts/zoo/zoo.h"

int main(int argc, char **argv)
{
  lua_State *probe =
      argc > 1 && !strcmp(argv[1], "bare") ? luaL_newstate() : zoo_vm();
  zoo_need(!luaL_dostring(probe, "return 1 + 1"), "dostring");
  zoo_say("probe %d", (int)lua_tointeger(probe, -1));
  lua_close(probe);
  for (int i = 0; i < 3; i++)
    zoo_say("work %ld", zoo_work_alone(ZOO_ROUNDS / 2));
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  lua_close(L);
  return 0;
}
