#!/bin/sh
# ljprof record -p: a session in a running program, however it ends: by Ctrl-C, by
# its time, by another ljprof, by the death of the client or of the program. The
# file is whole, and the program is as it was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

begin loop
record int.ljp
eventually "samples" some_samples int.ljp
"$ljprof" status -p "$host" > status.txt || fail "$(cat status.txt)"
grep -q "^CPU session: running, started by ljprof (process $client)" status.txt ||
  fail "$(cat status.txt)"
grep -q "into .*/int.ljp\$" status.txt || fail "$(cat status.txt)"
ok "status tells who records: $(sed -n 2p status.txt)"
"$ljprof" report int.ljp > report.txt 2>&1 || fail "$(cat report.txt)"
grep -q 'still recording' report.txt || fail "$(cat report.txt)"
ok "a report says that it is still being recorded"
same "the program has no descriptor of ours" "$files_before" \
  "$(ls "/proc/$host/fd")"
refuses "a second session" 1 \
  "is running already, for ljprof (process $client), which has joined" \
  "$ljprof" record -p "$host" -o second.ljp
refuses "a second session, of memory" 1 \
  "is running already, for ljprof (process $client), which has joined" \
  "$ljprof" record -p "$host" --memory --no-cpu -o second.ljp
[ ! -e second.ljp ] || fail "the refused session has left a file"
kill -INT $client
wait $client || fail "Ctrl-C: exit code $?: $(cat record.txt)"
whole "Ctrl-C" int.ljp
grep -q 'next: ljprof report int.ljp' record.txt || fail "$(cat record.txt)"
eventually "Ctrl-C: threads and descriptors as before" settled
ok "Ctrl-C: $(grep samples record.txt)"

refuses "a file that exists" 1 "int.ljp exists (use --force to replace it)" \
  "$ljprof" record -p "$host" -o int.ljp
"$ljprof" record -p "$host" -o int.ljp --force --duration 300ms --interval 2 \
  --threads all 2> record.txt || fail "a time: $(cat record.txt)"
"$ljprof" check int.ljp > check.txt || fail "$(cat check.txt)"
grep -q 'ended after 0.3 s, as --duration asked; the program ran on' record.txt ||
  fail "$(cat record.txt)"
"$ljprof" dump int.ljp > dump.txt
grep -q 'option.interval_us.*2000' dump.txt || fail "the interval is not 2 ms"
ok "--duration ends it, --force replaces the file, options are taken"

# A report without a file.
refuses "--report of a program that is run" 2 "--report is for a running program" \
  "$ljprof" record --report 1s x.lua
if [ "${LJP_ANALYZER:-ON}" = ON ]; then
  refuses "--report and --duration" 2 "--report says for how long" \
    "$ljprof" record -p "$host" --report 1s --duration 1s
  refuses "--report without a time" 2 "--report is 'x', but must be" \
    "$ljprof" record -p "$host" --report x
  refuses "--force without a file" 2 "--force replaces a file: -o FILE is missing" \
    "$ljprof" record -p "$host" --report 1s --force
  mkfifo fifo
  refuses "a report of a FIFO" 1 "fifo is not a regular file, so no report can be" \
    timeout 20 "$ljprof" record -p "$host" --report 300ms -o fifo --force
  before=$(ls)
  "$ljprof" record -p "$host" --report 300ms > report.txt 2> record.txt ||
    fail "a report: $(cat record.txt)"
  grep -q ' round host' report.txt || fail "$(cat report.txt)"
  grep -q 'not closed\|recording' report.txt && fail "$(cat report.txt)"
  same "a report leaves no file" "$before" "$(ls)"
  same "it says one line besides" 1 "$(wc -l < record.txt)"
  env --default-signal=INT "$ljprof" record -p "$host" --report 1h \
    --flush 20 > report.txt 2> record.txt &
  client=$!
  eventually "recording: $(cat record.txt)" grep -q "recording process" record.txt
  sleep 0.5
  kill -INT $client
  wait $client || fail "Ctrl-C: exit code $?: $(cat record.txt)"
  grep -q ' round host' report.txt || fail "$(cat report.txt)"
  ok "Ctrl-C ends it, and the report comes"
  "$ljprof" record -p "$host" --report 300ms -o kept.ljp > report.txt 2> record.txt ||
    fail "a report: $(cat record.txt)"
  grep -q ' round host' report.txt || fail "$(cat report.txt)"
  "$ljprof" report kept.ljp > again.txt || fail "no file"
  cmp report.txt again.txt || fail "two reports"
  ok "with -o there is the file, too"
