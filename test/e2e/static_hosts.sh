#!/bin/sh
# Programs with our static library: PIE and not, stripped and not, fully static,
# with hidden functions, garbage collection of sections, LTO. ljprof record
# records them, whole stacks from the start of the program. Names are those of
# the program's functions; where it has none, the place in the file stands.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
CC=${CC:-cc}
cat > host.c << 'END'
#include <stdio.h>
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
__attribute__((noinline)) static double host_spin(int n)
{
  volatile double sum = 0;
  for (int i = 0; i < n; i++)
    sum += i * 0.5;
  return sum;
}
__attribute__((noinline)) static int host_work(lua_State *L)
{
  lua_pushnumber(L, host_spin((int)luaL_checkinteger(L, 1)));
  return 1;
}
#ifdef LONG_END
/* What the C runtime's own function without unwind information calls last. */
void *__real___deregister_frame_info(const void *begin);
void *__wrap___deregister_frame_info(const void *begin);
__attribute__((noinline)) void *
__wrap___deregister_frame_info(const void *begin)
{
  void *result = __real___deregister_frame_info(begin);
  host_spin(20000000);
  return result;
}
#endif
int main(int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "host_work", host_work);
  if (luaL_loadfile(L, argv[argc - 1]) || lua_pcall(L, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
  }
  lua_close(L);
  return 0;
}
END
cat > work.lua << 'END'
assert(type(misc.sysprof.start) == "function")
local function lua_part()
  local t = {}
  for i = 1, 1000 do t[i] = {i} end
  return #t
end
local function c_part() local x = host_work(20000) return x end
local function thrower() return pcall(error, "x") end
local stop = os.clock() + 0.1
repeat
  lua_part() thrower()
  local n = coroutine.wrap(function() local x = c_part() return x end)()
until os.clock() > stop
END

# link OUT OPTIONS...: options of the compiler; $last come behind the library.
link() {
  out=$1
  shift
  # shellcheck disable=SC2086 # words are wanted
  "$CC" -O2 -g -I"$BUILD_DIR/include" host.c -o "$out" "$@" \
    "$BUILD_DIR/lib/libluajit-5.1.a" -lm $last > link.log 2>&1 ||
    fail "$out: $(grep -v warning link.log)"
}

# cut_stacks: the stacks of p.ljp that were cut, and what lies where.
cut_stacks() {
  "$ljprof" dump p.ljp | awk '
    / (module|trace) id=/ { print }
    /^  [a-z]/ { cut = / cut="/ && !/ cut="whole"/ }
    cut { print }'
}

# recorded PROGRAM START NAME FORBIDDEN: its stacks begin with START, are whole
# and hold NAME under a Lua function, and no frame is called FORBIDDEN.
recorded() {
  "$ljprof" record --memory --sample 4096 --force -o p.ljp "./$1" work.lua \
    2> err || fail "$1: $(cat err)"
  "$ljprof" check p.ljp > check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" export --to collapsed p.ljp --force -o p.txt 2> err ||
    fail "$1: $(cat err)"
  grep -q 'cut short' err && fail "$1: $(cat err && cut_stacks)"
  grep -Eq "^$2;.*;c_part [^;]*;$3[; ]" p.txt || fail "$1: $(cat p.txt)"
  grep -Ev "^$2;" p.txt > other.txt && fail "$1: $(cat other.txt)"
  grep -E "$4" p.txt > other.txt && fail "$1: $(cat other.txt)"
  "$ljprof" report --alloc p.ljp | grep -q ' lua_part ' ||
    fail "$1: no allocation"
  ok "$1: $(grep -c . p.txt) stacks"
}
# Both programs of a link: with its symbols, and stripped. Which functions a
# stripped one still names depends on what it exports.
both() {
  recorded "$1" _start 'host_work;host_spin' "$1[+]0x"
  strip -o "$1.stripped" "$1"
  recorded "$1.stripped" "($1.stripped[+]0x[0-9a-f]+|_start)" \
    "$1.stripped[+]0x[0-9a-f]+;$1.stripped[+]0x[0-9a-f]+" 'host_'
}
last=-ldl
link pie -pie -fPIE -Wl,-E
link position -no-pie -fno-pie
link tight -fvisibility=hidden -ffunction-sections -flto \
  -Wl,--gc-sections,--exclude-libs,ALL,-z,now
for program in pie position tight; do
  both $program
done
same "it has no shared LuaJIT" "" "$(ldd ./pie | grep libluajit || :)"

# Where a libc.a is installed.
if echo 'int main(void) { return 0; }' > probe.c &&
  "$CC" -static probe.c -o probe 2> link.log; then
  last=
  link whole -static
  link whole_pie -static-pie -fPIE
  for program in whole whole_pie; do
    both $program
  done
  link long_end -static -DLONG_END -Wl,--wrap=__deregister_frame_info
  recorded long_end _start 'host_work;host_spin' "long_end[+]0x"
  grep -q ';__do_global_dtors_aux;__wrap___deregister_frame_info;host_spin ' \
    p.txt || fail "no sample in the end of the program: $(cat p.txt)"
  ok "the end of a program, in code without unwind information"
fi

# The command luajit, linked statically.
"$CC" -D_GNU_SOURCE -I"$SOURCE_DIR" -I"$BUILD_DIR/include" \
  "$SOURCE_DIR/src/luajit/command.c" "$BUILD_DIR/luajit/patched/luajit.o" \
  -Wl,--wrap=luaL_openlibs "$BUILD_DIR/lib/libluajit-5.1.a" \
  -Wl,-E -lm -ldl -o luajit > link.log 2>&1 || fail "luajit: $(cat link.log)"
strip luajit
echo 'local s = 0 for i = 1, 1e8 do s = s + i % 7 end' > loop.lua
"$ljprof" record --force -o p.ljp ./luajit loop.lua 2> err ||
  fail "luajit: $(cat err)"
"$ljprof" report p.ljp | grep -q 'loop.lua' || fail "luajit: no report"
ok "the command luajit"
