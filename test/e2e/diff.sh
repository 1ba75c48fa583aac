#!/bin/sh
# ljprof diff on two versions of a program: the fix of a function shows, a line
# that was inserted does not. Every allocation is recorded, so figures are exact.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
mkdir before after
cat > before/app.lua << 'END'
local keep = {}
local function hot(n)
  local t = {}
  for i = 1, n do
    t[i] = {i}
  end
  return t
end
local function twin() return {1} end
local function other()
  local function twin() return {1, 2} end
  return twin()
end
local function steady(n)
  for i = 1, n do
    keep[i] = {i, i}
  end
end
local function top(n)
  hot(n)
  steady(500)
  twin()
  other()
end
top(2000)
if arg[1] then
  require("misc").memprof.stop()
end
END
{
  echo "-- two lines"
  echo "-- were inserted"
  sed '0,/1, n do/s//1, math.min(n, 200) do/' before/app.lua
} > after/app.lua
sed 's/math.min(n, 200)/math.min(n, 500)/' after/app.lua > after/renamed.lua
record() { # FILE DIR SCRIPT ARGUMENT...
  file=$PWD/$1
  (
    cd "$2"
    shift 2
    "$ljprof" record --memory --every --no-cpu -o "$file" -- \
      "$BUILD_DIR/bin/luajit" "$@"
  ) > out.txt 2>&1 || fail "not recorded: $(cat out.txt)"
}
record before.ljp before app.lua
record after.ljp after app.lua
record renamed.ljp after renamed.lua
record stopped.ljp after app.lua stop

"$ljprof" diff before.ljp after.ljp > diff.txt || fail "diff"
grep -q '^!' diff.txt && fail "a doubt: $(cat diff.txt)"
grep -q '^compared by total: both programs ran to their end ' diff.txt ||
  fail "not by total: $(cat diff.txt)"
grep -Eq '(new|gone) ' diff.txt && fail "something is new: $(cat diff.txt)"
grep -q 'trace ' diff.txt && fail "a trace in it: $(cat diff.txt)"
ok "no function is new or gone"
same "totals come first" totals "$(sed -n '5p' diff.txt)"
grep -Eq '^ +-[0-9.]+ KiB +0 B .* -[0-9.]+%  Allocations$' diff.txt ||
  fail "no totals: $(cat diff.txt)"
first() { # LIST: the name of its first row
  sed -n "/^functions, by $1/,/^\$/p" diff.txt |
    sed -n '3s/.*\(less\|more\)  //p'
}
same "the fix comes first, at its new line" "hot app.lua:4" "$(first 'their own')"
sed -n '/^functions, by their change with/,/^stacks$/p' diff.txt > totals.txt
for function in "hot app.lua:4" "top app.lua:21" "main chunk app.lua"; do
  grep -q "less  $function\$" totals.txt ||
    fail "$function by total: $(cat totals.txt)"
done
ok "its callers changed by total, too"

# The three ways to compare, and why.
"$ljprof" diff before.ljp stopped.ljp > diff.txt || fail "diff"
grep -q "^compared per second of recording: one session is only a part" \
  diff.txt || fail "why: $(cat diff.txt)"
"$ljprof" diff stopped.ljp stopped.ljp > diff.txt || fail "diff"
grep -q "^compared per second of recording: the sessions are parts" diff.txt ||
  fail "why: $(cat diff.txt)"
for how in total per-second share; do
  "$ljprof" diff --$how before.ljp after.ljp --json > $how.json || fail "--$how"
  grep -q "\"compared\":\"$(echo $how | tr - _)\"," $how.json ||
    fail "--$how: $(cat $how.json)"
done
ok "each way on request"
if command -v python3 > python.txt; then
  python3 - << 'END' || fail "the figures of a diff are wrong"
import json, subprocess, sys
total, rate, share = (json.load(open(how + ".json"))
                      for how in ("total", "per-second", "share"))
views = [d["totals"]["views"] for d in (total, rate, share)]
assert views[0] == views[1] == views[2], views
alloc = views[0][0]
assert alloc["view"] == "alloc" and alloc["total_error"] == 0, alloc
assert total["totals"]["before_value"] == alloc["total_before"]
assert sum(r["self_before"] for r in total["rows"]) == alloc["total_before"]
seconds = rate["totals"]["before_duration_ns"] / 1e9
assert abs(rate["totals"]["before_value"] * seconds - alloc["total_before"]) < 2
assert share["totals"]["before_value"] == share["totals"]["after_value"] == 1 << 30
END
  ok "totals are the same whatever is compared"
fi
"$ljprof" diff before.ljp after.ljp -o page.html || fail "no page"
grep -Eq '\["Allocations","[0-9.]+ KiB → [0-9.]+ KiB \(-[0-9.]+ %\)"\]' page.html ||
  fail "no totals in the page"
ok "the page has the totals"
refuses "two ways" 2 "only one of --total" \
  "$ljprof" diff --total --share before.ljp after.ljp

# A function whose work is now done by what it calls is not gone.
cat > before/moved.lua << 'END'
local keep = {0}
local function make(i) return {i} end
local function fill(n) for i = 1, n do keep[1] = {i} end end
local function left() keep[1] = {} end
fill(100) make(1) left()
END
sed 's/= {i}/= make(i)/; s/ left()$//' before/moved.lua > after/moved.lua
record moved1.ljp before -joff moved.lua
record moved2.ljp after -joff moved.lua
verdict() { # FROM TO FUNCTION: what is said of its own change
  "$ljprof" diff --all --json "$1" "$2" 2> err.txt |
    tr '{' '\n' | sed -n "s/^\"name\":\"$3\",.*\"self_verdict\":\"\([a-z]*\)\".*/\1/p"
}
same "a function that calls others for its work" less \
  "$(verdict moved1.ljp moved2.ljp fill)"