else
  refuses "a report without the analyzer" 2 "--report needs the analyzer" \
    "$ljprof" record -p "$host" --report 300ms
fi
eventually "threads and descriptors as before" settled

record moved.ljp
eventually "samples" some_samples moved.ljp
mv moved.ljp away.ljp
kill -INT $client
code=0
wait $client || code=$?
same "a file that was moved: exit code" 1 $code
grep -q "moved.ljp is not there any more" record.txt || fail "$(cat record.txt)"
whole "a file that was moved" away.ljp

for event in wall cpu; do
  record killed.ljp --event $event --force
  eventually "samples" some_samples killed.ljp
  kill -9 $client
  wait $client 2> /dev/null || :
  eventually "$event: the session ends with its client" settled
  whole "$event: a client that is killed" killed.ljp
  ok "$event: a client that is killed leaves a whole file"
done

record stop.ljp
eventually "samples" some_samples stop.ljp
"$ljprof" stop -p "$host" > stop.txt || fail "$(cat stop.txt)"
grep -q '^stopped: [0-9]* samples, 0 lost' stop.txt || fail "$(cat stop.txt)"
wait $client || fail "stop: exit code $?: $(cat record.txt)"
whole "ljprof stop" stop.ljp
ok "ljprof stop: $(cat stop.txt)"
refuses "nothing to stop" 1 "no session runs that ljprof has started" \
  "$ljprof" stop -p "$host"

# A client that is stopped: the session does not depend on it.
record slow.ljp
kill -STOP $client
before=$(wc -c < slow.ljp)
grown() { [ "$(wc -c < slow.ljp)" -gt $((before + 3000)) ]; }
eventually "the file grows" grown
kill -CONT $client
kill -INT $client
wait $client || fail "a stopped client: $(cat record.txt)"
whole "a client that was stopped" slow.ljp
ok "a client that is stopped loses nothing"

# Ctrl-C when the session has just ended by itself.
record both.ljp --duration 1
kill -STOP $client
sleep 2
kill -INT $client
kill -CONT $client
wait $client || fail "Ctrl-C at the end: $(cat record.txt)"
grep -q 'ended after .* as --duration asked' record.txt ||
  fail "Ctrl-C at the end: $(cat record.txt)"
whole "Ctrl-C at the end" both.ljp
ok "Ctrl-C when the session has just ended by itself"

# A program that is stopped.
record halted.ljp
eventually "samples" some_samples halted.ljp
kill -STOP "$host"
eventually "it is told" grep -q "is stopped by a signal: the recording goes on" \
  record.txt
kill -CONT "$host"
kill -INT $client
wait $client || fail "a stopped program: $(cat record.txt)"
whole "a program that was stopped" halted.ljp
ok "a program that is stopped, and goes on"

# Clients that are killed before the session, and when it begins. (Then the file
# may have no name yet.)
for step in seized stopped masked taken hello started; do
  rm -f early.ljp
  LJPROF_JOIN_STEP=$step:kill timeout 60 "$faults" record -p "$host" \
    -o early.ljp > fault.txt 2>&1 || :
  eventually "$step: threads and descriptors as before" settled
  [ ! -e early.ljp ] || "$ljprof" check early.ljp > check.txt ||
    fail "$step: $(cat check.txt)"
  "$ljprof" status -p "$host" > status.txt || fail "$step: $(cat status.txt)"
  grep -q '^no session' status.txt || fail "$step: $(cat status.txt)"
done
ok "a client that is killed before the session has a name"

