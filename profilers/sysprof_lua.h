/*
** misc.sysprof: its functions for lua_api.c. Defined by sysprof_lua.c, or by
** sysprof_none.c in a library without the CPU profiler.
*/
#ifndef LJP_SYSPROF_LUA_H
#define LJP_SYSPROF_LUA_H

#include "lua.h"
#include "lauxlib.h"

extern const luaL_Reg ljp_sysprof_functions[];

#endif
