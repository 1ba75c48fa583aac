/*
** Deep stacks: thousands of Lua frames, and Lua and C calling each other as deep
** as LuaJIT permits.
*/
#include "test/hosts/zoo/zoo.h"

static int call(lua_State *L)
{
  lua_settop(L, 2);
  lua_call(L, 1, 1);
  return 1;
}

int main(void)
{
  lua_State *L = zoo_vm();
  lua_register(L, "call", call);
  int failed = luaL_dostring(L, "local function down(n)\n"
                                "  if n == 0 then return light(1) end\n"
                                "  return 1 + down(n - 1)\n"
                                "end\n"
                                "local function both(n)\n"
                                "  if n == 0 then return light(3) end\n"
                                "  return 1 + call(both, n - 1)\n"
                                "end\n"
                                "local function co(n)\n"
                                "  if n == 0 then return light(3) end\n"
                                "  return 1 + coroutine.wrap(co)(n - 1)\n"
                                "end\n"
                                "return down(7001), both(150), co(90)\n");
  zoo_need(!failed, "recursion");
  zoo_say("%ld %ld %ld", (long)lua_tointeger(L, -3), (long)lua_tointeger(L, -2),
          (long)lua_tointeger(L, -1));
  zoo_need(luaL_dostring(L, "local function f() return 1 + f() end f()"),
           "endless recursion");
  zoo_say("%s", lua_tostring(L, -1));
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
