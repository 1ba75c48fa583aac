#!/bin/sh
# ljprof record: records a program from its first VM to its end; the program
# keeps its exit status and output. Errors are reported in one line.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit

cat > work.lua << 'EOF'
local t = {}
local function make(i) return {i, name = "n" .. i} end
local stop = os.clock() + 0.15
repeat
  for i = 1, 1000 do t[i] = make(i) end
until os.clock() > stop
print("done")
os.exit(tonumber(arg[1]) or 0)
EOF

"$ljprof" record --interval=0.5 "$luajit" work.lua > out 2> err ||
  fail "record: $(cat err)"
same "the program's output is its own" "done" "$(cat out)"
"$ljprof" check work-*.ljp > /dev/null || fail "not whole"
"$ljprof" report work-*.ljp | grep -q 'make .*work.lua:2' || fail "no make"
ok "the file has the script's name, is whole and names its functions"
"$ljprof" dump work-*.ljp | grep -q '^mem ' && fail "memory was not asked for"
ok "memory is recorded only when asked for"

code=0
"$ljprof" record --memory --every -o both.ljp -- "$luajit" work.lua 7 \
  > /dev/null 2> err || code=$?
same "the exit status is the program's" 7 "$code"
"$ljprof" check both.ljp > check.txt || fail "not whole: $(cat check.txt)"
grep -q '^samples ' check.txt || fail "no samples"
grep -q '^mem ' check.txt || fail "no memory events"
ok "CPU and memory stand in one file"
# What ignores SIGCHLD passes that on to what it executes.
code=0
env --ignore-signal=CHLD "$ljprof" record -o ignored.ljp -- "$luajit" -e 'for l in io.lines("/proc/self/status") do
    if l:find("SigIgn") then print(l) end
  end
  os.exit(7)' > out 2> err || code=$?
same "the exit status where SIGCHLD is ignored" 7 "$code"
# Without the analyzer, ljprof is a shell script here, and shells do not ignore it.
if [ "${LJP_ANALYZER:-}" != OFF ]; then
  case $(cut -c 9- out) in
  *[13579bdf]????) ok "the program ignores SIGCHLD, too" ;;
  *) fail "SIGCHLD is not ignored: $(cat out)" ;;
  esac
fi
"$ljprof" report --live both.ljp | grep -q 'difference 0$' ||
  fail "the heap's own count differs: $("$ljprof" report --live both.ljp)"
ok "events and the VM's own count of bytes agree"
"$ljprof" record --memory --no-cpu --force -o both.ljp -- "$luajit" work.lua \
  > /dev/null 2> err || fail "memory only: $(cat err)"
"$ljprof" check both.ljp > check.txt || fail "not whole"
! grep -q '^samples ' check.txt || fail "samples without being asked for"
ok "memory alone, sampled"

read_pipe timeout 20 cat
timeout 20 "$ljprof" record --force -o pipe "$luajit" work.lua > out 2> err ||
  fail "record into a pipe: code $?, $(cat err)"
end_pipe
"$ljprof" check piped > check.txt || fail "not whole: $(cat check.txt)"
ok "a pipe gets the stream, and is not read again"

# The collector's phases alone fill the ring before the pipe is read.
cat > phases.lua << 'EOF'
for i = 1, 8000 do collectgarbage() end
io.open("most", "w"):close()
for i = 1, 12000 do collectgarbage() end
EOF
read_pipe timeout 60 sh -c \
  'until [ -e most ]; do sleep 0.01; done; sleep 0.3; cat'
timeout 60 "$ljprof" record --force --no-cpu --memory --every -o pipe \
  "$luajit" phases.lua > out 2> err ||
  fail "record into a slow pipe: code $?, $(cat err)"
end_pipe
"$ljprof" check piped > check.txt || fail "not whole: $(cat check.txt)"
same "where every event is recorded, phases wait for room" "" \
  "$(grep 'ring full' check.txt || :)"

echo old > target
ln -s target link
"$ljprof" record --force -o link "$luajit" work.lua > out 2> err ||
  fail "record through a link: $(cat err)"
"$ljprof" check target > check.txt || fail "not whole: $(cat check.txt)"
ok "the file that a link names is found again"
mkdir other
ln -s other/nothing link2
"$ljprof" record --force --rotate-bytes 4096 --flush 10 -o link2 "$luajit" \
  work.lua > out 2> err || fail "rotation through a link: $(cat err)"
