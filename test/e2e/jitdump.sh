#!/bin/sh
# jit-PID.dump and /tmp/perf-PID.map: each field is compared with LuaJIT's own
# view of its code; and perf reads them, where perf may record.
. "$(dirname "$0")/lib.sh"

luajit=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
script=$SOURCE_DIR/test/e2e/jitdump.lua
# Programs that were killed have left maps, and may have had the numbers of ours.
for map in /tmp/perf-*.map; do
  pid=${map#/tmp/perf-}
  [ ! -O "$map" ] || [ -e "/proc/${pid%.map}" ] || rm -f "$map"
done
maps=
clean() {
  for of in $maps; do
    rm -f "/tmp/perf-$of.map"
  done
}
at_end=clean

pid=$("$luajit" "$script" work stream.ljp facts.txt) || fail "the program"
maps="$maps $pid"
told=$("$luajit" "$script" check "jit-$pid.dump" "/tmp/perf-$pid.map" \
  facts.txt 2>&1) || fail "$told"
ok "each field, line and byte of two sessions in one process: $told"
case $(stat -c %a "jit-$pid.dump" "/tmp/perf-$pid.map" | tr '\n' ' ') in
  '600 600 ') ok "nobody else reads them" ;;
  *) fail "readable for others" ;;
esac

"$luajit" "$script" refused || fail "refused"
ok "files of others are refused, and stay as they are"

mkdir place
JITDUMPDIR=place LJPROF_JITDUMP=1 "$luajit" -e '
  assert(misc.sysprof.start{mode = "C", path = "env.ljp"})
  local t = 0 for i = 1, 1000 do t = t + i end
  assert(misc.sysprof.stop())' || fail "by the environment"
set -- place/jit-*.dump
[ -s "$1" ] || fail "nothing by LJPROF_JITDUMP in JITDUMPDIR"
pid=${1#place/jit-}
maps="$maps ${pid%.dump}"
ok "asked for by the environment, in a folder by the environment"
refuses "a folder that is not there" 1 "no/where/jit-" env JITDUMPDIR=no/where \
  "$luajit" -e 'assert(misc.sysprof.start{mode = "C", path = "x.ljp", jitdump = true})'

pids=$("$luajit" "$script" forked) || fail "forked"
parent=${pids%%	*} child=${pids##*	}
maps="$maps $parent $child"
"$luajit" "$script" child "jit-$parent.dump" "/tmp/perf-$parent.map" \
  '@parent:1' 'product@' || fail "the parent's"
"$luajit" "$script" child "jit-$child.dump" "/tmp/perf-$child.map" \
  'product@' '@parent:1' || fail "the child's"
"$ljprof" dump "f.ljp.$child" > child.txt || fail "the child's stream"
for action in exists start stop; do
  grep -q "trace-event .*action=\"$action\"" child.txt ||
    fail "no $action in the child's stream"
done
ok "a fork's child has files of its own, and its traces are in its stream"

pid=$( (ulimit -f 200 && exec "$luajit" "$script" large large.ljp)) ||
  fail "a full disk harms the program"
maps="$maps $pid"
told=$("$luajit" "$script" cut "jit-$pid.dump" "/tmp/perf-$pid.map" 2>&1) ||
  fail "$told"
"$ljprof" dump large.ljp > large.txt
grep -q 'note .*severity="error" text="jitdump ends early: File too large"' \
  large.txt || fail "the stream does not say so"
"$ljprof" check large.ljp > check.txt || fail "$(cat check.txt)"
ok "a file size limit ends the file after a whole record ($told traces)"

"$ljprof" record --jitdump -o rec.ljp "$luajit" -e '
  local t = 0 for i = 1, 1000 do t = t + i end' 2> rec.txt ||
  fail "record: $(cat rec.txt)"
pid=$("$ljprof" dump rec.ljp | sed -n 's/^  process pid=\([0-9]*\) .*/\1/p' |
  head -n 1)
maps="$maps $pid"
[ -s "jit-$pid.dump" ] || fail "no dump by ljprof record --jitdump"
grep -q 'TRACE_1::' "/tmp/perf-$pid.map" ||
  fail "no map by ljprof record --jitdump"
ok "ljprof record --jitdump"

# The names and lines that perf reads from the file.
if ! perf record -q -k mono -e task-clock:u -o probe.data true > perf.txt 2>&1; then
  ok "skipped: perf may not record here: $(head -n 1 perf.txt)"
  exit 0
fi
cat > hot.lua <<'END'
local function twice(x)
  return (x * 2 + 1) % 1000003
end
assert(misc.sysprof.start{mode = "C", path = "hot.ljp", jitdump = true})
local t = 1
for i = 1, 1e8 do
  t = twice(t)
end
assert(misc.sysprof.stop())
END
perf record -q -k mono -e task-clock:u -F 499 -o perf.data "$luajit" hot.lua \
  > perf.txt 2>&1 || fail "perf record: $(cat perf.txt)"
perf inject --jit -i perf.data -o jitted.data > perf.txt 2>&1 ||
  fail "perf inject: $(cat perf.txt)"
perf script -i jitted.data -F comm,pid,ip,sym,dso,srcline > script.txt 2> perf.txt ||
  fail "perf script: $(cat perf.txt)"
pid=$(sed -n 's/^ *luajit *\([0-9]*\).*/\1/p' script.txt | head -n 1)
maps="$maps $pid"
awk '
  /TRACE_[0-9]+::main chunk@hot.lua:6 .*jitted-[0-9]+-[0-9]+.so/ { n++; getline; line[$1]++ }
  END {
    printf "%d samples in traces, %d on line 2, %d on line 7", n,
      line["hot.lua:2"], line["hot.lua:7"]
    exit !(n >= 50 && line["hot.lua:2"] > n / 4)
  }' script.txt > told.txt || fail "perf: $(cat told.txt; head script.txt)"
ok "perf inject --jit, perf script: $(cat told.txt)"
