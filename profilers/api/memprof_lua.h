/*
** What misc.profile needs of misc.memprof.
*/
#ifndef LJP_MEMORY_LUA_H
#define LJP_MEMORY_LUA_H

#include "lua.h"

#include "profilers/memory/memprof.h"

/* The target of the Lua options. Begins with the output. */
struct ljp_memprof_lua {
  struct ljp_memprof_options options;
  bool every, not_every, sampled, limited; /* what the caller asked for */
};

/* Reads the options of the memory part of a combined session. Returns 0, or the
** number of results that a failed call returns to Lua. */
int ljp_memprof_read_part(lua_State *L, int table, struct ljp_memprof_lua *m);
/* Pushes the table that misc.memprof.status() returns. */
int ljp_memprof_push_status(lua_State *L);

#endif
