/*
** The CPU profiler's interfaces in a library without it: every call says so.
** Takes the place of the profiler's own files; may be called from anywhere.
*/
#include <errno.h>

#include "profilers/api/lmisclib.h"
#include "profilers/api/lua_tables.h"
#include "src/base/status.h"

static int not_supported(void)
{
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
  (void)writer;
  return not_supported();
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
  (void)on_stop;
  return not_supported();
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
  (void)backtracer;
  return not_supported();
}

int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  (void)L;
  (void)opt;
  return not_supported();
}

int luaM_sysprof_stop(lua_State *L)
{
  (void)L;
  return not_supported();
}

int luaM_sysprof_report(struct luam_Sysprof_Counters *counters)
{
  (void)counters;
  return not_supported();
}

static int lua_not_supported(lua_State *L)
{
  lua_pushnil(L);
  lua_pushfstring(L, "profiling is %s", ljp_status_text(LJP_ERR_NOTSUP));
  lua_pushinteger(L, ENOTSUP);
  return 3;
}

const luaL_Reg ljp_sysprof_functions[] = {{"start", lua_not_supported},
                                          {"stop", lua_not_supported},
                                          {"report", lua_not_supported},
                                          {"status", lua_not_supported},
                                          {NULL, NULL}};
