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

parent spins other
record tree.ljp --children
spins=$(cat spins.pid)
eventually "a child that is there" some "tree.ljp.$spins"
one_more family
one_more lua
inner=$(cat inner.pid) family=$(cat family.pid) lua=$(cat lua.pid)
for pid in $inner $family $lua; do
  eventually "a later child: $(cat record.txt)" some "tree.ljp.$pid"
done
"$ljprof" status -p "$inner" > status.txt || fail "$(cat status.txt)"
grep -q "^CPU session: running, started by ljprof" status.txt || fail "$(cat status.txt)"
kill -INT $client
wait $client || fail "Ctrl-C: exit code $?: $(cat record.txt)"
for file in tree.ljp tree.ljp.$spins tree.ljp.$inner tree.ljp.$family \
  tree.ljp.$lua; do
  has_round "$file"
done
same "there is no other file" 5 "$(find . -name 'tree.ljp*' | wc -l)"
grep -q "4 child processes: [0-9]* samples" record.txt || fail "$(cat record.txt)"
ok "children are recorded: $(grep 'child processes' record.txt)"
same "a child without our library is told once" \
  "ljprof record: note: process $(cat other.pid) (sleep), a child, does not run our library, and is not recorded" \
  "$(grep library record.txt)"
kill -0 "$spins" "$inner" "$lua" || fail "a child has ended"
for pid in $spins $inner $family $lua; do
  "$ljprof" status -p "$pid" > status.txt || fail "$(cat status.txt)"
  grep -q '^no session' status.txt || fail "$(cat status.txt)"
done
ok "and run on without a session"
over

# A child executes another program; the time ends all.
parent later
record exec.ljp --children --duration 6s
later=$(cat later.pid)
eventually "before" some "exec.ljp.$later"
touch go
eventually "after: $(cat record.txt)" some "exec.ljp.$later-2"
wait $client || fail "--duration: exit code $?: $(cat record.txt)"
has_round "exec.ljp.$later-2"
has_round exec.ljp
"$ljprof" report --top 0 "exec.ljp.$later" > report.txt 2>&1 || :
grep -q ' round ' report.txt || fail "$(cat report.txt)"
grep -q '1 more program: [0-9]* samples' record.txt || fail "$(cat record.txt)"
ok "a child that executes a program with our library has two files"
over

# The program ends before its child.
parent spins
record last.ljp --children
spins=$(cat spins.pid)
eventually "the child" some "last.ljp.$spins"
touch over
wait "$host" || fail "the program: $(cat parent.txt)"
host=
eventually "it is said" grep -q "its children are still being recorded" record.txt
kill -9 "$spins"
wait $client || fail "the last child's end: exit code $?: $(cat record.txt)"
has_round last.ljp
ok "the recording ends with the last child"

# Whatever ends the first ljprof ends all.
parent spins
record killed.ljp --children
spins=$(cat spins.pid)
eventually "the child" some "killed.ljp.$spins"
kill -9 $client
wait $client 2> /dev/null || :
idle() {
  "$ljprof" status -p "$spins" > status.txt && grep -q '^no session' status.txt
}
eventually "the child's session ends, too" idle
has_round "killed.ljp.$spins"
ok "an ljprof that is killed"
over

# Many that end at once.
parent spins
record short.ljp --children
printf 'short\n%.0s' 1 2 3 4 5 6 7 8 9 >> plan
one_more family
eventually "the family" some "short.ljp.$(cat inner.pid)"
kill -INT $client
wait $client || fail "short ones: exit code $?: $(cat record.txt)"
if grep -q 'error\|became another' record.txt; then
  fail "$(cat record.txt)"
fi
ok "children that end at once: $(grep ended record.txt || echo 'none was seen')"
over
[ "${LJP_ANALYZER:-ON}" = OFF ] || refuses "--report of many" 2 "--report is of one file" \
  "$ljprof" record -p 1 --report 1s --children

# A child that has ended, and for which its parent does not wait, is one child.
cat > zombie.lua << 'EOF'
local ffi = require("ffi")
ffi.cdef("int fork(void); void _exit(int); int usleep(unsigned);")
print("ready")
while not io.open("fork") do ffi.C.usleep(10000) end
if ffi.C.fork() == 0 then ffi.C.usleep(60000) ffi.C._exit(0) end
while true do ffi.C.usleep(10000) end
EOF
"$luajit" zombie.lua > zombie.txt 2>&1 &
host=$!
"$ljprof" record -p $host --children --duration 1500ms -o zombie.ljp 2> record.txt &
client=$!
eventually "recording: $(cat record.txt)" grep -q "recording process" record.txt
touch fork
wait $client || fail "$(cat record.txt)"
kill $host
# On a busy machine it was not seen at all.
! grep "ended before" record.txt | grep -v 'note: 1 child ended' ||
  fail "one child is counted more than once"
ok "a child that has ended is counted once"

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
parent other
record other.ljp --children
eventually "it is told" grep -q "does not run our library" record.txt
touch over
wait "$host" || fail "the program: $(cat parent.txt)"
host=
ends_soon "only a child without our library is left"
kill -9 "$(cat other.pid)"

parent other
record become.ljp --children
touch become
ends_soon "the program executes another one"
kill -9 "$host" "$(cat other.pid)"
rm become
over

# The program is a zombie, since its parent does not wait for it.
rm -f ./*.pid over
: > plan
python3 -c '
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:])
open("host.pid", "w").write(str(child.pid))
time.sleep(60)' "$luajit" "$SOURCE_DIR/test/e2e/join_children.lua" "$luajit" &
keeper=$!
eventually "the program" test -s host.pid
host=$(cat host.pid)
record zombie.ljp --force --children
kill -9 "$host"
host=
ends_soon "the program is a zombie"
kill $keeper

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
