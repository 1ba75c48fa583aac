#!/bin/sh
# Functions that LuaJIT had blacklisted before the session began: the file says so
# of them, but not of functions for which the program called jit.off().
. "$(dirname "$0")/lib.sh"
ljprof="$BUILD_DIR/bin/ljprof"

cat > warm.lua << 'LUA'
local function each(list, visit)
  local sum = 0
  for i = 1, #list do sum = sum + visit(list[i]) end
  return sum
end
local function closures(rows)
  local sum = 0
  for i = 1, #rows do
    sum = sum + each(rows[i], function(v) return v + i end)
  end
  return sum
end
local function switched_off(rows)
  local sum = 0
  for i = 1, #rows do sum = sum + #rows[i] end
  return sum
end
jit.off(switched_off)
local rows, sum = {}, 0
for i = 1, 50 do rows[i] = {i, i + 1, i + 2} end
for round = 1, 8000 do sum = sum + closures(rows) + switched_off(rows) end
assert(misc.sysprof.start{path = "warm.ljp", interval = 0.5})
local clock = os.clock
local begin = clock()
repeat
  sum = sum + closures(rows) + switched_off(rows)
until clock() - begin > 0.5
misc.sysprof.stop()
LUA
"$BUILD_DIR/bin/luajit" warm.lua > out.txt 2>&1 || fail "$(cat out.txt)"
"$ljprof" dump warm.ljp | grep '^ *proto ' > protos.txt
flags() {
  sed -n "s/.* flags=\([0-9]*\) .*name=\"$1\".*/\1/p" protos.txt | sort -u | tr '\n' ' '
}
same "a function that was blacklisted" "8 " "$(flags closures)"
same "a function that is compiled" "0 " "$(flags each)"
same "a function that was switched off" "0 " "$(flags switched_off)"
"$ljprof" report --jit --json warm.ljp > jit.json || fail "report --jit"
same "the report lists it" "closures" "$(python3 -c 'import json
r = json.load(open("jit.json"))["blacklisted"]
print(*sorted({p["function"].split()[0] for p in r} & {"each", "closures", "switched_off"}))')"
