/*
** Takes the place of the memory profiler's interfaces in a library without
** profilers: every call says that it is not supported. Any thread may call it.
*/
#include <errno.h>

#include "profilers/api/labels_lua.h"
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

int luaM_memprof_isrunning(void)
{
  return 0;
}

int luaM_memprof_stop(const lua_State *L)
{
  (void)L;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int luaM_heap_snapshot(lua_State *L, const char *path,
                       const struct luam_Heap_Options *opt)
{
  (void)L;
  (void)path;
  (void)opt;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int luaM_listen(lua_State *L, const char *path)
{
  (void)L;
  (void)path;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

static int memprof_none_lua(lua_State *L)
{
  lua_pushnil(L);
  lua_pushfstring(L, "profiling is %s", ljp_status_text(LJP_ERR_NOTSUP));
  lua_pushinteger(L, ENOTSUP);
  return 3;
}

const luaL_Reg ljp_memprof_functions[] = {
    {"start", memprof_none_lua},    {"stop", memprof_none_lua},
    {"status", memprof_none_lua},   {"mark", memprof_none_lua},
    {"snapshot", memprof_none_lua}, {NULL, NULL}};

const luaL_Reg ljp_profile_functions[] = {
    {"start", memprof_none_lua},
    {"stop", memprof_none_lua},
    {"status", memprof_none_lua},
    {"listen", memprof_none_lua},
    {"label", ljp_profile_label},
    {"label_requests", ljp_profile_label_requests},
    {"labels", ljp_profile_labels},
    {"publish_labels", memprof_none_lua},
    {NULL, NULL}};
