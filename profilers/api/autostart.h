/*
** What the environment asks for. With LJPROF_RECORD, which `ljprof record` or
** whoever runs a service sets, the first VM that opens its libraries starts a
** session that lasts until the program ends. With LJPROF_LISTEN=PATH it opens a door for clients
** (profilers/join/listen.h). With LJPROF_PUBLISH_LABELS each VM publishes its labels
** (profilers/session/published.h). These are the only cases in which the library
** prints: if the session cannot start, there can be no door, or nothing can be
** published, the library says so on standard error.
**
** LJPROF_RECORD has settings (settings.h) or, from `ljprof record`, a request. That
** begins with "preload", "told" or "pid", and holds NAME=VALUE pairs, separated by ';': "pid", the process to
** record; "children=true" to record others as well, each into PATH.PID; options
** of misc.profile.start ("cpu.interval=1" for cpu = {interval = 1}); and
** "path", which comes last because it may hold any byte. With "service", the path
** is the folder of a store, where each process has files of its own. Settings
** become such a request, without "pid".
*/
#ifndef LJP_AUTOSTART_H
#define LJP_AUTOSTART_H

#include "lua.h"
#include "lauxlib.h"

/* Called by luaopen_misc() with the library's table on top of the stack.
** In programs that run with more rights than their user the environment asks for
** nothing. */
void ljp_autostart(lua_State *L);

#endif
