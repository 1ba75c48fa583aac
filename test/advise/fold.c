/*
** A module that calls a Lua function for each element of a list, as C libraries
** with visitors do. For the programs of test/advise.
*/
#include <lauxlib.h>
#include <lua.h>

__attribute__((visibility("default"))) int luaopen_fold(lua_State *L);

/* fold.sum(list, f): the sum of f(v) over the elements. */
static int fold_sum(lua_State *L)
{
  size_t n = lua_objlen(L, 1);
  double sum = 0;
  luaL_checktype(L, 1, LUA_TTABLE);
  for (size_t i = 1; i <= n; i++) {
    lua_pushvalue(L, 2);
    lua_rawgeti(L, 1, (int)i);
    lua_call(L, 1, 1);
    sum += lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lua_pushnumber(L, sum);
  return 1;
}

/* fold.within(f, ...): calls f once, as a library with transactions does. */
static int fold_within(lua_State *L)
{
  if (lua_pcall(L, lua_gettop(L) - 1, 1, 0))
    return lua_error(L);
  return 1;
}

int luaopen_fold(lua_State *L)
{
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, fold_sum);
  lua_setfield(L, -2, "sum");
  lua_pushcfunction(L, fold_within);
  lua_setfield(L, -2, "within");
  return 1;
}
