/*
** A session that the environment asks for. With LJPROF_RECORD, which `ljprof
** record` sets, the first VM that opens its libraries starts a session that
** lasts until the program ends. This is the only case in which the library
** prints: if the session cannot start, the library says so on standard error.
**
** The variable holds NAME=VALUE pairs, separated by ';': "pid", the process to
** record; "children=true" to record others as well, each into PATH.PID; options
** of misc.profile.start ("cpu.interval=1" for cpu = {interval = 1}); and
** "path", which comes last because it may hold any byte.
*/
#ifndef LJP_AUTOSTART_H
#define LJP_AUTOSTART_H

#include "lua.h"
#include "lauxlib.h"

/* Called by luaopen_misc() with the library's table on top of the stack.
** Programs that run with more rights than their user are never recorded this
** way. */
void ljp_autostart(lua_State *L);

#endif
