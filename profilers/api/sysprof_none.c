/*
** Takes the place of the CPU profiler's interfaces in a library without
** profilers: every call says that it is not supported. Any thread may call it.
*/
#include <errno.h>

#include "profilers/api/lmisclib.h"
#include "profilers/api/lua_tables.h"
#include "src/base/status.h"

static int sysprof_none_c(void)
{
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
  (void)writer;
  return sysprof_none_c();
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
  (void)on_stop;
  return sysprof_none_c();
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
  (void)backtracer;
  return sysprof_none_c();
}

int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  (void)L;
  (void)opt;
  return sysprof_none_c();
}

int luaM_sysprof_stop(lua_State *L)
{
  (void)L;
  return sysprof_none_c();
}

int luaM_sysprof_report(struct luam_Sysprof_Counters *counters)
{
  (void)counters;
  return sysprof_none_c();
}

static int sysprof_none_lua(lua_State *L)
{
  lua_pushnil(L);
  lua_pushfstring(L, "profiling is %s", ljp_status_text(LJP_ERR_NOTSUP));
  lua_pushinteger(L, ENOTSUP);
  return 3;
}

const luaL_Reg ljp_sysprof_functions[] = {{"start", sysprof_none_lua},
                                          {"stop", sysprof_none_lua},
                                          {"report", sysprof_none_lua},
                                          {"status", sysprof_none_lua},
                                          {NULL, NULL}};
