#!/bin/sh
# ljprof record: a program is recorded from its first VM to its end, keeps its
# exit status and its output; what cannot be recorded is said in one line.
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
"$ljprof" check luajit.ljp > /dev/null || fail "not whole"
"$ljprof" report luajit.ljp | grep -q 'make .*work.lua:2' || fail "no make"
ok "the file has the program's name, is whole and names its functions"
"$ljprof" dump luajit.ljp | grep -q '^mem ' && fail "memory was not asked for"
ok "memory is recorded only when asked for"

code=0
"$ljprof" record --memory --every -o both.ljp -- "$luajit" work.lua 7 \
  > /dev/null 2> err || code=$?
same "the exit status is the program's" 7 "$code"
"$ljprof" check both.ljp > check.txt || fail "not whole: $(cat check.txt)"
grep -q '^samples ' check.txt || fail "no samples"
grep -q '^mem ' check.txt || fail "no memory events"
ok "CPU and memory stand in one file"
"$ljprof" report --live both.ljp | grep -q 'difference 0$' ||
  fail "the heap's own count differs: $("$ljprof" report --live both.ljp)"
ok "events and the VM's own count of bytes agree"
"$ljprof" record --memory --no-cpu --force -o both.ljp -- "$luajit" work.lua \
  > /dev/null 2> err || fail "memory only: $(cat err)"
"$ljprof" check both.ljp > check.txt || fail "not whole"
! grep -q '^samples ' check.txt || fail "samples without being asked for"
ok "memory alone, sampled"

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
grep -q ';file:read;.*read;\[kernel\]_\[k\] [0-9]' calls.txt ||
  fail "no kernel above read: $(cat calls.txt)"
grep '\[kernel\]' calls.txt | grep -qv '\[kernel\]_\[k\] [0-9]*$' &&
  fail "the kernel calls somebody"
ok "time in a system call stands above the C function that made it"
grep -q ';table\.sort;' calls.txt || fail "no table.sort: $(cat calls.txt)"
grep -qE 'lj_(cf|ffh)_' calls.txt &&
  fail "a builtin twice: $(grep -E 'lj_(cf|ffh)_' calls.txt)"
ok "a builtin is one frame, whichever side was asked"

cp both.ljp kept
refuses "a file that exists is kept" 1 "exists; --force" \
  "$ljprof" record -o both.ljp "$luajit" work.lua
cmp -s both.ljp kept || fail "it was changed"
refuses "a program that is not there" 127 "No such file" \
  "$ljprof" record -o none.ljp ./nothing
refuses "a program without our library" 1 "nothing was recorded" \
  "$ljprof" record -o none.ljp true
refuses "a file that cannot be" 1 "ljprof: not recorded: " \
  "$ljprof" record -o "$PWD/none/x.ljp" "$luajit" work.lua
refuses "no program" 2 "no program given" "$ljprof" record
refuses "an interval that is none" 2 "interval is '0', but wants" \
  "$ljprof" record --interval 0 true
refuses "an event that is none" 2 "event is 'gpu', but wants" \
  "$ljprof" record --event gpu true
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
echo "passed: $passed"
