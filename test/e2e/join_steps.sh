#!/bin/sh
# A program that ends, execs, forks, is slow or is stopped at any step of being
# joined: the client says so in one line, and neither hangs. Only a debug build of
# the library has these steps.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

if ! grep -q LJPROF_JOIN_STEP "$BUILD_DIR/lib/libluajit-5.1.so.2"; then
  echo "skipped: a release build has no such steps"
  exit 77
fi
# meets STEP ACTION: a client records a program that does this. Its exit code is in
# $code.
meets() {
  LJPROF_JOIN_STEP=$1:$2
  export LJPROF_JOIN_STEP
  begin loop
  unset LJPROF_JOIN_STEP
  rm -f steps.ljp
  code=0
  timeout 100 "$ljprof" record -p "$host" -o steps.ljp --duration 200ms \
    > steps.txt 2>&1 || code=$?
  [ "$code" -lt 2 ] || fail "$1 $2: exit code $code: $(cat steps.txt)"
  [ ! -e steps.ljp ] || "$ljprof" check steps.ljp > check.txt ||
    ! grep -q '^whole' check.txt || fail "$1 $2: $(cat check.txt)"
}
halted() {
  grep -q '^State:.T' "/proc/$host/status"
}
# pauses STEP: the program is stopped by SIGSTOP there, and continued after a while.
pauses() {
  LJPROF_JOIN_STEP=$1:stop
  export LJPROF_JOIN_STEP
  begin loop
  unset LJPROF_JOIN_STEP
  rm -f steps.ljp
  timeout 100 "$ljprof" record -p "$host" -o steps.ljp --duration 200ms \
    > steps.txt 2>&1 &
  client=$!
  eventually "$1 stop: $(cat steps.txt)" halted
  sleep 0.5
  kill -CONT "$host"
  wait "$client" || fail "$1 stop: exit code $?: $(cat steps.txt)"
  "$ljprof" check steps.ljp > check.txt || fail "$1 stop: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "$1 stop: $(cat check.txt)"
  end "$1 stop"
}
over() {
  kill -9 "$host" 2> /dev/null || :
  wait "$host" 2> /dev/null || :
  host=
}
for step in entered made paired table welcomed starting committed ended; do
  for action in sleep=300 fork; do
    meets $step $action
    [ "$code" = 0 ] || fail "$step $action: $(cat steps.txt)"
    "$ljprof" status -p "$host" > status.txt 2>&1 ||
      fail "$step $action: $(cat status.txt)"
    end "$step $action"
  done
  pauses $step
  for action in exit kill exec; do
    meets $step $action
    [ "$(wc -l < steps.txt)" -ge 1 ] || fail "$step $action: nothing is said"
    over
  done
  ok "$step: the program is slow, forks, is stopped, exits, is killed, execs"
done