# Clients that are killed, or stopped for a while, when the session has just begun, and
# when they end it.
for step in started stopping; do
  for action in kill stop; do
    rm -f late.ljp
    : > record.txt
    LJPROF_JOIN_STEP=$step:$action env --default-signal=INT "$faults" record \
      -p "$host" -o late.ljp --flush 20 2> record.txt &
    client=$!
    if [ $step = stopping ]; then
      eventually "recording: $(cat record.txt)" grep -q "recording process" record.txt
      eventually "samples" some_samples late.ljp
      kill -INT $client
    fi
    if [ $action = stop ]; then
      halted() { grep -q '^State:.T' "/proc/$client/status"; }
      eventually "$step: the client is stopped" halted
      sleep 0.3
      kill -CONT $client
      [ $step = stopping ] || {
        eventually "samples" some_samples late.ljp
        kill -INT $client
      }
      wait $client || fail "$step, $action: exit code $?: $(cat record.txt)"
    else
      wait $client 2> /dev/null || :
    fi
    eventually "$step, $action: threads and descriptors as before" settled
    [ ! -e late.ljp ] || [ $step,$action = started,kill ] ||
      whole "$step, $action" late.ljp
  done
done
ok "a client that is killed or stopped when the session begins or ends"

# The end of the program.
record end.ljp
eventually "samples" some_samples end.ljp
kill -TERM "$host"
wait "$host" || fail "the program ended with $?"
wait $client || fail "the program's end: exit code $?: $(cat record.txt)"
whole "the program ends by itself" end.ljp
grep -q "has ended, or is another program" record.txt || fail "$(cat record.txt)"
ok "the program ends by itself: the file is whole"
begin loop
record killed.ljp --force
eventually "samples" some_samples killed.ljp
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=
wait $client || fail "kill -9 of the program: exit $?: $(cat record.txt)"
"$ljprof" report killed.ljp > report.txt 2>&1 || :
grep -q ' round host' report.txt || fail "$(cat report.txt)"
ok "the program is killed: the file is readable"

# A full disk.
begin loop
mkdir small
at_end="$at_end; umount '$SCRATCH/small' 2> /dev/null"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=16k none small 2> /dev/null; then
  "$ljprof" record -p "$host" -o small/full.ljp --interval 0.1 --threads all \
    --duration 60 --flush 20 2> record.txt && code=0 || code=$?
  same "a full disk: exit code" 1 "$code"
  grep -q "No space left on device" record.txt || fail "$(cat record.txt)"
  ok "a full disk: $(head -n 2 record.txt | tail -n 1)"
  # It is nothing to the next session, whichever it is of.
  "$ljprof" record -p "$host" -o after.ljp --memory --no-cpu --duration 100ms \
    2> record.txt || fail "memory after a full disk: $(cat record.txt)"
  "$BUILD_DIR/bin/luajit" -e 'while true do t = { {} } end' > other.txt 2>&1 &
  other=$!
  at_end="$at_end; kill -9 $other 2> /dev/null"
  eventually "its library" grep -q libluajit "/proc/$other/maps"
  rm small/full.ljp
  "$ljprof" record -p $other -o small/full.ljp --memory --every --no-cpu \
    --duration 60 --flush 20 2> record.txt && code=0 || code=$?
  same "a full disk, memory: exit code" 1 "$code"
  "$ljprof" record -p $other -o after.ljp --force --duration 100ms 2> record.txt ||
    fail "CPU after a full disk: $(cat record.txt)"
  kill $other
  ok "sessions after a full disk"
  umount small
  eventually "threads and descriptors as before" settled
fi

end "sessions"

# What our thread does while it begins a session is not the program's time. (What is
# left is that of the thread that made ours and then ended.)
begin epoll
"$ljprof" record -p "$host" -o quiet.ljp --duration 300ms 2> record.txt ||
  fail "$(cat record.txt)"
"$ljprof" dump quiet.ljp > dump.txt || fail "$(cat dump.txt)"
awk '/ thread id=/ && /name="ljprof-helper"/ { sub(/.* id=/, ""); id = $1 }
  / unsampled / { thread = ns = $0; sub(/.* thread=/, "", thread); sub(/.* ns=/, "", ns)
    if (id && thread + 0 == id) ours += ns
    if (/before the profiler found/) theirs += ns }
  END { print ours, theirs + 0; exit !(ours > theirs) }' dump.txt > times.txt ||
  fail "the helper's time and the program's: $(cat times.txt dump.txt)"
