/*
** The luajit command: LuaJIT's own luajit.o with two additions.
**
** The command finds the jit.* modules relative to itself, so that they match
** its library wherever both are installed. The linker redirects the command's
** call of luaL_openlibs to this file (--wrap). The library itself keeps
** Debian's default paths.
**
** The option -t runs a tool of tools/lua (patch 0009 calls ljp_tool).
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
int ljp_tool(lua_State *L, char **argv);

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

static void print_tools(void)
{
  fputs("usage: luajit -t<tool> [options] file\n"
        "Available tools are:\n"
        "  -tm   Show a memory profile. Options: --leak-only,"
        " --human-readable\n"
        "  -ts   Show the stacks of a CPU profile.\n",
        stderr);
}

/* The tools come from beside the command, whatever package.path finds first. */
static void put_own_modules_first(lua_State *L)
{
  char template[PATH_MAX + 32];
  if (!module_template(template, sizeof template))
    return;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  lua_pushfstring(L, "%s;%s", template, lua_tostring(L, -1));
  lua_setfield(L, -3, "path");
  lua_pop(L, 2);
}

/* Runs a tool: argv is "-tNAME" and the tool's arguments. Returns 1 on failure,
** else -1: there is no script to run afterwards. */
int ljp_tool(lua_State *L, char **argv)
{
  const char *name = *argv + 2;
  const char *module = *name == 'm' ? "memprof" : *name == 's' ? "sysprof" : "";
  if (!*module || name[1]) {
    print_tools();
    return 1;
  }
  put_own_modules_first(L);
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  int failed = lua_pcall(L, 1, 1, 0);
  if (!failed) {
    lua_newtable(L);
    for (int i = 1; argv[i]; i++) {
      lua_pushstring(L, argv[i]);
      lua_rawseti(L, -2, i);
    }
    failed = lua_pcall(L, 1, 0, 0);
  }
  if (failed) {
    const char *why = lua_tostring(L, -1);
    fprintf(stderr, "luajit: %s\n", why ? why : "the tool failed");
  }
  return failed ? 1 : -1;
}
