/*
** misc.profile.publish_labels. See publish_lua.c.
*/
#ifndef LJP_PUBLISH_LUA_H
#define LJP_PUBLISH_LUA_H

#include "lua.h"

int ljp_profile_publish_labels(lua_State *L);

/* If the VM publishes: gives the table on top of the stack, a status, the field
** `publish_labels`. */
void ljp_profile_set_published(lua_State *L);

#endif
