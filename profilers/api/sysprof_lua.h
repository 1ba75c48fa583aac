/*
** What misc.profile needs of misc.sysprof.
*/
#ifndef LJP_SYSPROF_LUA_H
#define LJP_SYSPROF_LUA_H

#include "lua.h"

#include "profilers/cpu/sysprof.h"

/* Reads the options of the CPU part of a combined session. Returns 0, or the
** number of results that a failed call returns to Lua. */
int ljp_sysprof_read_part(lua_State *L, int table,
                          struct ljp_sysprof_options *options);
/* Pushes the table that misc.sysprof.status() returns. */
int ljp_sysprof_push_status(lua_State *L);

#endif
