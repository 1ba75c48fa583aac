/*
** The tables of the library "misc", for lua_api.c. Each is defined by
** NAME_lua.c, or by NAME_none.c in a library without profilers.
*/
#ifndef LJP_LUA_TABLES_H
#define LJP_LUA_TABLES_H

#include "lua.h"
#include "lauxlib.h"

extern const luaL_Reg ljp_sysprof_functions[];
extern const luaL_Reg ljp_memprof_functions[];
extern const luaL_Reg ljp_profile_functions[];

/* misc.getmetrics(), of metrics.c. */
int ljp_getmetrics(lua_State *L);

#endif
