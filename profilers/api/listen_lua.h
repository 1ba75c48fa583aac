/*
** misc.profile.listen; see listen_lua.c.
*/
#ifndef LJP_LISTEN_LUA_H
#define LJP_LISTEN_LUA_H

#include "lua.h"

int ljp_profile_listen(lua_State *L);
/* While the program listens: sets the field `listen` of the table on top of the
** stack. */
void ljp_profile_set_listen(lua_State *L);

#endif
