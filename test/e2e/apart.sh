#!/bin/sh
# The writer thread of a service's session has its own table of descriptors: the
# program meets none of its files, may close all descriptors, and the session goes on.
# In a sandbox, and with perf events or a jitdump, it shares the program's.
. "$(dirname "$0")/lib.sh"

if grep -q '^Seccomp:.*[1-9]' /proc/self/status; then
  echo "skipped: this test is itself in a sandbox, such as a container's"
  exit 77
fi
ljprof=$BUILD_DIR/bin/ljprof

# work.lua STEP...: does each step when there is a file of its name, and writes what
# came of it to said.txt.
cat > work.lua << 'END'
local ffi = require("ffi")
ffi.cdef [[
int fork(void); int waitpid(int, int *, int); int getpid(void); int prctl(int, ...);
long syscall(long, ...);
struct code { uint16_t code; uint8_t yes, no; uint32_t k; };
struct program { uint16_t len; struct code *codes; };
]]
local function exists(name)
  local f = io.open(name)
  return f and f:close()
end
local kept = {}
local function work(seconds)
  local till = os.clock() + seconds
  while os.clock() < till do
    for i = 1, 20000 do kept[i % 97] = { i } end
  end
end
local function say(text)
  local f = assert(io.open("said.txt", "a"))
  f:write(text, "\n")
  f:close()
end
local steps = {}
function steps.close_all()
  return tostring(tonumber(ffi.C.syscall(436, ffi.cast("long", 3), ffi.cast("long", 0xffffffff), ffi.cast("long", 0))))
end
-- From here on, who calls close_range() or unshare() is killed.
function steps.sandbox()
  local codes = ffi.new("struct code[5]", {
    { 0x20, 0, 0, 0 }, { 0x15, 2, 0, 436 }, { 0x15, 1, 0, 272 },
    { 0x06, 0, 0, 0x7fff0000 }, { 0x06, 0, 0, 0x80000000 } })
  local program = ffi.new("struct program", 5, codes)
  assert(ffi.C.prctl(38, ffi.cast("long", 1), 0LL, 0LL, 0LL) == 0)
  return tostring(ffi.C.prctl(22, ffi.cast("long", 2), program))
end
function steps.child()
  local pid = ffi.C.fork()
  if pid == 0 then
    say("child " .. ffi.C.getpid())
    repeat work(0.02) until exists("child_over")
    os.exit(0)
  end
  local status = ffi.new("int[1]")
  ffi.C.waitpid(pid, status, 0)
  return "child: " .. status[0]
end
function steps.snapshot()
  return tostring(misc.memprof.snapshot() ~= nil)
end
say("pid " .. ffi.C.getpid())
for _, name in ipairs(arg) do
  repeat work(0.02) until exists(name)
  local done, result = pcall(steps[name] or tostring, name)
  say(name .. ": " .. tostring(result))
end
repeat work(0.02) until exists("over")
END

# begin SETTINGS STEP...: starts the program; sets `program` and `writer`, the number
# of its writer thread.
begin() {
  rm -rf store said.txt over child_over close_all sandbox child snapshot
  mkdir store
  settings=$1
  shift
  LJPROF_RECORD="output=$SCRATCH/store;service=s;flush=50;$settings" \
    "$BUILD_DIR/bin/luajit" work.lua "$@" > out.txt 2>&1 &
  program=$!
  at_end="kill $program"
  wait_for "the program" grep -q '^pid' said.txt
  writer=$(writer_of "$program")
}

# end: the program has ended well.
end() {
  : > over
  wait "$program" || fail "the program ended with $?: $(cat out.txt)"
  at_end=:
}

wait_for() {
  what=$1 tries=0
  shift
  until "$@" > found.txt 2> /dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "$what: not within a minute: $(cat out.txt said.txt)"
    sleep 0.1
  done
}

