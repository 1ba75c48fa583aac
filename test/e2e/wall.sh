#!/bin/sh
# Wall-clock sessions: waits last as long as they should, their time has the
# state waiting, and time whose place cannot be read is told.
. "$(dirname "$0")/lib.sh"

luajit=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
chmod 755 .
mkdir work
chmod 777 work # for what has dropped root

cat > sleeps.lua << 'EOF'
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned); int prctl(int, long, long, long, long);")
local dumpable = ffi.C.prctl(4, tonumber(arg[1]), 0, 0, 0) == 0
assert(dumpable and misc.sysprof.start({ path = arg[2], event = "wall" }))
for _ = 1, 10 do
  assert(ffi.C.usleep(30000) == 0, "the wait ended early")
end
misc.sysprof.stop()
EOF

# share FILE STATE: the percentage of the file's wall time.
share() {
  "$ljprof" report --by state "$1" |
    awk -v state="$2" '$NF == state { print int($(NF - 2)) }'
}

"$luajit" sleeps.lua 1 sleeps.ljp || fail "the program does not sleep"
same "a whole stream" whole "$("$ljprof" check sleeps.ljp | tail -n 1)"
"$ljprof" report --by state sleeps.ljp > states.txt
waiting=$(share sleeps.ljp waiting)
[ "${waiting:-0}" -ge 80 ] || fail "share of waiting: $(cat states.txt)"
ok "nearly all of the time is in the state waiting"
"$ljprof" report --by function sleeps.ljp > functions.txt
grep -q "usleep\|nanosleep" functions.txt ||
  fail "where it waits: $(cat functions.txt)"
ok "the place of the waits"

# The watcher has none of the host's descriptors, and so cannot close one.
cat > marker.lua << 'EOF'
local ffi = require("ffi")
ffi.cdef("long syscall(long, ...);")
local none = ffi.new("unsigned", 1000000)
local can = ffi.C.syscall(436, none, none, ffi.new("int", 2)) == 0
local marker = io.open("marker", "w")
assert(misc.sysprof.start({ path = "marker.ljp", event = "wall" }))
os.execute([[cd /proc/$PPID/task && for t in *; do
  if [ "$(cat "$t/comm")" = ljprof-watcher ]; then ls -l "$t/fd"; fi
  echo "looked at"; done]])
misc.sysprof.stop()
print(can and "permitted" or "not permitted", marker)
EOF
"$luajit" marker.lua > marker.txt || fail "marker.lua"
grep -q "^looked at" marker.txt || fail "no threads: $(cat marker.txt)"
if grep -q "^permitted" marker.txt; then
  same "the watcher has none of the host's files" "" \
    "$(grep "marker$" marker.txt)"
fi

# A process of another user that is not dumpable may not read the file.
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null &&
  setpriv --reuid 65534 --regid 65534 --clear-groups "$luajit" sleeps.lua 0 \
    work/undumpable.ljp; then
  "$ljprof" report work/undumpable.ljp > undumpable.txt 2>&1 || :
  grep -q "not sampled: waiting, and where cannot be read" undumpable.txt ||
    fail "unsampled: $(cat undumpable.txt)"
  ok "waits that cannot be looked at are told"
fi

# Threads that have not run yet when they are met. (A thread's clock is 0 then;
# end_test looks for threads that were there longer than their session.)
for k in 1 2 3 4 5 6; do
  for i in 1 2 3 4 5; do
    "$ljprof" record --event wall --interval 0.3 -o "threads$k-$i.ljp" -- \
      "$BUILD_DIR/bin/memory_vms" threads > "threads$k.txt" 2>&1 ||
      echo bad >> "threads$k.txt"
  done &
done
wait
! grep -qx bad threads?.txt || fail "threads: $(cat threads?.txt)"
ok "threads are met as soon as they begin"

# A thread of ours may be met before it has its name. From then on its elapsed
# time is nobody's, and the account (which lib.sh checks) must not miss it.
"$ljprof" record --event wall --threads all --flush 10 -o named.ljp -- \
  "$BUILD_DIR/bin/unsampled_host" 500 ljprof-watcher 2> err ||
  fail "record: $(cat err)"
"$ljprof" check --json named.ljp > json.txt || fail "check: $(cat json.txt)"
ns=$(grep -Eo '"name":"(blocker|ljprof-watcher)","time":"wall","reason":"the thread '\
'blocks the signal","ns":[0-9]+' json.txt | sed 's/.*://')
[ "${ns:-0}" -gt 0 ] || fail "the thread was never met: $(cat json.txt)"
ok "a thread that turns out to be ours: told until then ($ns ns)"
