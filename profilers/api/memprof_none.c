/*
** The memory profiler's interfaces in a library without it: every call says
** so. Takes the place of the profiler's own files; may be called from anywhere.
*/
#include <errno.h>

#include "profilers/api/lmisclib.h"
#include "profilers/api/lua_tables.h"
#include "src/base/status.h"

int luaM_memprof_start(lua_State *L, const struct luam_Memprof_Options *opt)
{
  (void)L;
  (void)opt;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int luaM_memprof_stop(lua_State *L)
{
  (void)L;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

static int lua_not_supported(lua_State *L)
{
  lua_pushnil(L);
  lua_pushfstring(L, "profiling is %s", ljp_status_text(LJP_ERR_NOTSUP));
  lua_pushinteger(L, ENOTSUP);
  return 3;
}

const luaL_Reg ljp_memprof_functions[] = {{"start", lua_not_supported},
                                          {"stop", lua_not_supported},
                                          {"status", lua_not_supported},
                                          {"mark", lua_not_supported},
                                          {NULL, NULL}};

const luaL_Reg ljp_profile_functions[] = {{"start", lua_not_supported},
                                          {"stop", lua_not_supported},
                                          {"status", lua_not_supported},
                                          {NULL, NULL}};
