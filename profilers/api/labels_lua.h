/*
** The labels of misc.profile. See labels_lua.c.
*/
#ifndef LJP_LABELS_LUA_H
#define LJP_LABELS_LUA_H

#include "lua.h"

int ljp_profile_label(lua_State *L);
int ljp_profile_label_requests(lua_State *L);
int ljp_profile_labels(lua_State *L);

/* Gives the table on top of the stack, misc.profile, the function `with`. */
void ljp_profile_add_with(lua_State *L);

#endif
