/*
** The luajit command: LuaJIT's own luajit.o with one addition. The command
** finds the jit.* modules relative to itself, so that they match its library
** wherever both are installed. The linker redirects the command's call of
** luaL_openlibs to this file (--wrap). The library itself keeps Debian's
** default paths.
*/
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

void __real_luaL_openlibs(lua_State *L);
void __wrap_luaL_openlibs(lua_State *L);

/* The directory of jit/, as a template for package.path; 0 if unknown. */
static int module_template(char *buf, size_t size)
{
  char exe[PATH_MAX];
  ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
  char *slash;
  if (len <= 0)
    return 0;
  exe[len] = '\0';
  for (int up = 0; up < 2; up++) { /* .../bin/luajit -> ... */
    slash = strrchr(exe, '/');
    if (slash == NULL)
      return 0;
    *slash = '\0';
  }
  if (strpbrk(exe, ";?") != NULL) /* cannot be written in a path */
    return 0;
  return (size_t)snprintf(buf, size, "%s/share/luajit-2.1/?.lua", exe) < size;
}

/*
** Puts the template before the entry for LuaJIT's own modules. A path without
** such an entry was given by the user in full (LUA_PATH) and is left alone.
*/
static void find_own_modules(lua_State *L)
{
  static const char mark[] = "/share/luajit-2.1";
  char template[PATH_MAX + 32];
  const char *path, *at;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  path = lua_tostring(L, -1);
  if (path != NULL && (at = strstr(path, mark)) != NULL &&
      module_template(template, sizeof template)) {
    while (at > path && at[-1] != ';')
      at--;
    lua_pushlstring(L, path, (size_t)(at - path));
    lua_pushfstring(L, "%s;%s", template, at);
    lua_concat(L, 2);
    lua_setfield(L, -3, "path");
  }
  lua_pop(L, 2);
}

void __wrap_luaL_openlibs(lua_State *L)
{
  __real_luaL_openlibs(L);
  find_own_modules(L);
}
