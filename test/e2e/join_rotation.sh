#!/bin/sh
# ljprof record -p with rotation: the client makes the file segments, and the
# program writes into them. All of them together are whole, whoever stops or ends.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

# whole_segments WHAT FILE: merged they are whole, and miss nothing.
whole_segments() {
  "$ljprof" merge --force -o merged.ljp "$2" "$2".s* 2> merge.txt ||
    fail "$1: $(cat merge.txt)"
  "$ljprof" check merged.ljp > check.txt || fail "$1: $(cat check.txt)"
  grep -q '^whole' check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" report --top 0 merged.ljp > report.txt || fail "$1: report"
  grep -q ' round host' report.txt || fail "$1: $(cat report.txt)"
}
there() {
  [ -e "$1" ]
}
begin loop
record size.ljp --interval 0.1 --rotate-bytes 8k
eventually "three segments" there size.ljp.s3
kill -INT $client
wait $client || fail "by size: exit code $?: $(cat record.txt)"
grep -q 'the first and [0-9]* segments of size.ljp' record.txt ||
  fail "$(cat record.txt)"
for file in size.ljp size.ljp.s1; do
  [ "$(wc -c < $file)" -ge 8192 ] || fail "$file: $(wc -c < $file) bytes"
  [ "$(wc -c < $file)" -lt 65536 ] || fail "$file: $(wc -c < $file) bytes"
done
find . -name 'size.ljp*' -size 0 > empty.txt
same "no segment is empty" "" "$(cat empty.txt)"
whole_segments "by size" size.ljp
ok "by size: $(grep segments record.txt)"
refuses "segments that exist" 1 "exists (use --force" \
  "$ljprof" record -p "$host" -o size.ljp --rotate-bytes 8k

cp size.ljp.s1 size.ljp.s100
sleep 0.1
record size.ljp --interval 0.1 --rotate-bytes 8k --force
gone() {
  ! [ -e "$1" ]
}
eventually "an old segment stays" gone size.ljp.s100
eventually "two segments" there size.ljp.s2
kill -INT $client
wait $client || fail "--force: exit code $?: $(cat record.txt)"
whole_segments "--force" size.ljp
ok "--force replaces all segments"

mkfifo fifo
refuses "a FIFO and rotation" 1 "fifo is not a regular file, so rotation would" \
  "$ljprof" record -p "$host" -o fifo --force --rotate-bytes 4k --keep 1
refuses "a FIFO and rotation of a program that is started" 1 "fifo is not a regular" \
  timeout 20 "$ljprof" record -o fifo --force --rotate-bytes 4k --keep 1 sleep 0
[ -p fifo ] || fail "the FIFO is removed"

record time.ljp --rotate-seconds 0.3 --keep 2
eventually "four segments" there time.ljp.s4
kill -INT $client
wait $client || fail "by time: exit code $?: $(cat record.txt)"
same "segments that are kept" 2 "$(find . -name 'time.ljp*' | wc -l)"
[ ! -e time.ljp ] || fail "the first one is kept: $(ls)"
ok "by time, and --keep: $(grep segments record.txt)"

# The segment that is written goes on while the client is stopped.
record slow.ljp --rotate-seconds 0.3
eventually "a segment" there slow.ljp.s1
kill -STOP $client
sleep 2
count=$(find . -name 'slow.ljp*' | wc -l)
[ "$count" -le 4 ] || fail "a client that is stopped has made $count files"
kill -CONT $client
eventually "segments again" there "slow.ljp.s$((count + 1))"
kill -INT $client
wait $client || fail "a stopped client: $(cat record.txt)"
whole_segments "a client that is stopped" slow.ljp
ok "a client that is stopped loses nothing"

# Whenever the client is killed, everything that was written has a name.
record killed.ljp --interval 0.1 --rotate-bytes 4k
eventually "segments" there killed.ljp.s5
kill -9 $client
wait $client 2> /dev/null || :
eventually "the session ends with its client" settled
find . -name 'killed.ljp*' -size 0 -exec rm {} +
whole_segments "a client that is killed" killed.ljp
ok "a client that is killed leaves whole segments"

# A segment that cannot be made.
mkdir taken.ljp.s2
record taken.ljp --rotate-seconds 0.2 --force
eventually "it is said" grep -q "taken.ljp.s2: .*: the file before goes on" \
  record.txt
rmdir taken.ljp.s2
eventually "the next one" there taken.ljp.s3
kill -INT $client
wait $client || fail "a segment in the way: $(cat record.txt)"
same "said once" 1 "$(grep -c 'goes on until' record.txt)"
whole_segments "a segment in the way" taken.ljp
ok "a segment that cannot be made for a while"

# A socket in place of ptrace.
kill -TERM "$host"
wait "$host" || fail "the program ended with $?"
LJPROF_LISTEN=$PWD/app.sock
export LJPROF_LISTEN
begin loop
unset LJPROF_LISTEN
door=$PWD/app.sock
record door.ljp --rotate-seconds 0.3
eventually "two segments" there door.ljp.s2
kill -TERM "$host"
wait "$host" || fail "the program ended with $?"
host=
wait $client || fail "by its socket: exit code $?: $(cat record.txt)"
whole_segments "by its socket" door.ljp
ok "by its socket, until the program ends"
[ "${LJP_ANALYZER:-ON}" = OFF ] || refuses "--report of several files" 2 "--report is of one file" \
  "$ljprof" record -p 1 --report 1s --rotate-seconds 1
