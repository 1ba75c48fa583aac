// C++ exceptions that fly through Lua's frames, Lua errors that run C++
// destructors, and exceptions that Lua catches with pcall().
#include <new>
#include <stdexcept>
#include <string>

extern "C" {
#include "test/hosts/zoo/zoo.h"
}

namespace
{
int destroyed;

struct guard {
  ~guard()
  {
    destroyed++;
  }
};

int throws(lua_State *L)
{
  guard g;
  throw std::runtime_error(lua_tostring(L, 1));
}

int fails(lua_State *L)
{
  guard g;
  return luaL_error(L, "%s", lua_tostring(L, 1));
}

int calls(lua_State *L)
{
  guard g;
  lua_pushvalue(L, 1);
  lua_call(L, 0, 0);
  return 0;
}
} // namespace

int main()
{
  lua_State *L = zoo_vm();
  lua_register(L, "throws", throws);
  lua_register(L, "fails", fails);
  lua_register(L, "calls", calls);
  int caught = 0;
  for (int i = 0; i < 400; i++) {
    try {
      luaL_loadstring(L, "calls(function() light(1) throws('thrown') end)");
      lua_call(L, 0, 0);
    } catch (const std::runtime_error &e) {
      caught += std::string(e.what()) == "thrown";
    }
    lua_settop(L, 0);
  }
  zoo_say("%d caught, %d destroyed", caught, destroyed);
  for (int i = 0; i < 400; i++) {
    luaL_loadstring(L, "calls(function() light(1) fails('failed') end)");
    caught += lua_pcall(L, 0, 0, 0) == LUA_ERRRUN;
    luaL_loadstring(L, "local ok, e = pcall(throws, 'x')\n"
                       "return not ok and e == 'C++ exception'");
    caught += lua_pcall(L, 0, 1, 0) == 0 && lua_toboolean(L, -1);
    lua_settop(L, 0);
  }
  zoo_say("%d caught, %d destroyed", caught, destroyed);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  lua_close(L);
  return 0;
}