grep -q 'the first and [0-9]* segments of other/nothing$' err ||
  fail "the segments beside the target are not told: $(cat err)"
[ -e other/nothing.s1 ] || fail "no segments beside the target"
ok "and its file segments, if there was no such file"

options() {
  "$ljprof" dump options.ljp |
    sed -n 's/^ *info key="option\.\([a-z]*\)" value="\([^"]*\)"/\1=\2/p' |
    grep -v -e '^memory' -e '^signal' | sort | tr '\n' ' '
}
for timer in posix perf trap; do
  "$ljprof" record --force -o options.ljp --timer "$timer" --mode=L \
    --max-overhead 0 --depth 8 --flush 10 "$luajit" work.lua > out 2> err ||
    [ "$timer" != posix ] || fail "$timer: $(cat err)"
  same "$timer: the program's output is its own" "done" "$(cat out)"
  if [ "$timer" != posix ] && grep -q "not recorded: timer \"$timer\"" err; then
    echo "no timer $timer on this machine"
    continue
  fi
  real=$timer
  [ "$timer" != trap ] || real=perf
  case $(options) in
  "event=cpu mode=L timer=$real ") ok "a session by $timer, mode L" ;;
  *) fail "$timer: $(options)" ;;
  esac
  "$ljprof" check options.ljp > check.txt || fail "not whole: $(cat check.txt)"
  [ "$timer" != trap ] || "$ljprof" dump options.ljp | grep -q \
    'note .*trap.* is treated as .*perf' || fail "nobody says what trap is"
done
"$ljprof" record --force -o options.ljp --event wall --signal USR2 -- \
  "$luajit" -e 'print(misc.sysprof.status().signal)' > out 2> err ||
  fail "wall: $(cat err)"
case $(options) in
"event=wall mode=C timer="*) ok "a session by the clock" ;;
*) fail "wall: $(options)" ;;
esac
same "the signal asked for" 12 "$(cat out)"

# Works until a file of that name exists, and as long again as three segments
# last: a late writer may have begun two of them at once.
cat > until.lua << 'EOF'
repeat
  local there = io.open(arg[1])
  assert(os.clock() < 60, "it never came")
until there
local stop = os.clock() + 0.3
repeat until os.clock() > stop
EOF
"$ljprof" record -o turn.ljp --rotate-seconds 0.1 --keep 2 --sync -- \
  "$luajit" until.lua turn.ljp.s3 2> err || fail "rotation: $(cat err)"
[ ! -e turn.ljp ] || fail "the first segment has been kept: $(ls)"
segments=$(find . -name 'turn.ljp.s[0-9]*' | wc -l)
same "segments kept" 2 "$segments"
grep -q "2 segments of turn.ljp" err || fail "not said: $(cat err)"
"$ljprof" merge -o merged.ljp turn.ljp.s* 2> err || fail "merge: $(cat err)"
"$ljprof" check merged.ljp > check.txt || fail "not whole: $(cat check.txt)"
said=$(awk '/^samples /{print $2}' check.txt)
[ "$said" -gt 0 ] || fail "no samples: $(cat check.txt)"
ok "what is kept of a rotated file is said and is whole"
# Segments with embedded symbols, which use up block numbers.
echo old > parts.ljp.s99
sleep 0.1
"$ljprof" record -o parts.ljp --force --rotate-seconds 0.1 -- \
  "$luajit" until.lua parts.ljp.s3 > out 2> err || fail "segments: $(cat err)"
"$ljprof" merge -o merged.ljp --force parts.ljp* 2> err || fail "$(cat err)"
"$ljprof" check merged.ljp | grep '^samples ' > before.txt
for f in parts.ljp*; do
  "$ljprof" embed "$f" 2> err || fail "embed: $(cat err)"
done
"$ljprof" merge -o merged.ljp --force parts.ljp* 2> err || fail "$(cat err)"
"$ljprof" check merged.ljp > check.txt || fail "not whole: $(cat check.txt)"
same "segments with symbols have all samples when merged" \
  "$(awk '{ print $2 }' before.txt)" \
  "$(awk '/^samples /{ print $2 }' check.txt)"
same "no word of anything missing" "" "$(cat err)"
"$ljprof" merge -o holes.ljp parts.ljp parts.ljp.s[13] 2> err ||
  fail "$(cat err)"
