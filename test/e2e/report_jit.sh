#!/bin/sh
# ljprof report --jit on the golden stream, and on a program with a function that
# is never compiled and one that has side traces.
. "$(dirname "$0")/lib.sh"
ljprof="$BUILD_DIR/bin/ljprof"
golden="$SOURCE_DIR/test/data/every-record.ljp"

# What holds for every file.
cat > sums.py << 'PYTHON'
import json, sys
r = json.load(sys.stdin)
keys = ["compiled", "interpreted", "exits", "recording", "optimizing",
        "assembling", "gc", "other"]
assert list(r)[0] == "totals" and list(r)[-1] == "rows", list(r)
assert r["by"] == "jit" and r["has_events"]
for unit, total in (("samples", "samples"), ("ns", "cpu_ns")):
    assert sum(r["time"][f"{k}_{unit}"] for k in keys) == r["totals"][total]
    assert sum(f[f"self_{unit}"] for f in r["functions"]) == r["totals"][total]
    for f in r["functions"]:
        assert sum(f[f"{k}_{unit}"] for k in keys) == f[f"self_{unit}"], f
    for row in r["rows"]:
        sides = [s for s in r["rows"] if s["parent"] == row["id"]]
        whole = row[f"self_{unit}"] + row[f"exit_{unit}"]
        whole += sum(s[f"tree_{unit}"] for s in sides)
        assert whole == row[f"tree_{unit}"], row
        assert all(s["depth"] == row["depth"] + 1 for s in sides), row
for g in r["given_up"]:
    assert sum(p["count"] for p in g["places"]) == g["count"], g
assert sum(g["count"] for g in r["given_up"]) == r["events"]["given_up"]
PYTHON
sums() {
  python3 sums.py < "$1" || fail "$2"
  ok "$2"
}

"$ljprof" report --jit --json "$golden" > g.json || fail "the golden stream"
sums g.json "golden: functions, kinds and traces add up"
python3 - << 'PYTHON' || fail "golden: contents"
import json
r = json.load(open("g.json"))
assert r["events"] == {"started": 4, "compiled": 4, "given_up": 4,
    "flushes": 4, "freed": 4, "blacklisted": 4, "there_before": 4}
one, two = (next(t for t in r["rows"] if t["trace"] == n) for n in (1, 2))
assert (one["function"], one["file"], one["line"]) == ("f5", "app/file5.lua", 53)
assert (one["ir_count"], one["code_bytes"], one["exits"]) == (101, 487, 11)
assert two["parent"] == one["id"] and two["parent_exit"] == 3
assert one["parent"] == 0 and one["depth"] == 0 and two["depth"] == 1
assert one["truncated"] and two["state"] == "freed"
assert one["self_samples"] == 76 and two["self_samples"] == 56
assert one["exit_samples"] == 16 and two["exit_samples"] == 8
assert one["tree_samples"] == 156 and two["tree_samples"] == 64
given, = r["given_up"]
assert given["reason"] == "NYI: bytecode 51" and given["count"] == 4
assert given["lost_samples"] == 8
place, = given["places"]
assert (place["function"], place["file"], place["line"]) == \
    ("f6", "app/file6.lua", 61)
assert (place["at_function"], place["at_line"]) == ("f13", 137)
black, = r["blacklisted"]
assert (black["count"], black["line"]) == (4, 61)
assert r["time"]["recording_samples"] == 28
PYTHON
ok "golden: traces, side traces, reasons, blacklisted places"
"$ljprof" report --jit "$golden" > g.txt || fail "the golden stream as text"
for line in 'exit 3: trace 2 f5 app/file5.lua:53  loop, 101 IR, 487 bytes' \
  '28  recording traces' 'NYI: bytecode 51' \
  'f6 app/file6.lua:61; given up at f13 app/file6.lua:137' \
  'blacklisted 4' 'in 1 more trace'; do
  grep -qF "$line" g.txt || fail "no '$line' in: $(cat g.txt)"
done
ok "golden as text"
"$ljprof" report --jit "$SOURCE_DIR/test/data/killed.ljp" > killed.txt ||
  fail "a file without trace events"
