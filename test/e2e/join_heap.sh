#!/bin/sh
# ljprof heap -p: a heap snapshot of a running program: where the heap is whole, or
# at any moment if the VM does not come there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

refuses "a number of bytes" 2 "--string-bytes wants a number from 0 to 4096, not '5000'" \
  "$ljprof" heap -p 1 --string-bytes 5000
refuses "a VM's number" 2 "--vm wants a number from 1 to 4294967295, not 'x'" \
  "$ljprof" heap -p 1 --vm x
refuses "a file, too" 2 "-p PID takes a snapshot of its own" "$ljprof" heap -p 1 a.ljp
refuses "a comparison" 2 "-p PID takes a snapshot of its own" "$ljprof" heap -p 1 --diff
refuses "no program" 2 "--gc is for a running program: -p PID is missing" \
  "$ljprof" heap --gc a.ljp
refuses "--force without a file" 2 "--force replaces a file: -o FILE is missing" \
  "$ljprof" heap -p 1 --force
mkfifo fifo
refuses "a FIFO" 1 "fifo is not a regular file" timeout 20 "$ljprof" heap -p $$ -o fifo
refuses "standard output" 2 "-o is '-'" "$ljprof" heap -p 1 -o -
refuses "two views" 2 "are two views" "$ljprof" heap -p 1 --dominators --strings
refuses "no number" 2 "-p is 'x'" "$ljprof" heap -p x
refuses "a process that is gone" 1 "there is no process 4194304" \
  "$ljprof" heap -p 4194304 -o gone.ljp
[ ! -e gone.ljp ] || fail "a file was made for nothing"

cat > heap.lua << 'END2'
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned); int pause(void);"
items = {}
for i = 1, 30011 do items[i] = {text = "item " .. i, number = i} end
local function begin()
  io.open("begun", "w"):close()
end
-- The heap's size, when nothing is allocated any more.
local function count()
  local file = io.open("count", "w")
  local function write()
    file:write(string.format("%d", collectgarbage("count") * 1024))
  end
  write()
  file:seek("set")
  write()
  file:close()
end
local modes = {}
function modes.allocates()
  begin()
  local t
  while true do for i = 1, 100 do t = {i} end end
end
function modes.waits()
  collectgarbage() collectgarbage()
  local pause = ffi.C.pause
  begin()
  while true do pause() end
end
function modes.stopped()
  collectgarbage("stop")
  begin()
  local t, keys = {}, {}
  for i = 1, 500 do keys[i] = "k" .. i end
  while true do -- tables grow and shrink, but leave no garbage
    for i = 1, 500 do t[i] = i t[keys[i]] = i end
    for i = 1, 500 do t[i] = nil t[keys[i]] = nil end
  end
end
-- A heap that something has damaged.
function modes.damaged()
  local function words(object)
    return ffi.cast("uint64_t *", tonumber((tostring(object):match("0x(%x+)")), 16))
  end
  wrong_array = {1, 2, 3}
  wrong_array[100] = 1
  for i = 4, 99 do wrong_array[i] = {} end
  cut = {}
  local pause = ffi.C.pause
  words(wrong_array)[2] = 4096 * 3
  words(cut)[0] = 0xdead0000
  begin()
  while true do pause() end
end
modes[arg[1]]()
END2
# lua MODE OPTION...: runs the script: $host.
lua() {
  mode=$1
  rm -f begun
  "$BUILD_DIR/bin/luajit" heap.lua "$@" > host.txt 2>&1 &
  host=$!
  eventually "$mode: $(cat host.txt)" test -e begun
}
over() {
  kill -9 "$host"
  wait "$host" 2> killed.txt || :
  host=
}
# take OPTION...: a snapshot, as JSON in heap.json.
take() {
  "$ljprof" heap -p "$host" --json "$@" > heap.json 2> error.txt ||
    fail "$mode: $(cat error.txt)"
}
# holds WHAT EXPRESSION: something about the snapshot d, in Python.
holds() {
  python3 -c "
import json, sys
d = json.load(open('heap.json'))
sys.exit(not ($2))" || fail "$mode: $1: $(head -c 600 heap.json; cat error.txt)"
  ok "$mode: $1"
}

lua allocates
take
same "allocates: no complaint" "" "$(cat error.txt)"
holds "taken where the heap is whole" "d['complete'] and not d['any_moment']"
holds "each byte" "d['bytes'] == d['heap_bytes'] and d['bytes'] - d['garbage_bytes'] > 30011 * 100"
"$ljprof" heap -p "$host" -o kept.ljp --string-bytes 11 --top 1 > shown.txt || fail "-o"
grep -q '_G.items  table {30011 items}' shown.txt || fail "$(cat shown.txt)"
"$ljprof" heap kept.ljp --top 1 > again.txt || fail "the file"
same "the file shows what was shown" "$(cat shown.txt)" "$(cat again.txt)"
"$ljprof" check kept.ljp > check.txt || fail "$(cat check.txt)"
ok "the file is whole"
"$ljprof" dump kept.ljp | grep -q 'text_limit=11 ' || fail "--string-bytes"
refuses "a file that exists" 1 "kept.ljp: exists (use --force to replace it)" \
  "$ljprof" heap -p "$host" -o kept.ljp
