#!/bin/sh
# Functions of LuaJIT's libraries that have no name in Lua, such as iterators, and
# those that LuaJIT calls otherwise, have a name that people know: in reports,
# exports and the page, and in files that are exported for Tarantool's tools.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
[ "$("$BUILD_DIR/bin/luajit" -e 'print(misc.sysprof.start and 1)')" = 1 ] || {
  echo "skipped: this build has no profiler"
  exit 0
}

echo 'return function(i) return {i} end' > module.lua
cat > app.lua << 'END'
package.path = "./?.lua"
local kept = {}
local function keep(x) kept[#kept + 1] = x end
for i = 1, 100 do keep("line " .. i) end
local file = assert(io.open("lines.txt", "w"))
file:write(table.concat(kept, "\n"))
file:close()
for word in ("w%d "):rep(100):gsub("%%d", tostring):gmatch("%S+") do keep(word) end
for i = 1, 100 do keep((("x%d y"):format(i):gmatch("%w+"))()) end
for line in io.lines("lines.txt") do keep(line .. "?") end
keep(coroutine.wrap(function() return {} end)())
keep(require("module")(1))
END

for jit in on off; do
  "$ljprof" record --memory --every --no-cpu --force -o app.ljp -- \
    "$BUILD_DIR/bin/luajit" -j$jit app.lua 2> err.txt || fail "$(cat err.txt)"
  "$ljprof" report --alloc --json app.ljp > report.txt || fail "report"
  for value in alloc_space inuse_space; do
    "$ljprof" export --to collapsed --lua --value $value -o - app.ljp
  done > collapsed.txt || fail "export --to collapsed"
  "$ljprof" flame -o - app.ljp > page.txt || fail "flame"
  "$ljprof" export --to ljm --force -o app.bin app.ljp 2> err.txt ||
    fail "$(cat err.txt)"
  "$ljprof" report --alloc --json app.bin > again.txt || fail "report of ljm"
  for name in "string.gmatch (iterator)" "io.lines (iterator)" \
    "coroutine.wrap (resume)" "require" "package.loaders (Lua)"; do
    grep -qF "{\"name\":\"$name\"," report.txt || fail "no row '$name'"
    grep -qF ";$name" collapsed.txt || fail "no '$name' in an export"
    grep -qF "\"$name\"" page.txt || fail "no '$name' in the page"
  done
  ! grep -E '_aux|lj_cf_package|io_file_iter' report.txt collapsed.txt \
    again.txt > bad.txt || fail "LuaJIT's own names: $(head -n 5 bad.txt)"
  ok "-j$jit: names that people know"
done
"$ljprof" expect app.ljp 'alloc.own(string.gmatch (iterator)) > 100 B' \
  'alloc.own(io.lines (iterator)) > 100 B' > out.txt || fail "$(cat out.txt)"
ok "budgets take such names"

# Exported samples have Tarantool's numbers of builtins.
cat > cpu.lua << 'END'
local report = misc.sysprof.report
repeat
  for _ = 1, 1000 do for w in ("a b c d e"):gmatch("%a") do assert(w) end end
until report().samples > 20 or os.clock() > 20
END
"$ljprof" record --force -o cpu.ljp -- "$BUILD_DIR/bin/luajit" -joff cpu.lua \
  2> err.txt || fail "$(cat err.txt)"
"$ljprof" export --to ljp --force -o cpu.bin cpu.ljp 2> err.txt ||
  fail "$(cat err.txt)"
"$ljprof" dump --json cpu.bin > dump.txt || fail "dump"
grep -q '"builtin":[0-9]*,"name":"string.gmatch_aux"' dump.txt ||
  fail "no number of the iterator: $(head -c 600 dump.txt)"
"$ljprof" report --json cpu.bin > report.txt || fail "report of samples"
grep -qF '{"name":"string.gmatch (iterator)",' report.txt ||
  fail "another name: $(head -c 900 report.txt)"
ok "samples for Tarantool's tools have its numbers"
