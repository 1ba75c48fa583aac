/*
** A library for Lua that allocates a string in C;
** test/e2e/tarantool_tools.sh loads it while a profiler runs.
*/
#include "lua.h"
#include "lauxlib.h"

int luaopen_tarantool_module(lua_State *L);

__attribute__((noinline)) static int allocate_text(lua_State *L)
{
  lua_pushstring(L, "a string that nobody else has");
  return 1;
}

__attribute__((visibility("default"))) int
luaopen_tarantool_module(lua_State *L)
{
  lua_pushcfunction(L, allocate_text);
  return 1;
}
