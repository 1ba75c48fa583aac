#!/bin/sh
# The Lua view: for programs that spend their time in the VM's code, the rows are
# functions that their author knows. The native view has the same totals.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
[ "$("$luajit" -e 'print(misc.sysprof.start and 1)')" = 1 ] || {
  echo "skipped: this build has no profiler"
  exit 0
}

# Each part does the same amount of work, whatever the machine does.
cat > app.lua << 'END'
local ffi = require("ffi")
ffi.cdef[[void qsort(void *, size_t, size_t, int (*)(const int *, const int *));]]
local function by_price(a, b) return a.price < b.price end
local function sort_items()
  local t = {}
  for i = 1, 20000 do t[i] = {price = i * 7919 % 10007} end
  table.sort(t, by_price)
end
local function join_names()
  local s = ""
  for i = 1, 5000 do s = s .. "name" .. i end
  return s
end
local text = ("a <b> & c "):rep(2000)
local function escape()
  for _ = 1, 20 do text:gsub("[<>&]", "?") end
end
local function collect()
  for _ = 1, 40 do collectgarbage() end
end
local numbers = ffi.new("int[3000]")
local less = ffi.cast("int (*)(const int *, const int *)",
  function(a, b) return a[0] - b[0] end)
local function sort_numbers()
  for i = 0, 2999 do numbers[i] = i * 7919 % 3001 end
  ffi.C.qsort(numbers, 3000, 4, less)
end
jit.off(sort_numbers)
-- However much a sample costs on a busy machine, there are as many.
assert(misc.sysprof.start{path = arg[1], interval = 0.2, max_overhead = 0})
for _ = 1, 4 do
  sort_items() join_names() escape() collect() sort_numbers()
end
misc.sysprof.stop()
END

# rows OPTION...: the names of the rows with their own time in ns, largest first.
rows() {
  "$ljprof" report --json --top 0 "$@" |
    sed -n 's/^{"name":"\(.*\)","self_samples":.*"self_ns":\([0-9]*\),.*/\2 \1/p'
}
sum() {
  awk '{ n += $1 } END { printf "%d\n", n }' "$1"
}

# tells LINES FILE: how many of the first lines, without notices, tell of --native.
tells() {
  grep -v '^! ' "$2" | head -n "$1" | grep -c -e --native
}

