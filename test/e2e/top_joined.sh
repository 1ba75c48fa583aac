#!/bin/sh
# ljprof top -p: what it shows of a running program, and that the program is as it
# was, however the view ends: by keys, by signals, by kill -9 of any of its
# processes. Then the ends of the program and of the session.
# shellcheck disable=SC2016 # $ of the shell in the terminal
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"
. "$(dirname "$0")/top_lib.sh"
at_end='$mux kill-server 2> /dev/null; [ -z "$host" ] || kill -9 $host; wait'

refuses "no terminal" 2 "needs a terminal" "$ljprof" top -p 1
refuses "a file, too" 2 "unexpected argument 'x.ljp'" "$ljprof" top -p 1 x.ljp
refuses "no number" 2 "--interval is 'x', but must be milliseconds" \
  "$ljprof" top -p 1 --interval x
refuses "an option of -p with a file" 2 "--event is for a running program (-p PID)" \
  "$ljprof" top --event wall x.ljp
refuses "room for nothing" 2 "--room is '1k', but must be a number of bytes from 64k" \
  "$ljprof" top -p 1 --room 1k
refuses "room in a file" 2 "--room is for a running program" \
  "$ljprof" top --room 1M x.ljp
refuses "a snapshot" 2 "unknown option '--snapshot'" "$ljprof" top -p 1 --snapshot
refuses "memory of a file" 2 "--memory is for a running program" \
  "$ljprof" top --memory x.ljp
refuses "no memory" 2 "--sample needs --memory" "$ljprof" top -p 1 --sample 1k
terminal

# watch WHAT [OPTION]...: opens the view of $host.
watch() {
  watched=$1
  shift
  type_line "'$ljprof' top -p $host --flush 20 $*"
  sees "$watched" '\[functions\]'
  sees "$watched: its samples" ' round host'
}
# leaves WHAT: the terminal is right, and the program is as it was.
leaves() {
  is_right "$1"
  eventually "$1: threads and descriptors as before" settled
  ok "$1: the program is as it was"
}

# -- Errors come before the terminal is touched. -----------------------------------
type_line "'$ljprof' top -p 999999999; echo code=\$?"
sees "no process" 'ljprof top: there is no process 999999999'
sees "its exit code" '^code=1'
same "the screen was not touched" 0 "$($mux display-message -p '#{alternate_on}')"
type_line clear
type_line "'$ljprof' top -p x; echo code=\$?"
sees "no number" "ljprof top: -p is 'x', but must be the number of a process"
type_line clear

# -- What it shows. ------------------------------------------------------------------
begin loop
watch "a running program"
sees "its state" "^recording, last .*  pid $host "
"$ljprof" status -p "$host" > status.txt || fail "$(cat status.txt)"
grep -q "running, started by ljprof (process $(guard))" status.txt ||
  fail "$(cat status.txt)"
grep -q "into a file without a name in " status.txt || fail "$(cat status.txt)"
ok "status tells who watches"
same "the program has no descriptor of ours" "$files_before" "$(ls "/proc/$host/fd")"
refuses "a second client" 1 "is running already, for ljprof (process $(guard))" \
  "$ljprof" record -p "$host" -o second.ljp
keys 2
sees "2: lines" ' host:[0-9]'
keys 3
sees "3: stacks" 'round host:'
keys 6
sees "6: traces" '%  compiled'
keys 7
sees "7: threads" '%  thread [0-9]* (join_host)'
sees "the last row names r" 'freeze r record ? help'
keys 1 w
sees "w: seconds" '^recording, last [1-5]\.'
keys f
sees "f: frozen" '^frozen'
keys f
sees "f: goes on" '^recording'
keys S Enter
sees "S: saved" "^saved as 'top\.txt'"
grep -q ' round host' top.txt || fail "top.txt has no view: $(cat top.txt)"
keys p Enter
sees "p: a page" "^wrote the page 'top\.html'"
grep -q 'Only what happened in the seconds' top.html || fail "a page of all"
grep -q "process $host (join_host)" top.html || fail "the page has no name"
grep -q round top.html || fail "the page is empty"
# record_into FILE: by the key r.
record_into() {
  keys r C-u
  $mux send-keys -l "$1"
  keys Enter
}
keys r
sees "r asks" '^record into: top\.ljp_'
keys Enter
sees "r: recording" "^recording into 'top\.ljp', with the last [0-9]* s; r ends it"
sees "the title says so" '^recording, into top\.ljp, last '
eventually "samples" some_samples top.ljp
keys r
sees "r: recorded" "^recorded 'top\.ljp': ljprof report shows it"
whole "the recording" top.ljp
"$ljprof" dump top.ljp > dump.txt
tail -n 1 dump.txt | grep -q . || fail "no dump"
record_into top.ljp
sees "r: a file that exists" "^cannot write 'top\.ljp': File exists"
record_into again.ljp
sees "r: again" "^recording into 'again\.ljp'"
kill -STOP "$host"
sees "the program is stopped" '^the program is stopped'
kill -CONT "$host"
sees "it goes on" '^recording'

