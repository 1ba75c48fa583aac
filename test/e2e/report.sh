#!/bin/sh
# ljprof report on golden streams and on new profiles: the content of each view,
# agreement of the views with each other and with the stream, and errors.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data

# Number and sum of weights of a stream's samples, by the reader.
counted() { # FILE KIND-OF-PRODUCER
  "$ljprof" dump "$1" | awk -v kind="kind=\"$2\"" '
    /^ *producer / && index($0, kind) { split($2, id, "="); mine[id[2]] = 1 }
    /^ *sample / {
      split($3, p, "="); sub(/.* weight=/, ""); split($0, w, " ")
      if (mine[p[2]]) { n++; ns += w[1] }
    }
    END { printf "%d %d\n", n, ns }'
}
# total KEY: a number of the totals.
total() { # KEY < JSON
  sed -n "1s/.*{\"totals\":{.*\"$1\":\([0-9]*\).*/\1/p"
}

for file in every-record killed rotated small-table vm-closed; do
  # shellcheck disable=SC2046 # two numbers
  set -- $(counted "$data/$file.ljp" cpu)
  [ "$1" -gt 0 ] || fail "$file: no samples"
  # shellcheck disable=SC2086 # an option or none
  for by in function line module file kind trace stack thread vm state; do
    for view in "" --native; do
      "$ljprof" report --cpu --json --by $by $view "$data/$file.ljp" > r.json ||
        fail "report --by $by $view $file"
      grep -o '"self_ns":[0-9]*' r.json | cut -d: -f2 |
        awk '{ n += $1 } END { printf "%d\n", n }' > sum.txt
      same "$file by $by $view: the rows add up" "$2" "$(cat sum.txt)"
    done
    same "$file by $by: samples" "$1" "$(total samples < r.json)"
    same "$file by $by: ns" "$2" "$(total cpu_ns < r.json)"
  done
  # shellcheck disable=SC2086 # an option or two
  for tree in --tree --bottom-up "--tree --native" "--bottom-up --native"; do
    "$ljprof" report --cpu --json $tree "$data/$file.ljp" > r.json ||
      fail "report $tree $file"
    grep -o '"parent":0,.*"total_ns":[0-9]*' r.json |
      sed 's/.*"total_ns"://' | awk '{ n += $1 } END { printf "%d\n", n }' \
      > sum.txt
    same "$file $tree: the outer branches add up" "$2" "$(cat sum.txt)"
    grep -o '"self_ns":[0-9]*' r.json | cut -d: -f2 |
      awk '{ n += $1 } END { printf "%d\n", n }' > sum.txt
    same "$file $tree: self adds up" "$2" "$(cat sum.txt)"
  done
done

# Parts selected by filters add up to the whole.
file=$data/every-record.ljp
# shellcheck disable=SC2046 # two numbers
set -- $(counted "$file" cpu)
part() {
  "$ljprof" report --cpu --json "$@" "$file" 2> err.txt > r.json || :
  total cpu_ns < r.json
}
same "what has a frame and what has not" "$2" \
  $(($(part --focus 'lib\.fn1') + $(part --ignore 'lib\.fn1')))
[ "$(part --focus 'lib\.fn1')" -gt 0 ] || fail "nothing matches lib.fn1"
same "before a moment and after" "$2" \
  $(($(part --time ..0.00001) + $(part --time 0.00001..)))
[ "$(part --time ..0.00001)" -gt 0 ] || fail "nothing before the moment"
"$ljprof" dump "$file" | grep "^ *thread id" > threads.txt
sum=0
# shellcheck disable=SC2013 # numbers
for id in $(sed 's/^ *thread id=\([0-9]*\) .*/\1/' threads.txt | sort -u); do
  sum=$((sum + $(part --thread "$id")))
done
same "thread by thread" "$2" "$sum"

# Wrong usage.
refuses "a regex that does not compile" 2 "'(' is not a regular expression" \
  "$ljprof" report --focus '(' "$file"
