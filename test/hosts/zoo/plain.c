/*
** A host without any special trait: a VM, work, and a clean end.
*/
#include "test/hosts/zoo/zoo.h"

int main(void)
{
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  zoo_say("light %ld", zoo_light(L, ZOO_ROUNDS));
  lua_close(L);
  return 0;
}
