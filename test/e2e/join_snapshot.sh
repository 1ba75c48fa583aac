#!/bin/sh
# ljprof record -p --memory --snapshot: heap snapshots in the recording of a running
# program, with the stacks that allocated the objects.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

refuses "without memory" 2 "--snapshot needs --memory" \
  "$ljprof" record -p 1 --snapshot
refuses "without memory" 2 "--snapshot-every needs --memory" \
  "$ljprof" record -p 1 --snapshot-every 1
refuses "a jitdump" 2 "type 'ljprof jitdump -p PID'" "$ljprof" record -p 1 --jitdump

cat > grow.lua << 'END2'
local ffi = require "ffi"
ffi.cdef [[
int usleep(unsigned); int pause(void); int dup(int); int fcntl(int, int, ...);
int fork(void); int waitpid(int, int *, int); void _exit(int);]]
cache = {}
local function remember(i)
  cache[#cache + 1] = {id = i, name = "entry " .. i}
end
local i = 0
local function step()
  for _ = 1, 20 do i = i + 1 remember(i) end
  for _ = 1, 200 do local t = {i} end
end
for _ = 1, 200 do step() end
local modes = {}
function modes.grows()
  while true do step() ffi.C.usleep(1000) end
end
function modes.waits()
  while true do ffi.C.pause() end
end
-- Asks for snapshots in a session that may be a client's.
function modes.asks()
  while true do
    step()
    local ok, why = misc.memprof.snapshot{}
    local file = io.open("answer.new", "w")
    file:write(tostring(ok), " ", tostring(why), "\n")
    file:close()
    os.rename("answer.new", "answer")
    ffi.C.usleep(1000)
  end
end
-- A child has each of the descriptors of the program.
function modes.forks()
  for _ = 1, 60 do ffi.C.dup(0) end
  local status = ffi.new "int[1]"
  local most = 0
  for fd = 0, 100 do
    if ffi.C.fcntl(fd, 1) >= 0 then most = most + 1 end
  end
  while true do
    step()
    local child = ffi.C.fork()
    if child == 0 then
      local count = 0
      for fd = 0, 100 do
        if ffi.C.fcntl(fd, 1) >= 0 then count = count + 1 end
      end
      ffi.C._exit(count >= most and 0 or 1) -- more: while a client joins
    end
    ffi.C.waitpid(child, status, 0)
    if status[0] ~= 0 then
      local file = io.open("wrong", "a")
      file:write(status[0], "\n")
      file:close()
    end
  end
end
io.open("begun", "w"):close()
modes[arg[1]]()
END2
# lua MODE: runs the script: $host.
lua() {
  mode=$1
  rm -f begun
  "$BUILD_DIR/bin/luajit" grow.lua "$1" < /dev/null > host.txt 2>&1 &
  host=$!
  eventually "$1: begins" [ -e begun ]
  tasks_before=$(ls "/proc/$host/task")
  files_before=$(ls "/proc/$host/fd")
}
# done_with WHAT: threads and descriptors are as before; the program ends.
done_with() {
  eventually "$1: threads and descriptors as before" settled
  kill -9 "$host"
  wait "$host" 2> /dev/null || :
  host=
  same "$1: what the program says" "" "$(cat host.txt)"
}
# snapshots WHAT LEAST FILE: so many are in the file, all whole.
snapshots() {
  "$ljprof" check "$3" > check.txt || fail "$1: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "$1: $(cat check.txt)"
  count=$(sed -n 's/^\([0-9]*\) heap snapshots\{0,1\}, 0 incomplete$/\1/p' check.txt)
  [ "${count:-0}" -ge "$2" ] || fail "$1: $(cat check.txt)"
}
# held_by WHAT FILE: most of what lives was allocated by remember(), in the cache.
held_by() {
  "$ljprof" heap --sites "$2" > sites.txt || fail "$1: sites"
  grep -A 3 'allocated by' sites.txt | grep -q ' remember grow.lua:[67]$' ||
    fail "$1: $(cat sites.txt)"
  "$ljprof" heap "$2" > heap.txt || fail "$1: heap"
  grep -q '_G.cache ' heap.txt || fail "$1: $(cat heap.txt)"
}

# -- At intervals, and at the end of its time. ------------------------------------------
lua grows
"$ljprof" record -p $host --memory --every --no-cpu --snapshot-every 0.4 \
  --duration 1.8 -o every.ljp 2> record.txt || fail "$(cat record.txt)"
grep -q 'as --duration asked.*; the program ran on' record.txt ||
  fail "$(cat record.txt)"
snapshots "at intervals" 3 every.ljp
held_by "at intervals" every.ljp
"$ljprof" heap --diff every.ljp > diff.txt || fail "diff"
grep -A 2 'who holds what was born' diff.txt | grep -q '_G.cache' ||
  fail "$(cat diff.txt)"
ok "at intervals: $count"

# -- At the end only. -------------------------------------------------------------------
record last.ljp --memory --sample 1k --snapshot
sleep 0.5
kill -INT $client
wait $client || fail "Ctrl-C: $(cat record.txt)"
snapshots "Ctrl-C" 1 last.ljp
same "Ctrl-C: one snapshot" 1 "$count"
held_by "Ctrl-C" last.ljp
ok "Ctrl-C, sampled, beside CPU samples"

# -- File segments. ----------------------------------------------------------------------
record parts.ljp --memory --every --snapshot-every 0.3 --rotate-seconds 0.5
ended() { # So many snapshots in the segments.
  [ -e parts.ljp.s3 ] && [ "$(for part in parts.ljp parts.ljp.s*; do
    "$ljprof" dump "$part" 2> /dev/null
  done | grep -c '^  heap-end ')" -ge "$1" ]
}
eventually "three segments, three snapshots" ended 3
kill -INT $client
wait $client || fail "segments: $(cat record.txt)"
"$ljprof" merge -o merged.ljp parts.ljp parts.ljp.s* 2> merge.txt ||
  fail "$(cat merge.txt)"
snapshots "segments" 3 merged.ljp
held_by "segments" merged.ljp
ok "segments: $count"

# -- The end of the client, at any time. -------------------------------------------------
for pause in 0 0.05 0.1 0.15 0.2; do
  record killed.ljp --memory --every --snapshot-every 0.1 --force
  sleep 0.2
  sleep $pause
  kill -9 $client
  wait $client 2> /dev/null || :
  eventually "the session ends with its client" settled
  "$ljprof" check killed.ljp > check.txt || fail "killed: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "killed: $(cat check.txt)"
done
ok "a client that is killed"

# -- A snapshot of its own beside a recording. -------------------------------------------
record beside.ljp --memory --every --snapshot
"$ljprof" heap -p $host -o own.ljp > /dev/null 2> heap.err || fail "$(cat heap.err)"
kill -INT $client
wait $client || fail "beside: $(cat record.txt)"
snapshots "beside" 1 beside.ljp
snapshots "its own" 1 own.ljp
ok "one of its own beside a recording"

# -- The program ends first. --------------------------------------------------------------
record ends.ljp --memory --snapshot
kill -9 $host
wait $host 2> /dev/null || :
host=
wait $client || fail "the program ends: $(cat record.txt)"
grep -q 'no heap snapshot was taken at the end' record.txt ||
  fail "the program ends: $(cat record.txt)"
"$ljprof" check ends.ljp > check.txt || :
grep -q 'whole\|not closed' check.txt || fail "$(cat check.txt)"
ok "the program ends first"

# -- A program that waits. ------------------------------------------------------------------
lua waits
record waits.ljp --memory --snapshot
kill -INT $client
wait $client || fail "waits: $(cat record.txt)"
same "waits: said once" 1 "$(grep -c 'VM 1 does not come to a moment' record.txt)"
grep -q 'no heap snapshot: VM 1 does not come to a moment at which its heap is whole' \
  record.txt || fail "waits: $(cat record.txt)"
"$ljprof" dump waits.ljp | grep -q 'heap snapshot 1 is missing: VM 1 does not come' ||
  fail "waits: $("$ljprof" dump waits.ljp | grep note)"
"$ljprof" record -p $host --memory --snapshot --duration 0.3 -o late.ljp \
  2> record.txt || fail "waits: $(cat record.txt)"
grep -qE 'ended after [2-9][0-9.]* s, not after 0\.3 s, as --duration asked, since it' \
  record.txt || fail "waits: $(cat record.txt)"
done_with "waits"
ok "a program that waits"

# -- Children of the program keep its descriptors. -------------------------------------------
lua forks
record forks.ljp --memory --every --snapshot-every 0.1
sleep 2
kill -INT $client
wait $client || fail "forks: $(cat record.txt)"
snapshots "forks" 3 forks.ljp
[ ! -e wrong ] || fail "forks: children lack descriptors: $(cat wrong)"
done_with "forks"
ok "forks: $count"

# -- The program asks for one itself. ----------------------------------------------------------
lua asks
record asks.ljp --memory --every --snapshot
eventually "the program is refused" grep -q "^nil .* that of ljprof (process $client), which has joined the program: give the snapshot a path" \
  answer
kill -INT $client
wait $client || fail "asks: $(cat record.txt)"
snapshots "asks" 1 asks.ljp
done_with "asks"
ok "the program asks for one itself"

# -- By its socket. ---------------------------------------------------------------------------
LJPROF_LISTEN=$PWD/app.sock
export LJPROF_LISTEN
lua grows
unset LJPROF_LISTEN
door=$PWD/app.sock
record door.ljp --memory --every --snapshot
kill -INT $client
wait $client || fail "by its socket: $(cat record.txt)"
snapshots "by its socket" 1 door.ljp
held_by "by its socket" door.ljp
done_with "by its socket"
ok "by its socket"
door=

# -- Several VMs. --------------------------------------------------------------------------------
join_program=join_memory_host
begin threads
wanted="threads: wrong 0 left 0"
record vms.ljp --memory --every --no-cpu --snapshot
sleep 0.3
kill -INT $client
wait $client || fail "several VMs: $(cat record.txt)"
snapshots "several VMs" 2 vms.ljp
"$ljprof" heap --snapshot 1 vms.ljp | sed -n 's/^Snapshot 1.*, //p' > vms.txt
"$ljprof" heap --snapshot 2 vms.ljp | sed -n 's/^Snapshot 2.*, //p' >> vms.txt
same "of two VMs" 2 "$(sort -u vms.txt | grep -c '^VM [0-9]*$')"
end "several VMs"
ok "several VMs: $count"