same "a function that does its work itself" more \
  "$(verdict moved2.ljp moved1.ljp fill)"
same "a function that is gone" gone "$(verdict moved1.ljp moved2.ljp left)"
same "a function that is new" new "$(verdict moved2.ljp moved1.ljp left)"
"$ljprof" diff moved1.ljp moved2.ljp > diff.txt || fail "diff"
same "in text" 1 "$(grep -c ' 0 B  less  *fill moved.lua:3$' diff.txt)"

# A renamed script is the same program.
"$ljprof" diff before.ljp renamed.ljp > diff.txt || fail "diff"
grep -q '^!' diff.txt && fail "a doubt: $(cat diff.txt)"
grep -Eq '(new|gone)  (hot|steady|top|other|main)' diff.txt &&
  fail "a function is new: $(cat diff.txt)"
same "the fix in a renamed script" "hot renamed.lua:4" "$(first 'their own')"
sed 's/hot/a/g; s/twin/b/g; s/other/c/g; s/steady/d/g; s/top/e/g' \
  before/app.lua > after/unlike.lua
record unlike.ljp after unlike.lua
"$ljprof" diff before.ljp unlike.ljp > diff.txt || fail "diff"
same "another script" \
  "! the profiles are of different scripts: before app.lua, after unlike.lua" \
  "$(grep different diff.txt)"
same "the doubt about functions is told once" 1 \
  "$(grep -c 'hardly any function in common' diff.txt)"

# A fix that replaces all that took time raises no doubt.
mkdir slow fast
echo 'local n = 0 for i = 1, 400000 do n = n + #os.date("!%c", i) end' > slow/fix.lua
echo 'local n = 0 for i = 1, 4e7 do n = n + i % 7 end' > fast/fix.lua
for side in slow fast; do
  ( cd $side && "$ljprof" record --timer posix -o ../$side.ljp -- \
    "$BUILD_DIR/bin/luajit" fix.lua ) 2> err.txt || fail "$(cat err.txt)"
done
"$ljprof" diff slow.ljp fast.ljp > diff.txt || fail "diff"
same "a fix that replaces all" "" "$(grep 'in common' diff.txt || :)"

# What only one of the sessions recorded is neither new nor gone.
# Both work for so long that samples meet them, whatever the timer.
cat > work.lua << 'END'
local enough = os.clock() + 0.2
repeat
  local t = {}
until os.clock() > enough
END
"$ljprof" record -o cpu.ljp -- "$BUILD_DIR/bin/luajit" -joff work.lua \
  > out.txt 2>&1 || fail "not recorded: $(cat out.txt)"
"$ljprof" record --memory --sample 4096 -o both.ljp -- "$BUILD_DIR/bin/luajit" \
  -joff work.lua > out.txt 2>&1 || fail "not recorded: $(cat out.txt)"
"$ljprof" diff cpu.ljp both.ljp --view cpu > diff.txt || fail "diff"
grep -Eq '^ +- +- +- +~[0-9.]+ [KMG]?i?B +Allocations, not recorded before$' \
  diff.txt || fail "what was not recorded: $(cat diff.txt)"
"$ljprof" diff cpu.ljp both.ljp --view cpu --json > diff.json || fail "--json"
grep -q '{"view":"alloc","unit":"bytes","total_after":[0-9]*}' diff.json ||
  fail "what was not recorded: $(cat diff.json)"
"$ljprof" diff cpu.ljp both.ljp -o lack.html || fail "no page"
grep -q '\["Allocations","not recorded → ' lack.html ||
  fail "what was not recorded, in the page"
ok "what one session did not record is not compared"
"$ljprof" diff both.ljp both.ljp --view cpu > diff.txt || fail "diff"
grep -q '%  Allocations (--view alloc)$' diff.txt ||
  fail "the option for another kind of data: $(cat diff.txt)"
refuses "no data in common" 1 \
  "no kind of data is in both files: cpu.ljp holds cpu; before.ljp holds alloc" \
  "$ljprof" diff cpu.ljp before.ljp
refuses "a view that is not there" 1 "the view 'wall' cannot be compared: " \
  "$ljprof" diff before.ljp after.ljp --view wall

# Each list says how many rows it leaves out.
"$ljprof" diff --top 1 before.ljp after.ljp > few.txt || fail "diff --top 1"
"$ljprof" diff --top 1 --all before.ljp after.ljp > all.txt || fail "--all"
"$ljprof" diff --top 0 --all before.ljp after.ljp > every.txt || fail "--top 0"
count() { # FILE LIST: its rows, and those that it leaves out
  sed -n "/^$2/,/^\$/p" "$1" | awk '
    / (same|new|gone|more|less)  / { n++ }
    /^  and [0-9]+ more/ { n += $2 }
    /^  [0-9]+ (function|stack)s? did not change/ { n += $1 }
    END { print n + 0 }'
}
for list in "functions, by their own" "functions, by their change" stacks; do
  rows=$(count every.txt "$list")
  [ "$rows" -gt 3 ] || fail "$list: $(cat every.txt)"
  same "$list: left out with --top" "$rows" "$(count few.txt "$list")"
  same "$list: left out with --top and --all" "$rows" "$(count all.txt "$list")"
done
