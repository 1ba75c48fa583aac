/*
** Takes the place of the labels' interfaces in a library without profilers:
** `with` calls the function, the others say that they are not supported.
*/
#include <errno.h>
#include <string.h>

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

int luaM_publish_labels(lua_State *L, int on)
{
  (void)L;
  (void)on;
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

int ljp_profile_label_requests(lua_State *L)
{
  return ljp_profile_label(L);
}

int ljp_profile_labels(lua_State *L)
{
  return ljp_profile_label(L);
}

static int labels_index(lua_State *L)
{
  static const char with[] = "return function(_, f, ...) return f(...) end\n";
  const char *key = lua_tostring(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING || strcmp(key, "with") != 0)
    return 0;
  if (luaL_loadbuffer(L, with, sizeof with - 1, "=misc.profile.with"))
    return lua_error(L);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, 1, "with");
  return 1;
}

/* When it is asked for. The heap is as in a library with profilers: bench/off.sh
** compares the two. */
void ljp_profile_add_with(lua_State *L)
{
  lua_createtable(L, 0, 1);
  lua_getglobal(L, "pcall");
  lua_pushcclosure(L, labels_index, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}