refuses "a range that is none" 2 "'3..1' is not a range" \
  "$ljprof" report --time 3..1 "$file"
refuses "a range of words" 2 "'now..' is not a range" \
  "$ljprof" report --time now.. "$file"
refuses "an unknown grouping" 2 "'colour' is not one of function" \
  "$ljprof" report --by colour "$file"
refuses "a tree of threads" 2 "but not 'thread'" \
  "$ljprof" report --tree --by thread "$file"
refuses "two measures" 2 "only one of" "$ljprof" report --cpu --live "$file"
refuses "a number of rows that is none" 2 "'-3' is not a number of rows" \
  "$ljprof" report --top -3 "$file"
code=0
"$ljprof" report --focus nosuchfunction "$file" > out.txt 2> err.txt || code=$?
same "an empty selection is 1" 1 "$code"
grep -q 'nothing to show: no CPU time in what is selected' err.txt ||
  fail "no word of the empty selection: $(cat err.txt)"
refuses "a time after the end" 1 "nothing to show: no CPU time in what is" \
  "$ljprof" report --time 5000.. "$SOURCE_DIR/test/data/every-record.ljp"

# Losses and gaps are shown at the top.
"$ljprof" report "$file" > out.txt || fail "report"
sed '/^$/,$d' out.txt > head.txt
grep -q '^! 29 events lost before the file: ring full$' head.txt ||
  fail "no losses at the top: $(cat head.txt)"
"$ljprof" report "$data/killed.ljp" > out.txt || fail "report of killed"
head -n 3 out.txt | grep -q '^! the file was not closed' ||
  fail "no word of the missing end"
{
  head -c 1000 "$file"
  printf X
  tail -c +1002 "$file"
} > flip.ljp
"$ljprof" report flip.ljp > out.txt || fail "report of a damaged file"
grep -q '^! 1 gap of .* 1 block missing, with [1-9][0-9]* events$' out.txt ||
  fail "no word of the gap: $(head out.txt)"
ok "losses, gaps and a missing end stand at the top"
grep -q "$(printf '\033')" out.txt && fail "colours without a terminal"
ok "no colours without a terminal"

# Pipes.
"$ljprof" report --json "$file" > a.json
"$ljprof" report --json - < "$file" > b.json
cmp a.json b.json || fail "standard input reads otherwise"
ok "standard input reads like the file"
"$ljprof" report "$file" 2> err.txt | head -n 1 > one.txt
same "a closed pipe is quiet" "" "$(cat err.txt)"
if command -v python3 > python.txt; then
  for by in function line stack thread; do
    "$ljprof" report --json --by $by "$file" | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert list(report)[0] == "totals" and list(report)[-1] == "rows", list(report)
assert report["rows"]' || fail "--by $by: no JSON, or not totals first"
  done
  ok "JSON: totals first, then rows"
fi

# A known program: its most expensive function comes first.
if [ "$("$BUILD_DIR/bin/luajit" -e 'print(misc.sysprof.start and 1)')" = 1 ]; then
  cat > work.lua << 'END'
local function leaf(n)
  local x = 0
  for i = 1, n do x = x + math.sin(i) end
  return x
