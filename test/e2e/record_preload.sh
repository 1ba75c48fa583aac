#!/bin/sh
# Where ljprof record preloads our library for one program, other programs run
# without it: one with another Lua, and what the program executes. The program
# itself, executed again, has it with --children. Where the library cannot get
# in, or another LuaJIT is used all the same, that is said.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/places_lib.sh"

# Another Lua, with functions of the same names, in the folder of LuaJIT.
cat > lua54.c << 'END'
#include <stdlib.h>
static int state;
void *lua_newstate(void) { return &state; }
void *luaL_newstate(void) { return lua_newstate(); }
int lua_pcall(void *L) { return L == &state ? 0 : 3; }
END
cat > host54.c << 'END'
#include <stdio.h>
void *luaL_newstate(void);
int lua_pcall(void *, int, int, int);
int main(void)
{
  int code = lua_pcall(luaL_newstate(), 0, 0, 0);
  puts(code ? "LuaJIT" : "Lua");
  return code;
}
END
link opt/luajit/lib/liblua5.4.so.0 -shared -fPIC lua54.c \
  -Wl,-soname,liblua5.4.so.0
link host54 host54.c -Wl,"$old",-rpath,"$own" "$own/liblua5.4.so.0"
link export54 host54.c lua54.c -Wl,"$old",-rpath,"$own" -Wl,-E
for host in host54 export54; do
  "$ljprof" record --force -o p.ljp ./$host > out 2> err && fail "recorded"
  same "$host: another Lua keeps its functions" Lua "$(cat out)"
  case $host in
  host54) lua=$own/liblua5.4.so.0 ;;
  *) lua=$host ;;
  esac
  same "$host: it is said" 1 \
    "$(grep -c "not preloaded, since .*$lua has another Lua: .* --preload" err)"
done
