#!/bin/sh
# While a client is at any of its steps, another thread of the program calls exit(),
# is killed, executes another program, forks, is stopped, or holds malloc's lock. The
# client says so in one line, or goes on; it never hangs; what it has not joined is as
# before, and what goes on can be joined afterwards.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

before="seized stopped checked claimed framed registers masked left restored"
after="detached ready taken hello started stopping"
within() { # COMMAND...: it succeeds soon, or may never
  turns=0
  until "$@" || [ $turns -ge 20 ]; do
    turns=$((turns + 1))
    sleep 0.05
  done
}
dead() {
  ! grep -q '^State:.[^Z]' "/proc/$host/status" 2> /dev/null
}
halted() {
  ! grep -L '^State:.[Tt]' "/proc/$host/task"/*/status | grep -q .
}
# at_step PROGRAM MODE STEP: the program runs, and a client that records it has come
# to this step: $host, $client.
at_step() {
  how=
  case $3 in
  left | restored) how=poll ;;
  esac
  : > edges.txt
  # shellcheck disable=SC2086 # perhaps no word
  "$BUILD_DIR/bin/$1" "$2" $how > edges.txt 2>&1 &
  host=$!
  eventually "$2: ready" grep -q ready edges.txt
  time="--duration 200ms"
  [ "$3" != stopping ] || time=
  # shellcheck disable=SC2086 # words
  LJPROF_JOIN_STEP=$3:await env --default-signal=INT timeout --foreground 100 "$faults" \
    record -p "$host" -o out.ljp --flush 20 $time > client.txt 2>&1 &
  client=$!
  if [ "$3" = stopping ]; then
    eventually "recording" grep -q 'recording process' client.txt
    sleep 0.2
    kill -INT "$(pgrep -P $client -x join_faults)"
  fi
  eventually "$2: the client comes to the step $3: $(cat client.txt)" test -e reached
}
# client_ends CODES: it has ended with one of these codes, and what it has written is
# readable. $code, $said: its complaint.
client_ends() {
  code=0
  wait "$client" || code=$?
  case " $1 " in
  *" $code "*) ;;
  *) fail "$name: the client's exit code is $code: $(cat client.txt)" ;;
  esac
  said=$(grep '^ljprof record: ' client.txt | grep -v ': note: \| samples, ' || :)
  [ "$code" = 0 ] || [ "$(echo "$said" | grep -c .)" = 1 ] ||
    fail "$name: not one complaint: $(cat client.txt)"
  [ ! -e out.ljp ] || "$ljprof" check out.ljp > check.txt 2>&1 ||
    grep -q '; 0 gaps of 0 bytes' check.txt || fail "$name: $(cat check.txt)"
}
file_is_whole() {
  "$ljprof" check out.ljp > check.txt || fail "$name: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "$name: $(cat check.txt)"
}
# lives: the program can be joined, nothing of ours stays, and it ends as always.
ours() { grep -qs '^ljprof-' "/proc/$host/task"/*/comm; }
nothing() { ! ours; }
no_session() {
  "$ljprof" status -p "$host" > status.txt 2>&1 || fail "$name: $(cat status.txt)"
  grep -q '^no session' status.txt
}
lives() {
  eventually "$name: no session" no_session
  eventually "$name: nothing of ours stays" nothing
  kill -TERM "$host"
  wait "$host" || fail "$name: the program ended with $?: $(cat edges.txt)"
}
complains() { # REGEX
  [ "$code" = 0 ] || echo "$said" | grep -Eq "$1" || fail "$name: $(cat client.txt)"
}

ends() { # MODE CODE STEP
  at_step join_edges "$1" "$3"
  touch go
  eventually "$name: the program ends" dead
  touch passed
  client_ends "0 1"
  complains 'ended while it was being joined|has ended'
  got=0
  wait "$host" 2> /dev/null || got=$?
  [ "$got" = "$2" ] || fail "$name: the program ended with $got: $(cat edges.txt)"
  [ ! -e out.ljp ] || [ "$1" = killed ] || file_is_whole
}
executes() { # STEP
  at_step join_edges exec_thread "$1"
  touch go
  within test -e began
  touch passed
  client_ends "0 1"
  complains 'became another program|has become another program|has ended'
  wait "$host" || fail "$name: $(cat edges.txt)"
  [ "$(tail -n 1 edges.txt)" = "bytes written: 0" ] ||
    fail "$name: the other program: $(cat edges.txt)"
}
forks() { # STEP
  at_step join_edges forks "$1"
  touch go
  within grep -q forked edges.txt
  touch passed
  client_ends 0
  file_is_whole
  eventually "$name: the child has ended" grep -q forked edges.txt
  lives
}
stops() { # STEP
  at_step join_edges stops "$1"
  touch go
  within halted
  touch passed
  sleep 0.5
  kill -CONT "$host"
  client_ends "0 1"
  complains 'is stopped by a signal|does not answer'
  lives
}
wedges() { # STEP
  at_step join_faulty wedges "$1"
  touch wedge
  sleep 0.3
  touch passed
  client_ends "0 1"
  complains "malloc|does not answer|no moment|is not done yet|does not end the session"
  touch go
  lives
}

# each STEP COMMAND...: in a folder and a shell of its own, four at a time.
running=0 failures=$SCRATCH/failures.txt
: > "$failures"
alone() {
  trap 'kill -9 $host $client 2> /dev/null || :' EXIT
  mkdir "$SCRATCH/case.$1.$2"
  cd "$SCRATCH/case.$1.$2"
  name="$*"
  shift
  "$@" "$step"
  host='' client=''
}
each() {
  step=$1
  (alone "$@" > "$SCRATCH/said.$1.$2" 2>&1) ||
    echo "$*: $(tail -n 5 "$SCRATCH/said.$1.$2")" >> "$failures" &
  running=$((running + 1))
  [ $running -lt 4 ] || {
    wait
    running=0
  }
}
finish() {
  wait
  running=0
  [ ! -s "$failures" ] || fail "$(cat "$failures")"
  ok "$1, while the client is at each step"
  rm -rf "$SCRATCH"/case.* "$SCRATCH"/said.*
}
for step in $before $after; do each "$step" ends exits 7; done
finish "the program calls exit()"
for step in $before $after; do each "$step" ends killed 137; done
finish "the program is killed"
for step in $before $after; do each "$step" executes; done
finish "the program executes another one"
for step in $before $after; do each "$step" forks; done
finish "the program forks"
for step in $before $after; do each "$step" stops; done
finish "the program is stopped and continued"
if ldd "$BUILD_DIR/bin/join_faulty" | grep -q 'libc\.so\.6'; then
  for step in seized stopped checked claimed framed registers masked $after; do
    each "$step" wedges
  done
  finish "malloc's lock is held"
fi
