/*
** A host that opens LuaJIT by dlopen(), uses it and closes it again, several
** times, as a plugin does. The program itself is not linked with it.
** zoo: unlinked
*/
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lua.h"

static const char chunk[] = "local n = 0\n"
                            "for i = 1, 60 do\n"
                            "  local t = {}\n"
                            "  for k = 1, 3000 do t[k] = {k * i % 97} end\n"
                            "  table.sort(t, function(a, b)\n"
                            "    return a[1] < b[1]\n"
                            "  end)\n"
                            "  n = n + t[1501][1]\n"
                            "end\n"
                            "return n\n";

static void *find(void *library, const char *name)
{
  void *found = dlsym(library, name);
  if (!found) {
    printf("no %s\n", name);
    exit(1);
  }
  return found;
}

int main(void)
{
  for (int i = 0; i < 5; i++) {
    void *library = dlopen("libluajit-5.1.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      printf("%s\n", dlerror());
      return 1;
    }
    lua_State *(*newstate)(void);
    void (*openlibs)(lua_State *), (*closes)(lua_State *);
    int (*loads)(lua_State *, const char *);
    int (*call)(lua_State *, int, int, int);
    lua_Integer (*integer)(lua_State *, int);
    *(void **)&newstate = find(library, "luaL_newstate");
    *(void **)&openlibs = find(library, "luaL_openlibs");
    *(void **)&closes = find(library, "lua_close");
    *(void **)&loads = find(library, "luaL_loadstring");
    *(void **)&call = find(library, "lua_pcall");
    *(void **)&integer = find(library, "lua_tointeger");
    lua_State *L = newstate();
    openlibs(L);
    int failed = loads(L, chunk) || call(L, 0, 1, 0);
    printf("turn %d: %d %ld\n", i, failed, (long)integer(L, -1));
    closes(L);
    if (dlclose(library))
      printf("%s\n", dlerror());
  }
  return 0;
}
