#!/bin/sh
# gdb and ljprof at the same program: who is there already is named, and left alone;
# gdb may come to a program that ljprof has joined, and both do their work.
# shellcheck disable=SC2016 # expanded at the end
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"
command -v gdb > which.txt || {
  echo "skipped: gdb is not installed"
  exit 77
}
gdb=
at_end='[ -z "$gdb" ] || kill -9 $gdb; [ -z "$host" ] || kill -9 $host'
# debug ARGUMENT...: gdb, which reads its commands from descriptor 3: $gdb.
debug() {
  rm -f gdb.pipe
  mkfifo gdb.pipe
  : > gdb.txt
  # No symbols of the host are wanted, which would take long.
  env DEBUGINFOD_URLS= gdb -nx -q -iex 'set auto-load off' "$@" < gdb.pipe > gdb.txt 2>&1 &
  gdb=$!
  exec 3> gdb.pipe
}
tell() {
  echo "$1" >&3
}
says() { # TEXT: gdb has printed it
  eventually "gdb: $1: $(tail -n 5 gdb.txt)" grep -q "$1" gdb.txt
}
leaves() {
  exec 3>&-
  wait $gdb || :
  gdb=
}
traced() { ! grep -q '^TracerPid:.0$' "/proc/$host/status"; }
untraced() { ! traced; }
# Each command that would stop a thread names gdb, at once.
refused() { # WHAT
  for command in "status -p $host" "record -p $host -o no.ljp" "heap -p $host" \
    "dump-stacks -p $host" "mark -p $host x" "stop -p $host"; do
    # shellcheck disable=SC2086 # words
    refuses "$1: ${command%% *}" 1 \
      "is traced by process $gdb (gdb): end that first" timeout 20 "$ljprof" $command
  done
  [ ! -e no.ljp ] || fail "$1: a file was written"
}

begin loop
debug -p "$host"
tell 'echo here\n'
says here
eventually "gdb traces it" traced
refused "gdb has stopped the program"
tell 'continue'
goes_on() { grep -q '^State:.R' "/proc/$host/status"; }
eventually "the program goes on" goes_on
refused "the program runs under gdb"
kill -INT $gdb
says 'SIGINT'
tell 'detach'
says 'detached'
leaves
eventually "gdb has gone" untraced
"$ljprof" record -p "$host" -o after.ljp --duration 300ms 2> record.txt ||
  fail "after gdb: $(cat record.txt)"
whole "after gdb" after.ljp
end "after gdb"
ok "when gdb has gone, the program can be joined, and is well"

# A program that gdb has started.
debug --args "$BUILD_DIR/bin/join_host" loop
tell 'set confirm off'
tell 'run'
says '^ready'
host=$(pgrep -P $gdb -x join_host)
refused "a program that gdb has started"
kill -INT $gdb
says 'SIGINT'
tell 'kill'
leaves
host=

# gdb comes to a program that ljprof records, stops it, walks its stack, and leaves.
begin loop
record both.ljp
eventually "samples" some_samples both.ljp
debug -p "$host"
tell 'echo here\n'
says here
tell 'thread apply all backtrace 3'
says 'ljprof-writer'
size=$(wc -c < both.ljp)
tell 'detach'
says 'detached'
leaves
grown() { [ "$(wc -c < both.ljp)" -gt $((size + 2000)) ]; }
eventually "the recording goes on after gdb" grown
kill -INT "$client"
wait "$client" || fail "with gdb: exit code $?: $(cat record.txt)"
whole "with gdb" both.ljp
end "gdb in a recording"
ok "gdb may come to a program that is being recorded"

# The same, with the program running under gdb while the recording ends.
begin loop
record ends.ljp
eventually "samples" some_samples ends.ljp
debug -p "$host"
tell 'echo here\n'
says here
tell 'handle SIGPROF nostop noprint pass'
tell 'continue'
eventually "the program goes on" goes_on
kill -INT "$client"
wait "$client" || fail "under gdb: exit code $?: $(cat record.txt)"
whole "under gdb" ends.ljp
kill -INT $gdb
says 'SIGINT'
tell 'detach'
says 'detached'
leaves
end "a recording that ends under gdb"
ok "a recording ends while gdb is there"

# By its socket a program is joined although gdb is there.
LJPROF_LISTEN=$PWD/app.sock
export LJPROF_LISTEN
begin loop
unset LJPROF_LISTEN
debug -p "$host"
tell 'echo here\n'
says here
refuses "by the socket of a program that gdb has stopped" 1 "does not answer" \
  timeout 60 "$ljprof" status -p "$PWD/app.sock"
tell 'continue'
eventually "the program goes on" goes_on
"$ljprof" dump-stacks -p "$PWD/app.sock" > stacks.txt 2> error.txt ||
  fail "by its socket: $(cat error.txt)"
grep -q '^Thread .* "join_host": running' stacks.txt || fail "$(cat stacks.txt)"
kill -INT $gdb
says 'SIGINT'
tell 'detach'
says 'detached'
leaves
end "by its socket"
ok "by its socket, a program under gdb is joined"
