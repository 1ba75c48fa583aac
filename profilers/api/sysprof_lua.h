/*
** misc.sysprof: its functions for lua_api.c. Defined by sysprof_lua.c, or by
** sysprof_none.c in a library without the CPU profiler.
*/
#ifndef LJP_SYSPROF_LUA_H
#define LJP_SYSPROF_LUA_H

#include "lua.h"
#include "lauxlib.h"

extern const luaL_Reg ljp_sysprof_functions[];
extern const luaL_Reg ljp_memprof_functions[];
extern const luaL_Reg ljp_profile_functions[];

struct ljp_sysprof_options;

/* Options of the CPU profiler's part in a combined session; 0, or the number
** of results of a call that has failed. */
int ljp_sysprof_read_part(lua_State *L, int table,
                          struct ljp_sysprof_options *options);
/* Pushes the table that misc.sysprof.status() returns. */
int ljp_sysprof_push_status(lua_State *L);

#endif
