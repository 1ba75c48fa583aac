/*
** Recording that the environment asks for: LJPROF_RECORD, as `ljprof record`
** sets it, makes the first VM that opens its libraries start a session that
** lasts until the program ends. The one case in which the library prints: a
** session that was asked for and cannot start says so on standard error.
**
** The variable holds NAME=VALUE pairs with ';' between them: "pid", the process
** that is meant; "children=true" for others as well, each into PATH.PID; the
** options of misc.profile.start ("cpu.interval=1" for cpu = {interval = 1});
** and "path" as the last one, since it may hold any byte.
*/
#ifndef LJP_AUTOSTART_H
#define LJP_AUTOSTART_H

#include "lua.h"
#include "lauxlib.h"

/* From luaopen_misc, with the library's table on top of the stack. Programs
** that run with more rights than their user's are never recorded this way. */
void ljp_autostart(lua_State *L);

#endif
