#!/bin/sh
# The trace compiler leaves markers from the VM's start on. So a session knows
# inlined functions even if it starts long after everything was compiled and the
# chunk that defined the functions was freed. LJPROF_MARKERS=0 and
# -DLJPROF_MARKERS=OFF switch markers off.
. "$(dirname "$0")/lib.sh"

cat > late.lua << 'EOS'
local run = assert(loadstring([[
  local function leaf(x) return (x * 7 + 3) % 1013 end
  local function middle(x)
    return leaf(x) + 1
  end
  return function(n)
    local sum = 0
    for i = 1, n do
      sum = sum + middle(i)
    end
    return sum
  end]], "=gone.lua"))()
run(1000)
for _ = 1, 3 do collectgarbage() end
-- Nothing is compiled from here on.
jit.off()
assert(misc.sysprof.start{mode = "C", path = arg[1], interval = 1})
local t = os.clock()
while os.clock() < t + 0.3 do run(1e6) end
assert(misc.sysprof.stop())
EOS
"$BUILD_DIR/bin/luajit" late.lua on.ljp || fail "the program"
# inlined FILE: whether leaf and middle have samples of their own.
inlined() {
  "$BUILD_DIR/bin/ljprof" report "$1" |
    awk '/ leaf gone.lua:1$/ { a = $4 } / middle gone.lua:2$/ { b = $4 }
      END { print (a > 0 && b > 0) ? "both" : "not both" }'
}
same "a session that starts late knows inlined functions" both \
  "$(inlined on.ljp)"

LJPROF_MARKERS=0 "$BUILD_DIR/bin/luajit" late.lua off.ljp || fail "the program"
# marks FILE: the number of markers in the trace that has most.
marks() {
  "$BUILD_DIR/bin/ljprof" dump "$1" |
    sed -n 's/^  trace id.* marks=\([0-9]*\).*/\1/p' | sort -rn | head -n 1
}
[ "$(marks on.ljp)" -gt 3 ] || fail "a trace has $(marks on.ljp) markers"
same "LJPROF_MARKERS=0 switches them off" 0 "$(marks off.ljp)"

# More markers, and more calls, than the limits, with hardly any code.
cat > many.lua << 'EOS'
local body, path = arg[1]:rep(tonumber(arg[2])), arg[3]
local run = assert(loadstring("local abs, x, y = math.abs, 1, 2 " ..
  "for i = 1, 200 do " .. body .. "y = y + 1 end return x", "=many.lua"))
assert(misc.sysprof.start{mode = "C", path = path, interval = 1})
local before = misc.sysprof.status().marks_cut
run()
print(before, misc.sysprof.status().marks_cut)
assert(misc.sysprof.stop())
EOS
# many BODY COUNT: the counts of the one trace that many.lua makes.
many() {
  "$BUILD_DIR/bin/luajit" many.lua "$1" "$2" many.ljp || fail "the program"
  "$BUILD_DIR/bin/ljprof" dump many.ljp |
    sed -n 's/^  trace id.* \(marks=[0-9]*\).* \(marks_cut=[0-9]*\)$/\1 \2/p'
}
# With an addition and the loop's end there are 6507 and 9003 bytecodes.
same "markers after too many calls are counted as left out" \
  "0	1389
marks=5118 marks_cut=1389" "$(many "x = abs(x) " 1301)"
same "too many markers are counted as left out" "0	814
marks=8189 marks_cut=814" "$(many "x = y " 9001)"
# left_out FILE: the report's notice about it.
left_out() {
  "$BUILD_DIR/bin/ljprof" report "$1" | sed -n 's/^! \(.*left out\):.*/\1/p'
}
same "a report says so" \
  "1 trace is not wholly marked, 814 marks were left out" "$(left_out many.ljp)"
same "it says nothing about complete traces" "" "$(left_out on.ljp)"

# Our build has a command that is built without markers; the option builds such
# libraries.
"$BUILD_DIR/bin/luajit_no_markers" late.lua none.ljp || fail "the program"
same "a build without markers has none" 0 "$(marks none.ljp)"
cmake -S "$SOURCE_DIR" -B none -G Ninja -DLJPROF_MARKERS=OFF \
  -DBUILD_TESTING=OFF -DLUAJIT_BASE="${LJP_BASE:-luajit2}" \
  -DLUAJIT_SOURCE_DIR="${LJP_SOURCE:-}" > none.log 2>&1 ||
  fail "$(cat none.log)"
ninja -C none -t commands libluajit |
  grep 'src/luajit/traces/markers\.c$' > compiled.txt ||
  fail "markers.c is not compiled"
grep -q -e ' -DLJP_NO_MARKERS=1 ' compiled.txt || fail "$(cat compiled.txt)"
ok "-DLJPROF_MARKERS=OFF builds without markers"