grep -q 'missing between parts.ljp.s1 and parts.ljp.s3$' err ||
  fail "no word of the segment that is missing: $(cat err)"
! "$ljprof" check holes.ljp > check.txt || fail "a missing segment passes"
ok "a missing one is told, and stays missing"
refuses "segments that exist are kept" 1 "exists (use --force" \
  "$ljprof" record -o turn.ljp --rotate-seconds 1 "$luajit" work.lua

cat > calls.lua << 'EOF'
local zero, t = io.open("/dev/zero", "rb"), {}
local function read() zero:read(1000003) end
local function less(a, b) return a < b end
local function sort() for i = 1, 2003 do t[i] = i * 7919 % 2011 end table.sort(t, less) end
local stop = os.clock() + 0.4
repeat read() sort() until os.clock() > stop
EOF
"$ljprof" record --interval=0.5 -o calls.ljp "$luajit" calls.lua > /dev/null \
  2> err || fail "record: $(cat err)"
"$ljprof" export calls.ljp --to collapsed -o - > calls.txt || fail "no stacks"
# musl does not export the function that reads. Since glibc 2.41 there are
# functions between read() and its system call.
grep -q ';file:read;.*\(read\|ld-musl[^;]*\);\(__.*;\)\{0,1\}\[kernel\]_\[k\] [0-9]' calls.txt ||
  fail "no kernel above read: $(cat calls.txt)"
grep '\[kernel\]' calls.txt | grep -qv '\[kernel\]_\[k\] [0-9]*$' &&
  fail "the kernel calls somebody"
ok "time in a system call stands above the C function that made it"
grep -q ';table\.sort;' calls.txt || fail "no table.sort: $(cat calls.txt)"
grep -qE 'lj_(cf|ffh)_' calls.txt &&
  fail "a builtin twice: $(grep -E 'lj_(cf|ffh)_' calls.txt)"
ok "a builtin is one frame, whichever side was asked"

"$ljprof" record --force --interval=0.5 --mode L -o calls.ljp "$luajit" \
  calls.lua > /dev/null 2> err || fail "mode L: $(cat err)"
"$ljprof" export calls.ljp --to collapsed -o - > calls.txt || fail "no stacks"
grep -q '^file:read;.*;\[kernel\]_\[k\] [0-9]*$' calls.txt ||
  fail "mode L: no kernel above read: $(cat calls.txt)"
"$ljprof" record --memory --every --force --interval=0.5 --mode L -o both.ljp \
  "$luajit" work.lua > /dev/null 2> err || fail "mode L: $(cat err)"
"$ljprof" export both.ljp --to collapsed --value cpu -o - > both.txt ||
  fail "no stacks"
grep -q 'make.*;\[profiler\][^;]*$' both.txt ||
  fail "mode L: no profiler above make: $(cat both.txt)"
ok "mode L has the same innermost frames: the kernel, the profiler"

cp both.ljp kept
refuses "a file that exists is kept" 1 "exists (use --force" \
  "$ljprof" record -o both.ljp "$luajit" work.lua
cmp -s both.ljp kept || fail "it was changed"
refuses "a program that is not there" 127 "No such file" \
  "$ljprof" record -o none.ljp ./nothing
[ "${LJP_LIBC:-}" = musl ] || # the machine's own programs have glibc
  refuses "a program without our library" 1 "nothing was recorded" \
    "$ljprof" record -o none.ljp true
refuses "a file that cannot be" 1 "cannot write $PWD/none/x.ljp: No such" \
  "$ljprof" record -o "$PWD/none/x.ljp" "$luajit" work.lua
refuses "no program" 2 "no program given" "$ljprof" record
refuses "an interval that is none" 2 "interval is '0', but must be" \
  "$ljprof" record --interval 0 true
refuses "an event that is none" 2 "event is 'gpu', but must be" \
  "$ljprof" record --event gpu true
refuses "a timer that is none" 2 \
  "timer is 'hpet', but must be auto, perf, tick or posix" \
  "$ljprof" record --timer hpet true
