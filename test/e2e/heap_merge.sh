#!/bin/sh
# ljprof merge carries heap snapshots: each view of each of them shows the same in
# the merged file as in its own.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
command -v python3 > /dev/null || {
  echo "skipped: there is no python3"
  exit 0
}

cat > worker.lua << 'END'
local name, alone = arg[1], arg[2]
local ffi = require("ffi")
if not alone then misc.memprof.start{ path = name .. ".ljp", every = true } end
cache = {}
local function remember(i)
  cache["user:" .. i] = { name = name .. i, when = i / 7, [i * 1000] = { ipairs } }
end
for i = 1, 1009 do remember(i) end
weak = setmetatable({ {}, [{}] = {}, [cache] = 1 }, { __mode = "kv" })
waiting = {}
for i = 1, 101 do
  waiting[i] = coroutine.wrap(function(own) coroutine.yield(own, string.gmatch) end)
  waiting[i]({ i })
end
keep = { ffi.new("int[100]"), ffi.cast("void *", 17), require("string.buffer").new(500),
  [true] = {}, [-3] = {}, [1e10] = {} }
long = {}
for i = 1, 5003 do long[i] = i % 3 == 0 and keep or {} end
if alone then
  assert(misc.memprof.snapshot{ path = name .. ".ljp", wait = true })
  return
end
assert(misc.memprof.snapshot{ wait = true })
for i = 1, 53 do remember(i) end
for i = 2001, 2127 do remember(i) end
assert(misc.memprof.snapshot{ wait = true })
assert(misc.memprof.stop())
END
for name in one two; do
  "$lua" worker.lua $name || fail "worker $name"
done
"$lua" worker.lua three alone || fail "worker three"
"$ljprof" merge -o all.ljp one.ljp two.ljp three.ljp 2> err.txt ||
  fail "merge: $(cat err.txt)"
same "nothing is left out" "" "$(cat err.txt)"
"$ljprof" check all.ljp > check.txt || fail "$(cat check.txt)"
grep -qx '5 heap snapshots, 0 incomplete' check.txt || fail "$(cat check.txt)"
ok "all snapshots are there, and whole"

# Which snapshot of the merged file is which: by its process. Number, file, number in
# that file, process.
for name in one two three; do
  "$ljprof" heap --json $name.ljp > $name.json || fail "$name.ljp"
done
n=1
: > order.txt
while [ $n -le 5 ]; do
  "$ljprof" heap --json --snapshot $n all.ljp > n.json || fail "snapshot $n"
  for name in one two three; do
    pid=$(sed 's/.*"pid":\([0-9]*\),.*/\1/' $name.json)
    grep -q "\"snapshot\":$n,\"snapshots\":5,.*\"pid\":$pid," n.json || continue
    echo "$n $name $(($(grep -c " $name " order.txt || :) + 1)) $pid" >> order.txt
  done
  n=$((n + 1))
done
same "each has its process" 5 "$(wc -l < order.txt)"

cat > same.py << 'END'
# same.py A B: the same JSON, but for numbers of snapshots and VMs, and what a merged
# file has in addresses.
import json
import re
import sys


def load(path):
    text = open(path, encoding='utf-8').read()
    text = re.sub(r'0x[0-9a-f]+',
                  lambda m: hex(int(m[0], 16) & (1 << 48) - 1), text)
    d = json.loads(text)
    for key in ('snapshot', 'snapshots', 'vm'):
        d.pop(key, None)
    return d


a, b = load(sys.argv[1]), load(sys.argv[2])
for key in sorted(set(a) | set(b)):
    if a.get(key) != b.get(key):
        sys.exit(f'{key}: {str(a.get(key))[:900]}\n{str(b.get(key))[:900]}')
END

# records FILE SNAPSHOT: objects and references of the Nth snapshot, as they are in
# files that were not merged.
records() {
  "$ljprof" dump "$1" | awk -v want="$2" '
    /^  heap / { n++ }
    n == want && /^  (object|ref|heap|heap-end) /' |
    sed -E 's/0x[0-9a-f]{1,4}([0-9a-f]{12})([^0-9a-f]|$)/0x\1\2/g
      s/0x0+/0x/g
      s/ (snapshot|vm|time_ns|ffid)=[0-9]+//g'
}
compared=0
while read -r n name of pid; do
  # Which object continues in another record is the writer's own.
  records "$name.ljp" "$of" | grep -v 'type="-"' > a.txt
  records all.ljp "$n" | grep -v 'type="-"' > b.txt
  [ "$(wc -l < a.txt)" -gt 9000 ] || fail "$name $of: few records"
  cmp a.txt b.txt > cmp.txt || fail "$name $of, $n: $(cat cmp.txt) $(diff a.txt b.txt | head -6)"
  for view in '' '--path ^cache$' '--path ^(ipairs|string.gmatch)$' --dominators \
    --coroutines --strings '--retained-by user' --sites; do
    [ "$view" != --sites ] || [ "$name" != three ] || continue
    # shellcheck disable=SC2086 # Words of an option.
    "$ljprof" heap --json $view --snapshot "$of" $name.ljp > wanted.json ||
      fail "$name $of $view"
    # shellcheck disable=SC2086
    "$ljprof" heap --json $view --snapshot "$n" all.ljp > got.json ||
      fail "merged $n $view"
    python3 same.py wanted.json got.json > differ.txt 2>&1 ||
      fail "$name $of $view: $(cat differ.txt)"
    compared=$((compared + 1))
  done
  "$ljprof" heap --snapshot "$n" all.ljp > out.txt
  grep -qx "Snapshot $n of 5, VM [0-9]*, process $pid" out.txt ||
    fail "$n: $(head -n 2 out.txt)"
done < order.txt
same "views that show the same" 39 $compared

# Two snapshots of a session: the allocations tell objects apart, as in its own file.
for name in one two; do
  last=$(awk -v name=$name '$2 == name { last = $1 } END { print last }' order.txt)
  "$ljprof" heap --json --diff $name.ljp > wanted.json || fail "diff $name"
  "$ljprof" heap --json --diff --snapshot "$last" all.ljp > got.json ||
    fail "diff of merged $name"
  grep -q '"identity":"exact"' got.json || fail "$(head -c 500 got.json)"
  python3 same.py wanted.json got.json > differ.txt 2>&1 ||
    fail "diff of $name: $(cat differ.txt)"
  ok "a comparison in the merged file: $name"
done

# A snapshot that is damaged in its own file is so in the merged one.
size=$(wc -c < three.ljp)
head -c $((size - 3000)) three.ljp > cut.ljp
"$ljprof" merge -o damaged.ljp one.ljp cut.ljp 2> err.txt ||
  fail "merge with a cut file: $(cat err.txt)"
"$ljprof" check damaged.ljp > check.txt && fail "the damage is gone"
grep -qx '3 heap snapshots, 1 incomplete' check.txt || fail "$(cat check.txt)"
grep -q '^heap snapshot [0-9] of VM [0-9]* is incomplete, its end is missing: ' \
  check.txt || fail "$(cat check.txt)"
ok "a damaged snapshot stays one"
