/*
** A host that leaves Lua by longjmp() instead of errors, from C functions and
** from a panic, as hosts with an error system of their own do.
*/
#include <setjmp.h>

#include "test/hosts/zoo/zoo.h"

static jmp_buf out;

static int leave(lua_State *L)
{
  (void)L;
  longjmp(out, 1);
}

static int panic(lua_State *L)
{
  (void)L;
  longjmp(out, 2);
}

int main(void)
{
  static const char *const ways[] = {
      "light(1) leave()", "light(1) error('nobody catches this')",
      "coroutine.wrap(function() light(1) leave() end)()",
      "('x'):gsub('x', function() light(1) leave() end)",
      "for i = 1, 300 do if i == 299 then leave() end end"};
  enum { WAYS = sizeof ways / sizeof *ways };
  for (volatile int i = 0; i < 41; i++) {
    /* What has been left by a jump is not to be used again. */
    lua_State *L = zoo_vm();
    lua_register(L, "leave", leave);
    lua_atpanic(L, panic);
    zoo_need(!luaL_loadstring(L, ways[i % WAYS]), "loadstring");
    int way = setjmp(out);
    if (way == 0)
      lua_call(L, 0, 0);
    if (i < WAYS)
      zoo_say("way %d: %d", i, way);
  }
  zoo_say("work %ld", zoo_work_alone(ZOO_ROUNDS));
  return 0;
}