end
local function branch() return leaf(3e6) + 1 end
assert(misc.sysprof.start{path = "work.ljp", interval = 0.5})
for _ = 1, 10 do branch() end
misc.sysprof.stop()
END
  "$BUILD_DIR/bin/luajit" work.lua
  "$ljprof" report --json work.ljp > r.json
  share=$(sed -n 's/^{"name":"leaf work.lua:1",.*"total_percent":\([0-9]*\).*/\1/p' \
    r.json)
  [ "${share:-0}" -ge 70 ] || fail "leaf has '$share' %: $(head -n 5 r.json)"
  "$ljprof" report --tree --focus work.lua work.ljp > out.txt
  grep -q '| branch work.lua:6$' out.txt || fail "no branch: $(cat out.txt)"
  grep -q '| leaf work.lua:1$' out.txt || fail "no leaf: $(cat out.txt)"
  ok "a program's functions are named by name, file and line of definition"
  "$ljprof" annotate --context 0 work.ljp work.lua:leaf > out.txt
  grep -q '^ .*%.*%     3    for i = 1, n do x = x + math.sin(i) end$' out.txt ||
    fail "no heat at line 3: $(cat out.txt)"
  grep -q '  6  ' out.txt && fail "a line of another function: $(cat out.txt)"
  self=$("$ljprof" annotate --json work.ljp work.lua | total cpu_ns)
  same "annotate has the report's total" "$(total cpu_ns < r.json)" "$self"
  refuses "a line where no function begins" 1 "begins at work.lua:3 (to see" \
    "$ljprof" annotate work.ljp work.lua:3
  refuses "a line of no source" 1 "no 'other.lua:3' in the profile" \
    "$ljprof" annotate work.ljp other.lua:3
  refuses "a source that the profile has not" 1 "no 'other.lua' in the profile" \
    "$ljprof" annotate work.ljp other.lua
  refuses "annotate without a place" 2 "a profile and a place" \
    "$ljprof" annotate work.ljp
fi

# A leak: one table in a thousand requests is kept.
if [ "$("$BUILD_DIR/bin/luajit" -e 'print(misc.memprof.start and 1)')" = 1 ]; then
  cat > leak.lua << 'END'
local kept, cache = {}, {}
local function remember(i)
  kept[i / 1000] = { leaked = i }
end
local function handle(i)
  local parts = {}
  for j = 1, 7 do parts[j] = "part" .. i .. ":" .. j end
  if i % 1000 == 0 then remember(i) end
  return #table.concat(parts)
end
local function warm_up() -- Larger than all that leaks, and no leak.
  for i = 1, 3001 do cache[i] = { i } end
end
assert(misc.memprof.start{path = "leak.ljp", every = true})
warm_up()
misc.memprof.mark("warm")
for i = 1, 60000 do handle(i) end
misc.memprof.stop()
END
  "$BUILD_DIR/bin/luajit" -joff leak.lua
  "$ljprof" report --leaks --json --focus leak.lua leak.ljp > r.json
  grep -m 1 '^{"name"' r.json > first.txt
  grep -q '^{"name":"remember leak.lua:3",' first.txt ||
    fail "the leak is not named first: $(head -n 4 r.json)"
  grep -qF '"remember leak.lua:3","handle leak.lua:8","main chunk leak.lua:17"' \
    first.txt || fail "the leak comes without its stack: $(cat first.txt)"
  ok "one table in a thousand requests that is kept is named first, with its stack"
  "$ljprof" report --live --since warm --by line leak.ljp > out.txt
  grep -q ' leak.lua:12$' out.txt &&
    fail "what is older than the mark counts: $(cat out.txt)"
  ok "since a mark: without what was there before"
  for by in function line type stack thread; do
    "$ljprof" report --alloc --by $by --json leak.ljp > r.json
    same "by $by: what the events say is what LuaJIT counts" "0" \
      "$(sed -n '1s/.*"heap_difference_bytes":\(-*[0-9]*\).*/\1/p' r.json)"
    grep -o '"self_bytes":[0-9]*' r.json | cut -d: -f2 |
      awk '{ n += $1 } END { printf "%d\n", n }' > sum.txt
    same "by $by: the rows add up" "$(total alloc_bytes < r.json)" \
      "$(cat sum.txt)"
  done
  "$ljprof" report --peak --json leak.ljp > r.json
  grep -o '"self_bytes":[0-9]*' r.json | cut -d: -f2 |
    awk '{ n += $1 } END { printf "%d\n", n }' > sum.txt
  same "what lived at the peak adds up to it" "$(total peak_bytes < r.json)" \
    "$(cat sum.txt)"
fi