refuses "memory" 2 "jit needs --cpu or --wall" "$ljprof" report --jit --live "$golden"
refuses "with --by" 2 "cannot be combined with --by" "$ljprof" report --jit --by line "$golden"
refuses "with --tree" 2 "cannot be combined with --tree" "$ljprof" report --jit --tree "$golden"
refuses "nothing selected" 1 "nothing to show" \
  "$ljprof" report --jit --focus no-such-name "$golden"

# A closure in a loop is never compiled; branches make side traces.
cat > work.lua << 'LUA'
local function never(n)
  local t = {}
  for i = 1, n do
    t[i % 10] = function()
      return i
    end
  end
end
local function sides(n)
  local x = 0
  for i = 1, n do
    if i % 3 == 0 then
      x = x + 1
    else
      x = x - 0.1
    end
  end
  return x
end
local ok, why = misc.sysprof.start({ path = "work.ljp", interval = 0.5,
  max_overhead = 0 })
assert(ok, why)
local began = os.clock()
repeat
  never(5000)
  sides(100000)
until os.clock() - began > 0.6
assert(misc.sysprof.stop())
LUA
"$BUILD_DIR/bin/luajit" work.lua || fail "work.lua"
"$ljprof" report --jit --json work.ljp > w.json || fail "work.ljp"
sums w.json "a program: functions, kinds and traces add up"
python3 - << 'PYTHON' || fail "a program: contents"
import json
r = json.load(open("w.json"))
by_name = {f["name"].split()[0]: f for f in r["functions"]}
never, sides = by_name["never"], by_name["sides"]
assert never["compiled_samples"] == 0 and never["interpreted_samples"] > 100
assert sides["compiled_percent"] > 0.9 * sides["self_percent"], sides
given = next(g for g in r["given_up"] if "FNEW" in g["reason"])
assert any(p["function"] == "never" and p["line"] == 3
           for p in given["places"]), given
assert given["lost_samples"] >= never["interpreted_samples"]
assert any(b["function"] == "never" and b["line"] == 3
           for b in r["blacklisted"]), r["blacklisted"]
side = next(t for t in r["rows"] if t["parent"] and t["function"] == "sides")
root = next(t for t in r["rows"] if t["id"] == side["parent"])
assert root["parent"] == 0 and root["link_type"] == "loop", root
assert root["line"] == 11 and side["ir_count"] > 0 and side["code_bytes"] > 0
assert r["events"]["compiled"] == len([t for t in r["rows"] if t["known"]])
PYTHON
ok "a program: not compiled and why, side traces with what they belong to"
"$ljprof" report --by trace --json work.ljp > t.json || fail "--by trace"
python3 - << 'PYTHON' || fail "--by trace agrees"
import json
rows = json.load(open("t.json"))["rows"]
names = [r["name"] for r in rows]
assert len(names) == len(set(names)), names
traces = {f"trace {t['trace']}": t["self_samples"] + t["exit_samples"]
          for t in json.load(open("w.json"))["rows"]}
for r in rows:
    if r["name"].startswith("trace"):
        here = traces[" ".join(r["name"].split()[:2])]
        # The compiler may work on a side trace while its root is current.
        assert here <= r["self_samples"] <= here + 20, r
PYTHON
ok "--by trace says the same"

# A place where no trace begins any more, in a function that is compiled elsewhere:
# both are said, and do not contradict each other.
cat > mixed.lua << 'LUA'
local s = 0
local function mixed(n)
  for i = 1, n do
    local g = function() return i end
    for k = 1, 1500 do s = s + k % 7 end
  end
end
assert(misc.sysprof.start({path = "mixed.ljp", interval = 0.5, max_overhead = 0}))
for _ = 1, 3000 do mixed(100) end
assert(misc.sysprof.stop())
LUA
"$BUILD_DIR/bin/luajit" mixed.lua || fail "mixed.lua"
"$ljprof" report --jit mixed.ljp > mixed.txt || fail "mixed.ljp"
! grep 'never compiled' mixed.txt || fail "$(cat mixed.txt)"
grep -A1 'compiled .* no trace begins there again' mixed.txt |
  grep -qE ' [5-9][0-9]\.[0-9]+% +[0-9]+  mixed mixed.lua:3$' ||
  fail "no compiled share of a blacklisted place: $(cat mixed.txt)"
ok "a blacklisted place in a compiled function"
