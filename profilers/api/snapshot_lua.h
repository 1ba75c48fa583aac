/*
** misc.memprof.snapshot (snapshot_lua.c). On the VM's own thread.
*/
#ifndef LJP_SNAPSHOT_LUA_H
#define LJP_SNAPSHOT_LUA_H

#include "lua.h"

int ljp_memprof_snapshot(lua_State *L);

#endif