"$ljprof" heap -p "$host" -o kept.ljp --force --path '^table \{number, text}' > path.txt ||
  fail "--path"
grep -q '30011.*_G.items\[\*]' path.txt || fail "$(cat path.txt)"
ok "a view of it"
take --gc
holds "garbage was collected" "not d['any_moment'] and d['complete']"
refuses "a VM that is not there" 2 "--vm is 77, but process $host (luajit) has these: 1" \
  "$ljprof" heap -p "$host" --vm 77
# Twice at the same time: one is refused, or comes later.
"$ljprof" heap -p "$host" --json > first.txt 2>&1 & first=$!
"$ljprof" heap -p "$host" --json > second.txt 2>&1 || grep -q 'another heap snapshot' second.txt ||
  fail "$(cat second.txt)"
wait $first || grep -q 'another heap snapshot' first.txt || fail "$(cat first.txt)"
ok "two clients"
[ "$(sed 's/.*) \(.\).*/\1/' "/proc/$host/stat")" = R ] || fail "it does not run"
alone() {
  [ "$(ls "/proc/$host/task")" = "$host" ]
}
eventually "no thread of ours stays" alone
over

lua waits
take
grep -q 'note: VM 1 was copied at any moment' error.txt || fail "$(cat error.txt)"
ok "waits: it is said"
holds "copied anyway" "d['any_moment'] and d['complete'] and d['bytes'] == d['heap_bytes']"
over

lua stopped
for i in 1 2 3 4 5; do
  take --vm 1
  holds "copy $i while the collector is stopped" \
    "d['any_moment'] and d['complete'] and d['objects'] > 30011"
done
over

lua damaged
take
holds "a damaged heap" "d['any_moment'] and d['complete'] and d['objects'] > 100"
grep -qE 'any moment.*could not be read: [1-9]' error.txt || fail "$(cat error.txt)"
"$ljprof" heap -p "$host" -o damaged.ljp --top 1 > shown.txt 2> error.txt || fail "$(cat error.txt)"
grep -qE 'copied at any moment.*; [1-9][0-9]* references lead nowhere' shown.txt || fail "$(cat shown.txt)"
"$ljprof" dump damaged.ljp | grep -q 'could not be read' || fail "the file does not say so"
ok "what could not be read is told"
[ -d "/proc/$host" ] || fail "the program has ended"
over

# Several VMs, one of which hangs.
cat > vms.lua << 'END2'
mine = {}
function blocked() begins() while true do mine[1] = {} end end
function locked() take_lock() end
function sleeps() sleep() end
END2
mode=vms
"$BUILD_DIR/bin/stacks_host" vms.lua > host.txt 2>&1 &
host=$!
eventually "vms: $(cat host.txt)" grep -q ready host.txt
refuses "JSON is for one VM" 2 "choose it by --vm N (1 2 3)" \
  "$ljprof" heap -p "$host" --json
refuses "a file is for one VM" 2 "choose it by --vm N (1 2 3)" \
  "$ljprof" heap -p "$host" -o several.ljp
[ ! -e several.ljp ] || fail "a file was made for nothing"
"$ljprof" heap -p "$host" --top 1 > shown.txt 2> error.txt || fail "$(cat error.txt)"
same "all VMs" "VM 1 VM 2 VM 3" "$(grep '^VM' shown.txt | tr '\n' ' ' | sed 's/ $//')"
same "two of them do not allocate" 2 "$(grep -c 'any moment' error.txt)"
take --vm 2
holds "one of them" "d['vm'] == 2"
over

# Beside a memory session that the program itself records.
cat > session.lua << 'END2'
assert(misc.memprof.start{path = "session.ljp", every = true})
io.open("begun", "w"):close()
local t
while not io.open("stop") do for i = 1, 1000 do t = {i} end end
misc.memprof.stop()
END2
mode=session
rm -f begun stop
"$BUILD_DIR/bin/luajit" session.lua > host.txt 2>&1 &
host=$!
eventually "session: $(cat host.txt)" test -e begun
take
holds "beside a session" "d['complete'] and not d['any_moment'] and d['bytes'] == d['heap_bytes']"
touch stop
wait "$host" || fail "$(cat host.txt)"
host=
balanced "the session" 1 1 session.ljp
echo "$passed checks passed"
