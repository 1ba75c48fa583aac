#include <stdio.h>

#include "lauxlib.h"
#include "lualib.h"

int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (luaL_dostring(L, "print(6 * 7, type(misc.profile.start))"))
    return 1;
  lua_close(L);
  return 0;
}