# -- How it ends. --------------------------------------------------------------------
keys q
leaves "q"
whole "the recording when the view ends" again.ljp
watch "again" --event wall --threads all --interval 2
sees "options are taken" '^wall '
keys C-z
is_right "Ctrl-Z"
type_line "'$ljprof' top -p $host; echo code=\$?"
sees "a second view" 'which has joined the program$'
sees "its exit code" '^code=1'
type_line fg
sees "fg goes on" '\[functions\]'
keys C-c
leaves "Ctrl-C"
for signal in TERM HUP KILL; do
  watch "again"
  kill -$signal "$(guard)"
  leaves "the guard gets $signal"
done
for signal in TERM KILL; do
  watch "again"
  kill -$signal "$(child ljprof-screen)"
  leaves "the screen gets $signal"
done
watch "again"
one=$(guard) two=$(child ljprof-screen)
kill -STOP "$one" # else the screen ends when the guard does
kill -9 "$two" "$one"
leaves "guard and screen are killed at once"
watch "again"
one=$(guard)
env kill -9 -- "-$one"
leaves "the whole group is killed"
watch "again"
one=$(child ljprof-screen)
kill -9 "$(child ljprof-worker "$one")"
sees "the worker is killed" 'the process that reads the file has died'
eventually "the session ends with the worker" settled
keys q
leaves "after the worker was killed"

for step in seized stopped masked taken hello started; do
  type_line "LJPROF_JOIN_STEP=$step:kill '$faults' top -p $host; echo over"
  sees "$step: killed" '^over'
  leaves "killed at the step '$step'"
done
watch "a program that is stopped"
kill -STOP "$host"
sees "it is said" '^the program is stopped'
keys q
sees "it cannot answer" "ljprof top: note: process $host (join_host) has not ended the session"
is_right "after the stopped program"
kill -CONT "$host"
eventually "the session ends when the program goes on" settled

# -- The end of the session. -----------------------------------------------------------
watch "for three seconds" --duration 3s
record_into over.ljp
sees "r: until its end" "^recording into 'over\.ljp'"
sees "its time is over" '^the recording has ended, all '
eventually "the program is as it was while the view goes on" settled
whole "the recording of a session that has ended" over.ljp
keys r
sees "r: nothing more" '^record into:'
keys Enter
sees "r: nothing more" '^nothing more comes that could be recorded'
keys q
leaves "after its time"
watch "again"
"$ljprof" stop -p "$host" > stop.txt || fail "$(cat stop.txt)"
sees "ljprof stop" '^the recording has ended, all '
keys q
leaves "after ljprof stop"

# A disk that is full while a file is recorded.
mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=256k none small 2> /dev/null; then
  at_end="$at_end; umount '$SCRATCH/small' 2> /dev/null"
  watch "a full disk" --interval 0.1 --max-overhead 0
  record_into small/full.ljp
  sees "it is said" "^the recording into 'small/full\.ljp' has ended: No space left"
  sees "the view goes on" '^recording, '
  keys q
  leaves "after a full disk"
  "$ljprof" check small/full.ljp > check.txt 2>&1 || :
  grep -q '; 0 gaps of 0 bytes' check.txt || fail "a full disk: $(cat check.txt)"
  grep -q '^0 malformed' check.txt || fail "a full disk: $(cat check.txt)"
  ok "what was recorded ends with a whole block"
  umount small
fi

