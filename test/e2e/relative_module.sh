#!/bin/sh
# A C module that was loaded by a relative path keeps its names when the report
# is made in another folder, even if the program has changed its own meanwhile.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit

mkdir lua elsewhere
cat > spin.c << 'EOL'
static volatile unsigned long spin_count;
static __attribute__((noinline)) void spin_in_the_module(unsigned long n)
{
  while (n--)
    spin_count++;
}
int luaopen_spin(void *L)
{
  (void)L;
  spin_in_the_module(300000000);
  return 0;
}
EOL
"${CC:-cc}" -O1 -g -shared -fPIC -Wl,--build-id -o lua/spin.so spin.c ||
  fail "no module"
cat > load.lua << 'EOL'
local ffi = require("ffi")
ffi.cdef("int chdir(const char *);")
package.cpath = "./lua/?.so"
local opened = assert(package.loadlib("./lua/spin.so", "luaopen_spin"))
assert(ffi.C.chdir("elsewhere") == 0)
opened()
EOL
"$ljprof" record -o out.ljp "$luajit" load.lua 2> err || fail "$(cat err)"
cd elsewhere
"$ljprof" dump ../out.ljp | grep -q "module .*path=\"$SCRATCH/lua/spin.so\"" ||
  fail "not absolute: $("$ljprof" dump ../out.ljp | grep "^ *module.*spin.so")"
ok "the file has the module's absolute path"
"$ljprof" report --native ../out.ljp > report.txt
grep -q 'spin_in_the_module' report.txt || fail "no name: $(cat report.txt)"
ok "its functions have names"