named() {
  "$ljprof" record --force -o options.ljp --signal "$1" -- "$luajit" \
    -e 'print(misc.sysprof.status().signal)' > out 2> err ||
    fail "signal $1: $(cat err)"
  same "signal $1" "$2" "$(cat out)"
}
least=34 most=64 # of glibc
[ "${LJP_LIBC:-}" != musl ] || least=35 # musl keeps one more for itself
named SIGUSR2 12
named 12 12
named RTMIN+5 $((least + 5))
named SIGRTMIN "$least"
named RTMAX-2 $((most - 2))
named SIGRTMAX "$most"
"$luajit" -e 'assert(misc.sysprof.start{path = "options.ljp",
  signal = "RTMIN+5"}) print(misc.sysprof.status().signal)' > out || fail "RTMIN"
same "signal RTMIN+5 in Lua" $((least + 5)) "$(cat out)"
for wrong in KILL 9 SEGV 32 0 1000 x '' SIG RTMIN- RTMIN+ RTMIN-1 RTMIN+99 \
  RTMIN+5x RTMIN+-1 RTMAX+1 RTMAX-99 RTM 99999999999; do
  refuses "signal '$wrong'" 2 "signal is '$wrong', but must be the number or the" \
    "$ljprof" record --signal "$wrong" true
done
refuses "a mode that is none" 2 "must be D (counters), L (leaf) or C (call" \
  "$ljprof" record --mode l true
refuses "threads that are none" 2 "all that run Lua), all or this" \
  "$ljprof" record --threads lu true
refuses "too much" 2 "from 0 (no limit) to 100" \
  "$ljprof" record --max-overhead 101 true
refuses "too deep" 2 "a number of frames from 8 to 2048" \
  "$ljprof" record --depth 2049 true
refuses "too late" 2 "a whole number from 10 to 10000" \
  "$ljprof" record --flush 10.5 true
refuses "segments too small" 2 "a number of bytes from 4096" \
  "$ljprof" record --rotate-bytes 4095 true
refuses "segments too short" 2 "a number of seconds from 0.1" \
  "$ljprof" record --rotate-seconds nan true
refuses "segments without rotation" 2 "keep needs --rotate-bytes" \
  "$ljprof" record --keep 3 true
refuses "names in segments" 2 "cannot be combined with rotation" \
  "$ljprof" record --rotate-seconds 1 --embed-symbols true
refuses "a timer for no samples" 2 "timer configures CPU samples, but --no-cpu" \
  "$ljprof" record --memory --no-cpu --timer posix true
refuses "a depth in words" 2 "depth is 'deep'" \
  "$ljprof" record --depth deep true
refuses "options that contradict" 2 "contradict" \
  "$ljprof" record --memory --every --sample 7 true
[ ! -e none.ljp ] || fail "a file was left behind"

code=0
# shellcheck disable=SC2016 # the inner shell's
"$ljprof" record -o killed.ljp -- "$luajit" -e '
  local ffi = require("ffi") ffi.cdef("int kill(int, int); int getpid(void);")
  local stop = os.clock() + 0.6 repeat until os.clock() > stop
  ffi.C.kill(ffi.C.getpid(), 9)' 2> err || code=$?
same "a program that was killed" 137 "$code"
grep -q 'not closed cleanly' err || fail "not said: $(cat err)"
"$ljprof" report killed.ljp > /dev/null || fail "not readable"
ok "what it recorded until then is there, and it is said"

"$ljprof" record --children -o tree.ljp -- sh -c \
  "'$luajit' work.lua && '$luajit' work.lua" > /dev/null 2> err ||
  fail "children: $(cat err)"
same "each child has a file of its own" 2 "$(find . -name 'tree.ljp.[0-9]*' |
  wc -l)"
for f in tree.ljp.[0-9]*; do
  "$ljprof" check "$f" > /dev/null || fail "$f is not whole"
done
embedded() {
  "$ljprof" record --children --embed-symbols -o named.ljp -- sh -c \
    "'$luajit' -e 'for i = 1, 3e7 do tostring(i % 9) end' & wait" 2> err
}
if [ "${LJP_ANALYZER:-ON}" = ON ]; then
  embedded || fail "embed: $(cat err)"
  named=$(find . -name 'named.ljp.[0-9]*')
  "$ljprof" dump "$named" > dump.txt || fail "embed: $(cat err)"
  grep -q '^ *symbol ' dump.txt || fail "a child has no symbols: $(cat err)"
  ok "--embed-symbols puts names into the files of children, too"
else
  ! embedded || fail "--embed-symbols without an analyzer: $(cat err)"
  grep -q 'built without the analyzer' err || fail "$(cat err)"
  ok "without an analyzer --embed-symbols says so"
fi
echo "passed: $passed"
