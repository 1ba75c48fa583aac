#!/bin/sh
# A library without profilers still has misc and luaM_*, and each call answers
# that profiling is not supported.
. "$(dirname "$0")/lib.sh"
CC=${CC:-cc}

off=$BUILD_DIR/off
cmake -S "$SOURCE_DIR" -B "$off" -G Ninja -DLJPROF=OFF -DBUILD_TESTING=OFF \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLUAJIT_BASE="${LJP_BASE:-luajit2}" \
  -DLUAJIT_SOURCE_DIR="${LJP_SOURCE:-}" \
  -DLJPROF_ANALYZER="${LJP_ANALYZER:-ON}" > off.log 2>&1 || fail "$(cat off.log)"
cmake --build "$off" > off.log 2>&1 || fail "$(tail off.log)"
# Every function is called with and without arguments. The functions are those
# of the library with profilers, so that a program gets answers instead of nil.
cat > calls.lua << 'EOF'
local names = {}
for name, calls in pairs(misc) do
  for call, f in pairs(type(calls) == "table" and calls or {}) do
    for _, arguments in ipairs{ { n = 0 }, { n = 1, {} }, { n = 2, "x", 7 } } do
      local r = { n = 0 }
      local function keep(...) r = { n = select("#", ...), ... } end
      keep(f(unpack(arguments, 1, arguments.n)))
      local where = name .. "." .. call
      assert(r.n == 3 and r[1] == nil, where)
      assert(r[2] == "profiling is not supported in this build", where)
      assert(r[3] == 95, where) -- ENOTSUP
    end
    names[#names + 1] = name .. "." .. call
  end
end
table.sort(names)
for _, name in ipairs(names) do print(name) end
assert(require("misc") == misc)
-- What a program does with labels is done.
local function three(...)
  return select("#", ...), ...
end
local n, a, b = misc.profile.with({ route = "/a" }, three, nil, "b")
assert(n == 2 and a == nil and b == "b", "with")
-- Metrics need no profiler.
local fields = 0
collectgarbage()
for name, value in pairs(misc.getmetrics()) do
  fields = fields + 1
  assert(value > 0 or not name:find("alloc") and not name:find("freed"), name)
end
assert(fields == 19, fields)
EOF
"$off/bin/luajit" calls.lua > refusing.txt 2>&1 || fail "$(cat refusing.txt)"
for f in sysprof.start sysprof.stop sysprof.report memprof.start memprof.stop \
  profile.start profile.stop; do
  grep -qx $f refusing.txt || fail "misc has no $f"
done
ok "each of $(wc -l < refusing.txt) Lua calls answers so"
cat > names.lua << 'EOF'
local names = {}
for name, calls in pairs(misc) do
  for call in pairs(type(calls) == "table" and calls or {}) do names[#names + 1] = name .. "." .. call end
end
table.sort(names)
print(table.concat(names, "\n"))
EOF
same "the Lua calls are those of the library with profilers" \
  "$("$BUILD_DIR/bin/luajit" names.lua)" "$(cat refusing.txt)"

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
  check(luaM_heap_snapshot(L, "heap.ljp", NULL));
  check(luaM_listen(L, "/tmp/off.sock"));
  check(luaM_label(L, "route", "/a"));
  check(luaM_publish_labels(L, 1));
  printf("%d\n", refused);
  lua_close(L);
  return 0;
}
EOF
$CC -Wall -Werror calls.c -o calls -I"$off/include" -L"$off/lib" -lluajit-5.1
exported() {
  nm -D --defined-only "$1/lib/libluajit-5.1.so.2" |
    sed -n 's/.* \(luaM_\)/\1/p'
}
same "the C calls are those of the library with profilers" \
  "$(exported "$BUILD_DIR")" "$(exported "$off")"
# luaM_metrics works, and luaM_memprof_isrunning has a plain answer.
same "each other C call answers so" "$(($(exported "$off" | wc -l) - 2))" \
  "$(LD_LIBRARY_PATH=$off/lib ./calls)"

# narrow WHAT ARCH CMAKE-OPTION: builds for a target without GC64.
narrow() {
  cmake -S "$SOURCE_DIR" -B narrow -G Ninja -DLJPROF=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLUAJIT_BASE="${LJP_BASE:-luajit2}" \
    -DLUAJIT_SOURCE_DIR="${LJP_SOURCE:-}" \
    -DLJPROF_ANALYZER="${LJP_ANALYZER:-ON}" "$3" > narrow.log 2>&1 ||
    fail "$(cat narrow.log)"
  cmake --build narrow >> narrow.log 2>&1 || fail "$(tail narrow.log)"
  same "$1 answers so" "$2 $(cat refusing.txt)" \
    "$(narrow/bin/luajit -e 'io.write(jit.arch, " ")' calls.lua)"
  rm -rf narrow
}
# 32 bits where the compiler can, else x86-64 without GC64.
echo 'int main(void) { return 0; }' > try.c
if $CC -m32 try.c -o try > try.txt 2>&1 && ./try; then
  narrow "a 32-bit library" x86 -DCMAKE_C_FLAGS=-m32
else
  narrow "a library without GC64" x64 \
    -DLUAJIT_XCFLAGS=-DLUAJIT_DISABLE_GC64
fi