for mode in -jon -joff; do
  "$luajit" $mode app.lua app.ljp || fail "the program"
  rows app.ljp > lua.txt
  rows --native app.ljp > native.txt
  grep -qE ' (lj_|lua_|gc_|auxsort|_start|main$)' native.txt ||
    fail "no machine code in the native view: $(head native.txt)"
  ok "$mode: --native shows machine code"
  grep -E ' (lj_|lua_|gc_|auxsort|_start|main$|trace |pmain)' lua.txt > bad.txt &&
    fail "rows of machine code: $(cat bad.txt)"
  ok "$mode: no row is machine code of the VM"
  same "$mode: both views have the same time" "$(sum native.txt)" \
    "$(sum lua.txt)"
  for name in table.sort string.gsub "join_names app.lua:9" \
    "by_price app.lua:3" "[garbage collector]" qsort; do
    grep -qF "$name" lua.txt || fail "no row '$name': $(cat lua.txt)"
  done
  ok "$mode: the functions that the program called have rows"
  "$ljprof" report --tree --min 0 app.ljp > tree.txt
  grep -qE ' \| \| qsort' tree.txt || fail "no qsort in: $(cat tree.txt)"
  grep -qE ' \| \| \| function app.lua:23$' tree.txt ||
    fail "the callback is not above qsort: $(cat tree.txt)"
  grep -qE ' \| \| \| \[garbage collector\]$' tree.txt ||
    fail "the collector is not above collectgarbage: $(cat tree.txt)"
  ok "$mode: Lua that C calls back and the collector stand in the tree"
  [ $mode = -jon ] || {
    "$ljprof" annotate --context 0 app.ljp app.lua > text.txt
    grep -q '%     7    table.sort(t, by_price)$' text.txt ||
      fail "no heat at the sort: $(cat text.txt)"
    ok "annotate has the time of table.sort at the line that calls it"
    "$ljprof" annotate --context 0 app.ljp lib_table.c > text.txt
    grep -q '%  *[1-9][0-9]*  ' text.txt || fail "no C line: $(cat text.txt)"
    ok "annotate shows lines of C in the native view"
  }
  "$ljprof" export --to collapsed --value samples -o all.txt --force app.ljp
  "$ljprof" export --to collapsed --value samples --lua -o lua.txt --force \
    app.ljp
  same "$mode: exports of both views have the same samples" \
    "$(awk '{ n += $NF } END { print n }' all.txt)" \
    "$(awk '{ n += $NF } END { print n }' lua.txt)"
  grep -q ';lj_' all.txt || fail "an export has no machine code: $(cat all.txt)"
  grep -qE ';(lj_|gc_)' lua.txt && fail "machine code: $(cat lua.txt)"
  for format in pprof speedscope callgrind perf-script chrome-trace; do
    "$ljprof" export --to $format --lua -o out --force app.ljp ||
      fail "export --to $format --lua"
  done
  ok "$mode: every format can be of the Lua view"
  "$ljprof" diff --json app.ljp app.ljp 2> err.txt > lua.json
  "$ljprof" diff --json --native app.ljp app.ljp 2> err.txt > native.json
  grep -q '"name":"table.sort' lua.json || fail "no sort: $(cat lua.json)"
  grep -qE '"name":"(lj_|lua_|gc_)' lua.json && fail "VM code in a comparison"
  grep -qE '"name":"(lj_|lua_|gc_)' native.json ||
    fail "no VM code: $(cat native.json)"
  ok "$mode: diff compares the program's functions, with --native all"
  "$ljprof" diff app.ljp app.ljp > text.txt 2> err.txt
  same "$mode: diff tells of the other view" 1 \
    "$(tells 6 text.txt)"
  "$ljprof" diff --native app.ljp app.ljp > text.txt 2> err.txt
  same "$mode: in the native view it does not" 0 "$(grep -c -e --native text.txt)"
  "$ljprof" report app.ljp > text.txt
  grep -q ' string.gsub  ([0-9]* % for escape app.lua:15)$' text.txt ||
    fail "gsub does not say for whom it works: $(cat text.txt)"
  ok "$mode: a builtin's row names the Lua function that it works for"
  same "$mode: the first screen tells of the other view" 1 \
    "$(tells 4 text.txt)"
  "$ljprof" report --native app.ljp > text.txt
  same "$mode: the native view does not" 0 "$(grep -c -e --native text.txt)"
done

# Lua's parser counts for the builtin that runs it.
"$luajit" -e 'misc.sysprof.start{path = "load.ljp", interval = 0.1}
  assert(loadstring(("x = y\n"):rep(3e5)))
  misc.sysprof.stop()' || fail "the second program"
"$ljprof" report --by kind load.ljp > text.txt
grep -q '  builtin$' text.txt || fail "no builtin in: $(cat text.txt)"
ok "the parser counts for the builtin that runs it"

# Memory: functions that only call others need no row.
"$luajit" -joff -e 'local function make() return {1} end
  local function call() for i = 1, 100 do make() end end
  call()
  assert(misc.memprof.start{path = "mem.ljp", every = true})
  call()
  misc.memprof.stop()' || fail "the third program"
"$ljprof" report --alloc mem.ljp > text.txt
grep '^ *0 B' text.txt && fail "rows of 0 B: $(cat text.txt)"
grep -q 'only call' text.txt || fail "callers are not told of: $(cat text.txt)"
"$ljprof" report --alloc --top 0 mem.ljp > text.txt
grep -q '^ *0 B.*call' text.txt || fail "no caller with --top 0: $(cat text.txt)"
ok "memory: no row of 0 B"
