/*
** Takes the place of the labels' interfaces in a library without profilers:
** `with` calls the function, the others say that they are not supported.
*/
#include <errno.h>

#include "profilers/api/labels_lua.h"
#include "profilers/api/lmisclib.h"
#include "profilers/api/lua_tables.h"
#include "src/base/status.h"

int luaM_label(lua_State *L, const char *key, const char *value)
{
  (void)L;
  (void)key;
  (void)value;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int ljp_profile_label(lua_State *L)
{
  lua_pushnil(L);
  lua_pushfstring(L, "profiling is %s", ljp_status_text(LJP_ERR_NOTSUP));
  lua_pushinteger(L, ENOTSUP);
  return 3;
}

int ljp_profile_labels(lua_State *L)
{
  return ljp_profile_label(L);
}

void ljp_profile_add_with(lua_State *L)
{
  static const char with[] = "return function(_, f, ...) return f(...) end\n";
  if (luaL_loadbuffer(L, with, sizeof with - 1, "=misc.profile.with"))
    lua_error(L);
  lua_call(L, 0, 1);
  lua_setfield(L, -2, "with");
}
