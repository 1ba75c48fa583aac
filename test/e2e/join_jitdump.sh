#!/bin/sh
# ljprof jitdump -p: the code that a running program has compiled, and compiles, in
# files for perf.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"
luajit=$BUILD_DIR/bin/luajit
maps=
clean() {
  [ -z "$host" ] || kill -9 "$host"
  for of in $maps; do
    rm -f "/tmp/perf-$of.map"
  done
}
at_end=clean

refuses "no process" 2 "-p PID is missing" "$ljprof" jitdump
refuses "no number" 2 "-p is 'x'" "$ljprof" jitdump -p x
refuses "a time" 2 "--duration is '5x', but must be a time" \
  "$ljprof" jitdump -p 1 --duration 5x
refuses "a folder that is not there" 1 "no/where: is not a folder" \
  "$ljprof" jitdump -p 1 -o no/where
refuses "a process that is gone" 1 "there is no process 4194304" \
  "$ljprof" jitdump -p 4194304

cat > code.lua << 'END2'
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned);"
local function sum(n)
  local t = 0
  for i = 1, n do t = t + i end
  return t
end
sum(1000)
local function await(file)
  while not io.open(file) do ffi.C.usleep(5000) end
end
jit.off(await)
io.open("begun", "w"):close()
await("more")
local function product(n)
  local t = 1
  for i = 1, n do t = t * i % 1009 end
  return t
end
product(1000)
io.open("done", "w"):close()
if arg[1] == "hot" then while true do product(1e6) end end
await("stop")
END2
# begin_code OPTION...: the program: $host.
begin_code() {
  rm -f begun more "done" stop
  "$luajit" code.lua "$@" > host.txt 2>&1 &
  host=$!
  maps="$maps $host"
  rm -f "/tmp/perf-$host.map"
  eventually "the program: $(cat host.txt)" test -e begun
}
# dump OPTION...: begins a jitdump of it: $client.
dump() {
  : > dump.txt
  env --default-signal=INT "$ljprof" jitdump -p "$host" "$@" 2> dump.txt &
  client=$!
  eventually "jitdump: $(cat dump.txt)" grep -q "recording process" dump.txt
}
more() {
  touch more
  eventually "more code" test -e "done"
}
# holds WHAT FOLDER WANTED UNWANTED: the files are whole, each field is right, and
# traces of these names are in them, or are not.
holds() {
  told=$("$luajit" "$SOURCE_DIR/test/e2e/jitdump.lua" child "$2/jit-$host.dump" \
    "/tmp/perf-$host.map" "$3" "$4" 2>&1) || fail "$1: $told"
  ok "$1"
}
program_ends() {
  touch stop
  wait "$host" || fail "$(cat host.txt)"
  host=
}

begin_code
dump
grep -q "jit-$host.dump" "/proc/$host/maps" || fail "perf cannot find it: no mapping"
ok "it is mapped, so perf finds it"
same "nobody else reads them" "600 600" \
  "$(stat -c %a "jit-$host.dump" "/tmp/perf-$host.map" | tr '\n' ' ' | sed 's/ $//')"
refuses "two at once" 1 "exists (use --force to replace it)" "$ljprof" jitdump -p "$host"
mkdir other
mv "/tmp/perf-$host.map" map
refuses "a session that runs" 1 "profiler is running already, for ljprof" "$ljprof" jitdump -p "$host" -o other
[ ! -e "other/jit-$host.dump" ] || fail "the dump of a refused start stays"
[ ! -e "/tmp/perf-$host.map" ] || fail "the map of a refused start stays"
mv map "/tmp/perf-$host.map"
ok "a refused start leaves no files"
dumped=$(stat -c %i "jit-$host.dump" "/tmp/perf-$host.map")
refuses "--force while a session runs" 1 "profiler is running already, for ljprof" \
  "$ljprof" jitdump -p "$host" --force
same "the files of the one that runs are as they were" "$dumped" \
  "$(stat -c %i "jit-$host.dump" "/tmp/perf-$host.map")"
