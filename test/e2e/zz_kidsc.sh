#!/bin/sh
# ljprof record -p --children: each process that descends from a joined program has
# a file of its own, whether it is there already, comes later, or executes another
# program with our library. One without our library is only told.
# shellcheck disable=SC2016 # at_end is run later
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

luajit=$BUILD_DIR/bin/luajit
at_end="$at_end; "'for f in *.pid; do [ ! -e "$f" ] || kill -9 "$(cat "$f")" 2> /dev/null; done; :'
# parent LINE...: starts the program with these children.
parent() {
  rm -f ./*.pid go over
  printf '%s\n' "$@" > plan
  "$luajit" "$SOURCE_DIR/test/e2e/join_children.lua" "$luajit" > parent.txt 2>&1 &
  host=$!
  for child; do
    eventually "$child" test -s "$child.pid"
  done
}
# one_more WHAT
one_more() {
  echo "$1" >> plan
  eventually "$1" test -s "$1.pid"
}
over() {
  for file in *.pid; do
    kill -9 "$(cat "$file")" 2> /dev/null || :
  done
  touch over
  wait "$host" 2> /dev/null || :
  host=
}
some() {
  [ -e "$1" ] && some_samples "$1"
}
# has_round FILE: the file is whole, and has samples of the Lua function.
has_round() {
  "$ljprof" check "$1" > check.txt || fail "$1: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" report --top 0 "$1" > report.txt || fail "$1: report"
  grep -q ' round ' report.txt || fail "$1: $(cat report.txt)"
}

# The recording ends when nobody is there who could be recorded.
# ends_soon WHAT: the client does.
ends_soon() {
  tries=0
  until grep -q '^State:.Z' "/proc/$client/status" 2> /dev/null ||
    ! [ -e "/proc/$client" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { kill -9 $client && fail "$1: $(cat record.txt)"; }
    sleep 0.1
  done
  wait $client || fail "$1: exit code $?: $(cat record.txt)"
  ok "$1"
}
# Ctrl-C while a child is being joined.
if ldd "$BUILD_DIR/bin/join_faulty" | grep -q 'libc\.so\.6'; then
  parent stuck
  record stuck.ljp --children
  sleep 2
  kill -INT $client
  began=$(date +%s)
  wait $client || fail "a child that cannot be joined: $(cat record.txt)"
  [ $(($(date +%s) - began)) -lt 5 ] || fail "Ctrl-C waits for a child that is joined"
  ok "Ctrl-C while a child is being joined"
  touch go
  over
fi
