#!/bin/sh
# ljprof record -p --memory: memory events of a running program, whichever allocator
# its VMs have and whatever it does with it. The events add up to the VMs' own
# count, and at the end each VM has its own allocator again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"
join_program=join_memory_host
COUNT=${LJP_JOIN_COUNT:-12}

# start MODE: the program that is joined.
start() {
  begin "$1"
  wanted="$1: wrong 0 left 0"
}
some_events() {
  [ "$(wc -c < "$1")" -gt 20000 ]
}
# short FILE OPTION...: records for a moment.
moment=300ms
short() {
  into=$1
  shift
  "$ljprof" record -p "$host" -o "$into" --force --duration $moment "$@" \
    2> record.txt || fail "$mode $*: $(cat record.txt)"
}
# allocates FILE: a function of the program has allocated.
allocates() {
  "$ljprof" report --alloc "$1" > report.txt 2>&1 || fail "$1: $(cat report.txt)"
  grep -q " $2 host" report.txt || fail "$1: $(cat report.txt)"
}

# -- One load of each word: no thread pairs a new function with an old ud. -----------
objdump -d --no-show-raw-insn "$BUILD_DIR/lib/libluajit-5.1.so.2" |
  awk '/^[0-9a-f]+ <lj_mem_(newgco|realloc)>:/ { on = 1 } /^$/ { on = 0 } on' \
    > code.txt
same "lj_mem_newgco() and lj_mem_realloc() call *(g), once" 2 \
  "$(grep -c 'call  *\*\(0x0\)*(%r\(bx\|bp\|1[2-5]\))$' code.txt)"
same "they have no other call through memory" 2 "$(grep -c 'call  *\*' code.txt)"
same "they load the ud once" 2 "$(grep -c 'mov  *0x8(%r..*),%rdi$' code.txt)"

# -- How a session ends. ---------------------------------------------------------------
start one
record one.ljp --memory --every --no-cpu
eventually "events" some_events one.ljp
"$ljprof" status -p "$host" > status.txt || fail "$(cat status.txt)"
grep -q "^memory session: running, started by ljprof (process $client) [0-9.]* s ago: [1-9][0-9]* events, 0 lost, [1-9][0-9]* bytes, into .*/one.ljp\$" \
  status.txt || fail "$(cat status.txt)"
ok "status: $(sed -n 2p status.txt)"
"$ljprof" list > list.txt || fail "list"
grep -q "^ *$host .* memory:$client " list.txt || fail "list: $(cat list.txt)"
same "the program has no descriptor of ours" "$files_before" \
  "$(ls "/proc/$host/fd")"
for part in "--no-cpu --memory" "--memory" "--event cpu"; do
  # shellcheck disable=SC2086
  refuses "a second session" 1 \
    "profiler is running already, for ljprof (process $client), which has joined" \
    "$ljprof" record -p "$host" $part -o second.ljp
done
[ ! -e second.ljp ] || fail "the refused session has left a file"
refuses "a jitdump" 1 "is running already, for ljprof (process $client)" \
  "$ljprof" jitdump -p "$host" --duration 1s -o .
"$ljprof" mark -p "$host" "here" || fail "mark"
kill -INT $client
wait $client || fail "Ctrl-C: exit code $?: $(cat record.txt)"
balanced "Ctrl-C" 1 1 one.ljp
allocates one.ljp make
"$ljprof" dump one.ljp | grep '^ *mark ' | grep -q 'value=[1-9][0-9]\{4\}.*text="here"' ||
  fail "no mark: $("$ljprof" dump one.ljp | grep '^ *mark ')"
grep -q ' memory events, 0 lost: one.ljp' record.txt || fail "$(cat record.txt)"
ok "Ctrl-C: $(grep samples record.txt)"
eventually "Ctrl-C: threads and descriptors as before" settled

record both.ljp --memory --every
eventually "events" some_events both.ljp
"$ljprof" status -p "$host" > status.txt || fail "$(cat status.txt)"
"$ljprof" list > list.txt 2> /dev/null || fail "list"
grep -q "^ *$host .* cpu:$client,memory:$client " list.txt ||
  fail "list: $(cat list.txt)"
same "both: two lines of status" 2 \
  "$(grep -c "session: running, started by ljprof (process $client)" status.txt)"
"$ljprof" stop -p "$host" > stop.txt || fail "$(cat stop.txt)"
grep -q '^stopped: [0-9]* samples, [1-9][0-9]* memory events, 0 lost' stop.txt ||
  fail "$(cat stop.txt)"
wait $client || fail "stop: exit code $?: $(cat record.txt)"
balanced "both" 1 1 both.ljp
whole "both" both.ljp
ok "both, ended by ljprof stop: $(cat stop.txt)"
eventually "both: threads and descriptors as before" settled

for part in "" --no-cpu; do
  # shellcheck disable=SC2086
  record killed.ljp --memory --every --force $part
  eventually "events" some_events killed.ljp
  kill -9 $client
  wait $client 2> /dev/null || :
  eventually "the session ends with its client" settled
  balanced "a client that is killed $part" 1 1 killed.ljp
done

if [ "${LJP_ANALYZER:-ON}" = ON ]; then
  "$ljprof" record -p "$host" --memory --no-cpu --sample 1k --report 300ms > report.txt \
    2> record.txt || fail "a report: $(cat record.txt)"
  grep -q ' make host' report.txt || fail "$(cat report.txt)"
  ok "--report: $(head -n 1 report.txt)"