ok "a program that waits used hardly any time before it was found"
"$ljprof" check quiet.ljp > check.txt || fail "$(cat check.txt)"
grep -q '^CPU time .* + lost ' check.txt || fail "$(cat check.txt)"
! grep -q 'not explained' check.txt || fail "$(cat check.txt)"
ok "all time is explained, that of the session's end, too"
# As timeout(1) does.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  record twice.ljp --force
  kill -TERM $client
  kill -TERM $client 2> kill.txt || :
  wait $client || fail "two signals at once: $? $(cat record.txt)"
  ! grep -q "has not ended" record.txt || fail "two signals at once: $(cat record.txt)"
done
ok "two signals at once end the recording in order"
end "quiet"

# A program that blocks all signals cannot be sampled, and the file says so; its
# memory is recorded, and its stack can be seen.
cat > blocked.lua << 'END'
local ffi = require("ffi")
ffi.cdef("int sigfillset(void *); int sigprocmask(int, const void *, void *);")
local all = ffi.new("char[128]")
ffi.C.sigfillset(all)
ffi.C.sigprocmask(0, all, nil)
function round() local t for i = 1, 1e5 do t = { i } end return t end
io.stdout:setvbuf("no")
io.stdout:write("ready\n")
while true do round() end
END
: > host.txt
"$BUILD_DIR/bin/luajit" blocked.lua > host.txt &
host=$!
eventually "ready" grep -q ready host.txt
mask_before=$(grep SigBlk "/proc/$host/status")
"$ljprof" record -p "$host" -o blocked.ljp --duration 500ms 2> record.txt ||
  fail "blocked: $(cat record.txt)"
grep -q 'not sampled: the thread blocks the signal' record.txt || fail "$(cat record.txt)"
refuses "a report of a program that blocks signals" 1 "nothing to show: no CPU time" \
  "$ljprof" report blocked.ljp
grep -q 'not sampled: the thread blocks the signal' out.txt || fail "$(cat out.txt)"
"$ljprof" record -p "$host" -o blocked.ljp --force --memory --no-cpu --duration 500ms \
  2> record.txt || fail "blocked: $(cat record.txt)"
"$ljprof" report --alloc blocked.ljp > report.txt || fail "blocked: no memory"
grep -q ' round blocked.lua' report.txt || fail "$(cat report.txt)"
"$ljprof" dump-stacks -p "$host" > stacks.txt || fail "blocked: no stacks"
grep -q '^  round  *blocked.lua:6$' stacks.txt || fail "$(cat stacks.txt)"
same "its mask is as before" "$mask_before" "$(grep SigBlk "/proc/$host/status")"
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=
# A session of the program itself is left alone.
"$BUILD_DIR/bin/luajit" -e 'assert(misc.sysprof.start{path = "own.ljp"})
  local t = os.time() while os.time() - t < 60 do end' &
host=$!
eventually "its own session" test -e own.ljp
"$ljprof" status -p "$host" > status.txt || fail "$(cat status.txt)"
grep -q '^CPU session: running, started by the program: .*own.ljp$' status.txt ||
  fail "$(cat status.txt)"
refuses "a session of the program" 1 "profiler is running already" \
  "$ljprof" record -p "$host" -o other.ljp
refuses "to stop it" 1 "no session runs that ljprof has started" \
  "$ljprof" stop -p "$host"
# The program cannot stop ljprof's.
kill -9 "$host"
wait "$host" 2> /dev/null || :
cat > try.lua << 'END'
io.stdout:setvbuf("no")
io.stdout:write("ready\n")
while not io.open("go") do end
print(misc.sysprof.stop())
while true do end
END
: > try.txt
"$BUILD_DIR/bin/luajit" try.lua > try.txt &
host=$!
eventually "ready" grep -q ready try.txt
record try.ljp
touch go
eventually "the answer" grep -q '^nil' try.txt
grep -q "was started by ljprof (process $client), which has joined" try.txt ||
  fail "$(cat try.txt)"
ok "the program cannot end it: $(grep nil try.txt)"
kill -INT $client
wait $client || fail "$(cat record.txt)"
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=