step() {
  : > "$1"
  wait_for "$1" grep "^$1: " said.txt
  sed 's/^[a-z_]*: //' found.txt
}

# writer_of PID: the number of its writer thread.
writer_of() {
  for task in "/proc/$1/task"/*; do
    [ "$(cat "$task/comm")" != ljprof-writer ] || echo "${task##*/}"
  done
}

# files TASK: how many files of the store this thread's table has. (A file that is
# closed while find looks makes it complain.)
files() {
  find "/proc/$program/task/$1/fd" -lname "$SCRATCH/store/*" 2> /dev/null | wc -l
}

descriptors() {
  find "/proc/$program/task/$1/fd" -type l 2> /dev/null | wc -l
}

begin 'timer=tick;memory;sample=64k;continuous=0.2s' snapshot close_all
same "the program's table has no file of the session" 0 "$(files "$program")"
# For a moment, between two files, the writer thread has none, or find misses one.
has_one() {
  [ "$(files "$writer")" = 1 ]
}
wait_for "a file of the writer thread" has_one
of_program=$(descriptors "$program")
of_writer=$(for _ in 1 2 3 4 5; do descriptors "$writer"; done | sort -n | sed -n 3p)
more_files() {
  [ "$(find store -name '*.ljp' | wc -l)" -ge 20 ]
}
wait_for "20 files" more_files
same "20 files later the program has as many descriptors" "$of_program" \
  "$(descriptors "$program")"
has_as_many() {
  [ "$(descriptors "$writer")" = "$of_writer" ]
}
wait_for "as many descriptors of the writer thread" has_as_many
ok "the writer thread has one file, and as many descriptors 20 files later"
same "a heap snapshot reaches the stream" true "$(step snapshot)"
has_heap() {
  "$ljprof" merge -o merged.ljp store/*.ljp && "$ljprof" heap merged.ljp
}
wait_for "the snapshot" has_heap
same "the program closes all descriptors" 0 "$(step close_all)"
count=$(find store -name '*.ljp' | wc -l)
more_later() {
  [ "$(find store -name '*.ljp' | wc -l)" -ge $((count + 5)) ]
}
wait_for "files after that" more_later
end
for file in store/*.ljp; do
  "$ljprof" check "$file" > check.txt 2>&1 || fail "$file: $(cat check.txt)"
done
ok "each file is whole, and the session goes on without the program's descriptors"

begin 'timer=tick' child
: > child
wait_for "the child" grep '^child [0-9]' said.txt
program_before=$program
program=$(sed -n 's/^child \([0-9]*\)$/\1/p' said.txt)
has_writer() {
  [ -n "$(writer_of "$program")" ] && [ "$(files "$(writer_of "$program")")" = 1 ]
}
wait_for "the child's writer thread" has_writer
same "a child of fork() has no file of the session either" 0 "$(files "$program")"
program=$program_before
: > child_over
same "the child ends well" 'child: 0' "$(step child)"
end

begin 'timer=tick' child
rm -r store
: > child
wait_for "the refusal" grep 'not recorded: child process' out.txt
ok "a child that cannot make its file says so: $(cat found.txt)"
: > child_over
end

begin 'timer=tick' sandbox child
same "a sandbox that kills" 0 "$(step sandbox)"
: > child
wait_for "the child" grep '^child [0-9]' said.txt
program_before=$program
program=$(sed -n 's/^child \([0-9]*\)$/\1/p' said.txt)
shares() {
  [ -n "$(writer_of "$program")" ] && [ "$(files "$program")" = 1 ]
}
wait_for "the child's file" shares
ok "in a sandbox the writer thread shares the program's table"
program=$program_before
: > child_over
same "the child in the sandbox ends well" 'child: 0' "$(step child)"
end

begin 'timer=perf'
if grep -q perf out.txt; then
  echo "skipped: perf events are not permitted here"
else
  same "with perf events the table is shared" 1 "$(files "$program")"
fi
end