fi
short depth.ljp --memory --no-cpu --every --native --depth 8
"$ljprof" dump depth.ljp > dump.txt
grep -q 'key="option.memory.native" value="true"' dump.txt || fail "--native"

# The program ends while it is recorded.
record end.ljp --memory --every
eventually "events" some_events end.ljp
kill -TERM "$host"
wait "$host" || fail "the program ended with $?"
grep -q '^one: wrong 0 ' host.txt || fail "the program ends: $(cat host.txt)"
host=
wait $client || fail "the program's end: exit code $?: $(cat record.txt)"
balanced "the program closes its VM, and ends" 1 1 end.ljp
"$ljprof" dump end.ljp | grep -q '^ *gc .*phase="closed"' ||
  fail "the VM is not closed"
cat > exits.lua << 'END'
io.stdout:setvbuf("no") print("ready")
function make(i) return {i} end
while not io.open("go") do for i = 1, 100 do make(i) end end
print(misc.memprof.stop())
os.exit(0)
END
: > exits.txt
"$BUILD_DIR/bin/luajit" exits.lua > exits.txt &
host=$!
eventually "ready" grep -q ready exits.txt
record exits.ljp --memory --every --no-cpu
eventually "events" some_events exits.ljp
touch go
wait "$host" || fail "the program ended with $?"
host=
wait $client || fail "exit(): $(cat record.txt)"
grep -q "^nil.*was started by ljprof (process $client), which has joined" exits.txt ||
  fail "$(cat exits.txt)"
ok "the program cannot end it: $(grep nil exits.txt)"
balanced "the program calls exit()" 1 1 exits.ljp
start one
record dead.ljp --memory --every
eventually "events" some_events dead.ljp
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=
wait $client || fail "kill -9 of the program: exit $?: $(cat record.txt)"
allocates dead.ljp make
ok "the program is killed: the file is readable"

# -- VMs of all kinds. -----------------------------------------------------------------
# mode, VMs, function that allocates
while read -r which vms function; do
  start "$which"
  for part in "" --no-cpu; do
    # On a busy machine some VMs do not run in a moment.
    for moment in 300ms 2s 8s; do
      # shellcheck disable=SC2086
      short all.ljp --memory --every $part
      "$ljprof" check all.ljp | grep -q "^memory of $vms of $vms VM" && break
    done
    balanced "$which $part" "$vms" "$vms" all.ljp
    allocates all.ljp "$function"
    for moment in 300ms 2s 8s; do
      # shellcheck disable=SC2086
      short some.ljp --memory --sample 1k $part
      "$ljprof" report --alloc some.ljp 2>&1 | grep -q " $function host" && break
    done
    allocates some.ljp "$function"
    moment=300ms
  done
  end "$which"
  ok "$which: nothing went wrong, the allocator is its own"
done << 'END'
threads 4 make
host 4 make
stopped 1 loop
END

# A VM that allocates nothing.
start quiet
short quiet.ljp --memory --every --no-cpu
grep -q "no sample was taken, so there is nothing to report" record.txt ||
  fail "$(cat record.txt)"
"$ljprof" check quiet.ljp > check.txt || fail "$(cat check.txt)"
grep -q '^whole' check.txt || fail "$(cat check.txt)"
"$ljprof" dump quiet.ljp > dump.txt
grep -q '^  \(mem\|gc\) ' dump.txt && fail "events of a VM that did nothing"
end "a VM that allocates nothing"
ok "a VM that allocates nothing: no event, and its allocator is its own"

# -- What programs do to their allocators. ----------------------------------------------
for which in swaps keeps nested close forks; do
  start "$which"
  i=0
  while [ $i -lt "$COUNT" ]; do
    i=$((i + 1))
    case $((i % 4)) in
    0) set -- --every ;;
    1) set -- --sample 1k --no-cpu ;;
    2) set -- --every --no-cpu ;;
    3) set -- --sample 1k ;;
    esac
    "$ljprof" record -p "$host" --memory --duration 100ms -o "$which.ljp" --force \
      "$@" 2> record.txt || grep -q "has replaced its allocator" record.txt ||
      fail "$which: $(cat record.txt)"
    # What others do with a stub is no event of the VM.
    "$ljprof" check "$which.ljp" > check.txt || fail "$which: $(cat check.txt)"
    grep ': difference -*[1-9]' check.txt && fail "$which"
  done
  end "$which, joined $COUNT times"
  ok "$which, joined $COUNT times: nothing went wrong, the allocator is its own"
done

# -- Again and again. ----------------------------------------------------------------
memory() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$host/status"; }
start one
i=0
while [ $i -lt $((2 * COUNT)) ]; do
  i=$((i + 1))
  "$ljprof" record -p "$host" --memory --duration 30ms -o again.ljp --force --every \
    2> record.txt || fail "again: $(cat record.txt)"
  [ $i != $((COUNT)) ] || before=$(memory)
done
after=$(memory)
[ "$after" -lt $((before + 2048)) ] || fail "grown from $before to $after KiB"
ok "memory after $COUNT more sessions: $before KiB, then $after KiB"
end "joined again and again"