# What was read is freed, so the recording goes on for as long as somebody watches.
watch "little room" --room 192k --interval 0.05 --threads all --max-overhead 0
worker=$(child ljprof-worker "$(child ljprof-screen)")
file=
for number in "/proc/$worker/fd"/*; do
  case $(readlink "$number") in
  *deleted*) file=$number ;;
  esac
done
[ -n "$file" ] || fail "no file: $(ls -l "/proc/$worker/fd")"
grown() { [ "$(stat -L -c %s "$file")" -gt 400000 ]; }
eventually "the recording grows" grown
freed() { [ $(($(stat -L -c '%b * %B' "$file"))) -le 196608 ]; }
eventually "what was read is freed" freed
shows '^recording' || fail "it has ended: $(screen)"
ok "a long recording takes little room"
keys p Enter
sees "p: no page" '^no page: too little of the recording is kept'

# A view that reads no more: the program ends the session before the disk is full.
keys f
sees "frozen" '^frozen'
sees "the room is filled" \
  '^!the session was ended: .* and not read has filled its 0\.2 MiB'
keys f
sees "the recording has ended" '^the recording has ended'
sees "what there is, is shown" ' round host'
keys q
leaves "after little room"
end "watched"

# -- By its socket, in place of ptrace. --
LJPROF_LISTEN=$PWD/app.sock
export LJPROF_LISTEN
begin loop
unset LJPROF_LISTEN
type_line "'$ljprof' top -p $PWD/app.sock --flush 20"
sees "by its socket" '\[functions\]'
sees "by its socket: its samples" ' round host'
sees "by its socket: its state" "^recording, last .*  pid $host "
keys q
leaves "by its socket"
type_line "'$ljprof' top -p $PWD/none.sock; echo code=\$?"
sees "no socket" 'none.sock: there is no such socket'
type_line clear
end "by its socket"

# -- The end of the program. -------------------------------------------------------------
begin loop
watch "a program that ends"
kill -TERM "$host"
sees "the program has ended" '^the program has ended, all '
sees "what there is, is shown" ' round host'
code=0
wait "$host" || code=$?
same "it has ended as always" "0 $wanted" "$code $(tail -n 1 host.txt)"
host=
keys p C-u
$mux send-keys -l all.html
keys Enter
sees "a page of all" "^wrote the page 'all\.html'"
keys q
is_right "after the program"
begin loop
watch "a program that is killed"
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=
sees "the program has ended" '^the program has ended, all '
sees "what there is, is shown" ' round host'
keys q
is_right "after the killed program"
cat > becomes.lua << 'LUA'
local ffi = require("ffi")
ffi.cdef("int execlp(const char *, const char *, ...);")
function round() local x = 0 for i = 1, 1e6 do x = x + i % 7 end return x end
while not io.open("go") do round() end
ffi.C.execlp("sleep", "sleep", "1000", nil)
LUA
"$BUILD_DIR/bin/luajit" becomes.lua &
host=$!
type_line "'$ljprof' top -p $host --flush 20"
sees "a program that executes another one" ' round becomes'
touch go
sees "it is another one" '^another program runs there now, all '
keys q
is_right "after the other program"
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=

# -- Memory. ---------------------------------------------------------------------------
join_program=join_memory_host
begin one
wanted='one: wrong 0 left 0'
type_line "'$ljprof' top -p $host --flush 20 --memory --sample 1k"
sees "with memory" '\[functions\]'
keys 4
sees "4: sites" ' host:1'
keys 5
sees "5: the heap's curve" 'heap'
keys q
leaves "with memory"
end "with memory"

# -- Labels, which the program had before it was joined. ---------------------------------
cat > labelled.lua << 'LUA'
function round() local x = 0 for i = 1, 1e6 do x = x + i % 7 end return x end
misc.profile.with({ route = "/long" }, function()
  while not io.open("ends") do round() end
end)
LUA
"$BUILD_DIR/bin/luajit" labelled.lua &
host=$!
eventually "the program runs" sh -c "grep -q libluajit /proc/$host/maps"
sleep 0.3
type_line "'$ljprof' top -p $host --flush 20"
sees "labels" '\[functions\]'
keys 9
sees "9: labels of a running program" '100\.00%  /long'
keys q
is_right "labels"
touch ends
wait "$host" || fail "labelled.lua ended with $?"
host=