more
kill -INT $client
wait $client || fail "$(cat dump.txt)"
grep -q "jit-$host.dump and .*perf-$host.map are complete" dump.txt || fail "$(cat dump.txt)"
holds "code that existed, and code that came" . "product@code.lua:17" "TRACE_99:"
grep -q 'TRACE_1::sum@code.lua:5$' "/tmp/perf-$host.map" ||
  fail "the map: $(cat "/tmp/perf-$host.map")"
ok "the map has addresses and names"
alone() {
  [ "$(ls "/proc/$host/task")" = "$host" ]
}
eventually "no thread of ours stays" alone
dump --force --duration 300ms
wait $client || fail "$(cat dump.txt)"
holds "again, for a time" . "product@code.lua:17" "TRACE_99:"
same "the replaced files are gone" "" \
  "$(find . /tmp -maxdepth 1 -name "*$host.*ljp-*")"
dump -o other --force
program_ends
wait $client || fail "$(cat dump.txt)"
host=${maps##* }
! grep -q complete dump.txt || fail "the program's end: $(cat dump.txt)"
holds "until the program ends" other "product@code.lua:17" "TRACE_99:"
host=

# The client is killed: the session in the program ends, with whole files.
begin_code
dump
kill -9 $client
wait $client 2> killed.txt || :
eventually "no thread of ours stays" alone
more
holds "until ljprof is killed" . "sum@code.lua:5" "product@"
program_ends

# Files of the program's own session are not touched.
cat > own.lua << 'END2'
local ffi = require "ffi"
ffi.cdef "int usleep(unsigned);"
local function await(file)
  while not io.open(file) do ffi.C.usleep(5000) end
end
jit.off(await)
assert(misc.sysprof.start{mode = "C", path = "own.ljp", jitdump = true})
assert(misc.sysprof.stop())
io.open("begun", "w"):close()
await("more")
assert(misc.sysprof.start{mode = "C", path = "own.ljp", jitdump = true})
local t = 0 for i = 1, 1000 do t = t + i end
assert(misc.sysprof.stop())
io.open("done", "w"):close()
await("stop")
END2
rm -f begun more "done" stop
"$luajit" own.lua > host.txt 2>&1 &
host=$!
maps="$maps $host"
eventually "own: $(cat host.txt)" test -e begun
mv "/tmp/perf-$host.map" map
env --default-signal=INT "$ljprof" jitdump -p "$host" -o other --duration 200ms 2> dump.txt ||
  fail "$(cat dump.txt)"
mv map "/tmp/perf-$host.map"
more
grep -q 'main chunk@own.lua' "/tmp/perf-$host.map" || fail "own: $(cat "/tmp/perf-$host.map")"
grep -aq 'main chunk@own.lua' "jit-$host.dump" || fail "own: the dump"
ok "the program goes on with its own files"
program_ends

# A dump that cannot be complete.
begin_code
prlimit --pid "$host" --fsize=200:200
dump
code=0
wait $client || code=$?
same "files that cannot be written: exit code" 1 "$code"
grep -q 'the session was ended by an error: the jitdump ends early: File too large' \
  dump.txt || fail "$(cat dump.txt)"
grep -q complete dump.txt && fail "said to be complete: $(cat dump.txt)"
eventually "no thread of ours stays" alone
more
program_ends
ok "files that cannot be written"

# The names that perf reads from the file.
if ! perf record -q -k mono -e task-clock:u -o probe.data true > perf.txt 2>&1; then
  ok "skipped: perf may not record here: $(head -n 1 perf.txt)"
  exit 0
fi
begin_code hot
perf record -q -k mono -e task-clock:u -F 499 -o perf.data -p "$host" > perf.txt 2>&1 &
perf=$!
eventually "perf records" test -s perf.data
sleep 0.5
dump
more
sleep 1
kill -INT $perf
wait $perf || :
kill -INT $client
wait $client || fail "$(cat dump.txt)"
perf inject --jit -i perf.data -o jitted.data > perf.txt 2>&1 ||
  fail "perf inject: $(cat perf.txt)"
perf script -i jitted.data -F comm,pid,ip,sym,dso > script.txt 2> perf.txt ||
  fail "perf script: $(cat perf.txt)"
grep -q 'TRACE_[0-9]*::product@code.lua:17 .*jitted-' script.txt ||
  fail "perf does not know the code: $(head -n 20 script.txt)"
ok "perf names samples by it"
