#!/bin/sh
# An installation works from any prefix: the command finds its library and its
# jit.* modules, and C programs build against it with pkg-config, linked
# dynamically or statically.
. "$(dirname "$0")/lib.sh"
CC=${CC:-cc}
flags=${LJP_LINK_FLAGS:-}

prefix=$SCRATCH/pre
cmake --install "$BUILD_DIR" --prefix "$prefix" > install.log
cat > module.lua << 'EOF'
assert(require("jit.vmdef").bcnames:find("ISLT") == 1)
local dir = package.path:match("([^;]*)/share/luajit%-2%.1/%?%.lua")
print(dir, type(misc.sysprof.start))
EOF
same "the command finds its modules" "$prefix	function" \
  "$("$prefix/bin/luajit" module.lua)"
mv "$prefix" "$SCRATCH/moved"
prefix=$SCRATCH/moved
same "it also finds them after a move" "$prefix	function" \
  "$("$prefix/bin/luajit" module.lua)"
same "LUA_PATH given in full is left alone" "/x/?.lua" \
  "$(LUA_PATH='/x/?.lua' "$prefix/bin/luajit" -e 'print(package.path)')"
same "-jv works" 1 "$("$prefix/bin/luajit" -jv -e 'for i=1,1e4 do end' 2>&1 |
  grep -c 'TRACE.*loop')"

cat > host.c << 'EOF'
#include <stdio.h>
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
int main(void)
{
  struct luam_Sysprof_Counters counters = {0};
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (luaL_dostring(L, "io.write(6 * 7, ' ', type(misc.memprof.stop), ' ')"))
    return 1;
  luaM_sysprof_report(&counters);
  printf("%d\n", (int)counters.samples);
  lua_close(L);
  return 0;
}
EOF
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
# shellcheck disable=SC2046,SC2086 # words are wanted
$CC -Wall -Werror host.c -o dynamic $flags $(pkg-config --cflags --libs luajit)
same "a host, dynamic" "42 function 0" \
  "$(LD_LIBRARY_PATH=$prefix/lib ./dynamic)"
# shellcheck disable=SC2046,SC2086
$CC -Wall -Werror host.c -o static $flags $(pkg-config --cflags luajit) \
  "$prefix/lib/libluajit-5.1.a" -Wl,-E -lm -ldl ${LJP_STATIC_LIBS:-}
same "a host, static" "42 function 0" "$(./static)"
same "static needs no libluajit" "" "$(ldd ./static | grep libluajit || :)"
