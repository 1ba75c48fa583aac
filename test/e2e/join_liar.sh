#!/bin/sh
# A program that listens and does what our library would not do, or can do only when
# a disk fails: the client says it, ends in a bounded time, and harms no file.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

# lies WHAT: the program: $host, $door.
lies() {
  door=$PWD/$1.sock
  python3 "$SOURCE_DIR/test/e2e/join_liar.py" "$door" "$1" > liar.txt 2>&1 &
  host=$!
  eventually "$1: $(cat liar.txt)" test -S "$door"
}
over() {
  kill -9 "$host"
  wait "$host" 2> /dev/null || :
  host=
}
# ends WHAT CODE: the client does.
ends() {
  code=0
  wait $client || code=$?
  same "$1: exit code ($(cat record.txt))" "$2" "$code"
}

# -- The end of a session -----------------------------------------------------------
for lie in stop_error stop_ended; do
  lies $lie
  record $lie.ljp
  began=$(date +%s)
  kill -INT $client
  ends "$lie" 1
  [ $(($(date +%s) - began)) -lt 8 ] || fail "$lie: it waits for long"
  same "$lie: it is said" \
    "ljprof record: the session was ended by an error: the disk is gone" \
    "$(grep disk record.txt)"
  over
done
lies wrong
record wrong.ljp
ends "what is no message" 1
grep -q "does not answer as a library of ours does" record.txt ||
  fail "$(cat record.txt)"
over

# -- Files that it has no say in ------------------------------------------------------
lies number
"$ljprof" jitdump -p "$door" -o . 2> record.txt || fail "$(cat record.txt)"
rm -f "/tmp/perf-$host.map"
same "the dump has the number that the kernel tells" "./jit-$host.dump" \
  "$(find . -name 'jit-*')"
over

lies segments
echo mine > one.ljp.s1
record one.ljp
ends "segments that nobody wants" 1
same "no file segment is made for it" mine "$(cat one.ljp.s1)"
over
