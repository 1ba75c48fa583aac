#!/bin/sh
# A library without profilers still has misc and luaM_*, and each call says
# that profiling is not supported.
. "$(dirname "$0")/lib.sh"
CC=${CC:-cc}

off=$BUILD_DIR/off
cmake -S "$SOURCE_DIR" -B "$off" -G Ninja -DLJPROF=OFF -DBUILD_TESTING=OFF \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLUAJIT_BASE="${LJP_BASE:-luajit2}" \
  -DLUAJIT_SOURCE_DIR="${LJP_SOURCE:-}" > off.log 2>&1 || fail "$(cat off.log)"
cmake --build "$off" > off.log 2>&1 || fail "$(tail off.log)"
cat > calls.lua << 'EOF'
local wanted = {
  sysprof = { "start", "stop", "report", "status" },
  memprof = { "start", "stop", "status", "mark" },
  profile = { "start", "stop", "status" },
}
local n = 0
for name, calls in pairs(wanted) do
  for _, call in ipairs(calls) do
    local r = { n = select("#", misc[name][call]()), misc[name][call]({}) }
    assert(r.n == 3 and r[1] == nil, name .. "." .. call)
    assert(r[2] == "profiling is not supported in this build", r[2])
    assert(r[3] == 95, r[3]) -- ENOTSUP
    n = n + 1
  end
end
print(n, require("misc") == misc)
EOF
same "Lua calls" "11	true" "$("$off/bin/luajit" calls.lua)"

cat > calls.c << 'EOF'
#include <errno.h>
#include <stdio.h>
#include "lauxlib.h"
#include "lmisclib.h"
static int refused;
static void check(int code)
{
  if (code == PROFILE_ERRUSE && errno == ENOTSUP)
    refused++;
  errno = 0;
}
int main(void)
{
  lua_State *L = luaL_newstate();
  struct luam_Sysprof_Options so = {0};
  struct luam_Sysprof_Counters counters;
  struct luam_Memprof_Options mo = {0};
  check(luaM_sysprof_set_writer(NULL));
  check(luaM_sysprof_set_on_stop(NULL));
  check(luaM_sysprof_set_backtracer(NULL));
  check(luaM_sysprof_start(L, &so));
  check(luaM_sysprof_stop(L));
  check(luaM_sysprof_report(&counters));
  check(luaM_memprof_start(L, &mo));
  check(luaM_memprof_stop(L));
  printf("%d\n", refused);
  lua_close(L);
  return 0;
}
EOF
$CC -Wall -Werror calls.c -o calls -I"$off/include" -L"$off/lib" -lluajit-5.1
same "C calls" 8 "$(LD_LIBRARY_PATH=$off/lib ./calls)"
