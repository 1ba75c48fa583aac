#!/bin/sh
# ljprof report --leaks names the holder of each leak if the file has a heap
# snapshot, too (test/leaks), with every event recorded and with sampled memory.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof

for program in "$SOURCE_DIR"/test/leaks/*.lua; do
  name=$(basename "$program" .lua)
  holder=$(sed -n 's/^-- holder: \(.*[^ ]\) *$/\1/p' "$program")
  for options in 'every = true' 'sample = 4096'; do
    "$BUILD_DIR/bin/luajit" -e "
      assert(misc.memprof.start{path = '$name.ljp', $options})
      dofile('$program')
      for _ = 1, 4 do collectgarbage() end
      assert(misc.memprof.snapshot{wait = true})
      misc.memprof.stop()" || fail "$name: the program"
    "$ljprof" report --leaks --top 3 --by function "$name.ljp" > report.txt ||
      fail "$name: report"
    grep -F 'held by ' report.txt | head -n 1 > held.txt
    grep -qF -- "$holder" held.txt || fail "$name, $options: $(cat report.txt)"
    rm "$name.ljp"
  done
  ok "$name: $(sed 's/^ *//' held.txt | cut -c 1-90)"
done

# Stacks, JSON; without a snapshot nothing is said of holders.
cat > leak.lua << 'END'
assert(misc.memprof.start{ path = "leak.ljp", every = true, snapshot = arg[1] == "1" })
cache = {}
local function get(i)
  cache[i] = { name = ("x"):rep(100) .. i }
end
for i = 1, 5003 do get(i) end
for _ = 1, 4 do collectgarbage() end
assert(misc.memprof.stop())
END
"$BUILD_DIR/bin/luajit" leak.lua 1 || fail "leak.lua"
"$ljprof" report --leaks leak.ljp > report.txt || fail "report"
grep -A 3 'get leak.lua:4' report.txt | grep -q 'held by _G.cache\[\*\] ([0-9]* %)' ||
  fail "$(cat report.txt)"
ok "a stack has its holder below"
"$ljprof" report --leaks --json --by line leak.ljp > report.json || fail "JSON"
grep '"line":4' report.json | grep -q '"holder":"_G.cache\[\*\]","holder_share":' ||
  fail "$(cat report.json)"
ok "a line has its holder in JSON"
"$ljprof" report --live leak.ljp > report.txt || fail "report --live"
grep -q 'held by' report.txt && fail "holders are of leaks only"
"$BUILD_DIR/bin/luajit" leak.lua 0 || fail "leak.lua without a snapshot"
"$ljprof" report --leaks leak.ljp > report.txt || fail "report"
grep -q 'held by' report.txt && fail "there is no snapshot"
ok "without a snapshot there are no holders"

# Of the objects, 895 of 1,000 are in one table; package.loaded has 910.
cat > parts.lua << 'END'
assert(misc.memprof.start{ path = "parts.ljp", every = true, snapshot = true })
package.loaded.queue, package.loaded.second, Others = { waiting = {} }, {}, {}
local queue, second = package.loaded.queue.waiting, package.loaded.second
local function make(i) return { i } end
for i = 1, 895 do queue[i] = make(i) end
for i = 1, 15 do second[i] = make(i) end
for i = 1, 90 do Others[i] = make(i) end
for _ = 1, 4 do collectgarbage() end
assert(misc.memprof.stop())
END
"$BUILD_DIR/bin/luajit" parts.lua || fail "parts.lua"
"$ljprof" report --leaks --by function parts.ljp > report.txt || fail "report"
grep -A 1 'make parts.lua:4' report.txt |
  grep -q 'held by package.loaded.queue.waiting\[\*\] (89 %)' ||
  fail "$(cat report.txt)"
ok "a table that has nearly all of what a root has is named, not the root"
