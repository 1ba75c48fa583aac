#!/bin/sh
# A static program with musl: the vDSO, which musl does not list there, has an unwind
# table and a name.
. "$(dirname "$0")/lib.sh"

bin=$BUILD_DIR/bin
cat > clock.c << 'END'
#include "lauxlib.h"
#include "lualib.h"

int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  int failed = luaL_dostring(L, "local clock = os.clock "
                                "local past = clock() + 0.5 "
                                "repeat until clock() > past");
  lua_close(L);
  return failed;
}
END
# Debian's libgcc_eh is made for glibc, and asks for this function.
echo 'int _dl_find_object(void *at, void *out) { return at && out ? -1 : -1; }' > find.c
musl-gcc -c find.c -o find.o
for how in -static -static-pie; do
  musl-gcc $how -fPIE -O2 -I"$BUILD_DIR/include" clock.c -o clock \
    -Wl,--whole-archive "$BUILD_DIR/lib/libluajit-5.1.a" -Wl,--no-whole-archive \
    -Wl,--start-group -lgcc -lgcc_eh find.o -Wl,--end-group > link.log 2>&1 ||
    fail "$how: $(tail -n 3 link.log)"
  "$bin/ljprof" record --force -o clock.ljp ./clock > said 2>&1 || fail "$how: $(cat said)"
  "$bin/ljprof" dump clock.ljp | grep -q 'path="linux-vdso' || fail "$how: no vDSO"
  "$bin/ljprof" report --json clock.ljp > report.json
  cut=$("$bin/ljprof" report clock.ljp | sed -n 's/.*no unwind table.*/&/p')
  same "$how: no stack is cut in the vDSO" "" "$cut"
  grep -q os.clock report.json || fail "$how: $(cat report.json)"
done
