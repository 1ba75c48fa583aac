/*
** Lua before main(), in a constructor, and after it, in a function of atexit()
** and in a destructor.
*/
#include <stdlib.h>

#include "test/hosts/zoo/zoo.h"

static lua_State *early;

static void at_exit(void)
{
  zoo_say("at exit %ld", zoo_work(early, ZOO_ROUNDS / 2));
}

__attribute__((constructor)) static void begin(void)
{
  early = zoo_vm();
  zoo_say("before main %ld", zoo_work(early, ZOO_ROUNDS / 2));
}

__attribute__((destructor)) static void end(void)
{
  zoo_say("after main %ld", zoo_work(early, ZOO_ROUNDS / 2));
  lua_close(early);
}

int main(void)
{
  atexit(at_exit);
  zoo_say("work %ld", zoo_work(early, ZOO_ROUNDS / 2));
  return 0;
}
