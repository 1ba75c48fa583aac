# shellcheck shell=sh
# What advise.sh and advise_sound.sh share: programs of test/advise are recorded
# and judged. A fault's first lines say what must be found; "-- FAULT" marks its
# line. Shares of samples and of CPU time are compared, never the clock: a busy
# machine slows both sides.
ljprof="$BUILD_DIR/bin/ljprof"
luajit="$BUILD_DIR/bin/luajit"
programs="$SOURCE_DIR/test/advise"
export LUA_CPATH="$BUILD_DIR/advise/?.so"

# record NAME PROGRAM OPTIONS...: NAME.ljp, NAME.out, NAME.json, NAME.totals. A
# twin is recorded as its fault is. "-- session: late": the program begins the
# session itself when it has run for a while.
# Timers of the POSIX kind work where perf is not permitted, and are as fine.
record() {
  out=$1 source=$2
  shift 2
  heads=$(cat "${source%/*/*}"/*/"${source##*/}")
  if echo "$heads" | grep -q '^-- session: late'; then
    rm -f "$out.ljp"
    "$luajit" "$source" "$out.ljp" > "$out.out" 2> "$out.err" ||
      fail "$source: $(cat "$out.err")"
  else
    # shellcheck disable=SC2046 # options are words
    "$ljprof" record --force --timer posix --interval 0.5 -o "$out.ljp" \
      $(echo "$heads" | sed -n 's/^-- record: //p') -- "$luajit" \
      $(echo "$heads" | sed -n 's/^-- run: //p') "$@" "$source" \
      > "$out.out" 2> "$out.err" || fail "$source: $(cat "$out.err")"
  fi
  "$ljprof" advise --json "$out.ljp" > "$out.json" 2> "$out.err" ||
    fail "$out: $(cat "$out.err")"
  "$ljprof" report --json --top 1 "$out.ljp" > "$out.totals" 2> "$out.err" ||
    fail "$out: $(cat "$out.err")"
  "$ljprof" report "$out.ljp" > "$out.report" 2> "$out.err" ||
    fail "$out: $(cat "$out.err")"
}

# What a fault's file says, against the first finding and the first screen of the
# report (24 lines at 80 columns); with a twin, the gain.
cat > judge.py << 'PYTHON'
import json, re, sys
def screen(path):
    shown, left = [], 24
    for line in open(path):
        left -= max(1, -(-len(line.rstrip("\n")) // 80))
        if left >= 0:
            shown.append(line)
    return shown
program, name = sys.argv[1:3]
lines = open(program).read().split("\n")
want = dict(m.groups() for m in (re.match(r"-- (\w+): (.*)", l) for l in lines) if m)
at = next(i + 1 for i, l in enumerate(lines) if l.endswith("-- FAULT"))
findings = json.load(open(name + ".json"))["findings"]
assert findings, "nothing was found"
f = findings[0]
assert f["kind"] == want["kind"] and f["function"] == want["function"], f
assert f["file"].endswith(program.rsplit("/", 1)[1]), f
assert abs(f["line"] - at) <= 2, f
assert "section" not in want or f["guide"].endswith("#" + want["section"]), f
# The lines above the table name it; a leak stands where memory is live.
named, of = [], ""
for l in screen(name + ".report"):
    m = re.match(r"(\S.{15}|\s{16}) *~?[\d.]+ \S+ +[\d.]+%  (\S.*):(\d+)$", l)
    of = m and m[1].strip() or of
    if m and (of in ("most live", "kept growing") or f["gain"]["of"] != "live"):
        named.append((m[2], int(m[3])))
assert any(n.startswith(want["function"] + " ") and abs(line - at) <= 2 and
           n.endswith(program.rsplit("/", 1)[1]) for n, line in named), named
if len(sys.argv) > 3:
    gain = f["gain"]
    key = {"cpu": "used_ns", "wall": "wall_ns", "live": "live_bytes"}[gain["of"]]
    before, after = (json.load(open(n + ".totals"))["totals"][key]
                     for n in (name, sys.argv[3]))
    saved = 100 - 100 * after / before
    bound = gain["percent"] + gain["error_percent"]
    # Ten points for what the bound leaves out (caches, other traces, lists of
    # other functions), and for a machine whose speed changes between the runs.
    assert saved <= bound + 10, (saved, bound)
    assert saved > 0 or gain["of"] != "live", (saved, bound)
    for left in json.load(open(sys.argv[3] + ".json"))["findings"]:
        assert (left["kind"], left["function"]) != (f["kind"], f["function"]), left
    print(f"gain {saved:.1f} of at most {bound:.1f} %", end="; ")
print(f["kind"], f["function"], f["line"], f"evidence {f['evidence']['percent']:.1f} %")
PYTHON
judge() {
  python3 judge.py "$@" > judged.txt 2>&1
}

# judge_pair NAME OPTIONS...: a fault and its twin, run with these options. The
# pair is recorded again, twice at most, if the machine was so uneven that the
# gain looks larger than its bound.
judge_pair() {
  pair=$1
  shift
  for _ in 1 2 3; do
    record "$pair" "$programs/faults/$pair.lua" "$@"
    record "$pair.repaired" "$programs/repaired/$pair.lua" "$@"
    cmp "$pair.out" "$pair.repaired.out" || fail "$pair: its twin does other work"
    judge "$programs/faults/$pair.lua" "$pair" "$pair.repaired" && return
  done
  fail "$pair $*: $(tail -n 1 judged.txt)"
}
