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

# -- Heap snapshots -------------------------------------------------------------------
lies vms
code=0
"$ljprof" heap -p "$door" 2> out.txt || code=$?
same "two VMs that cannot be copied: exit code ($(cat out.txt))" 1 $code
same "both are told" "not VM 1 not VM 2" \
  "$(sed 's/.*: //' out.txt | tr '\n' ' ' | sed 's/ $//')"
over
lies many_vms
refuses "a VM that has no room in the list" 1 "not VM 650" \
  "$ljprof" heap -p "$door" --vm 650
"$ljprof" heap -p "$door" 2> out.txt && fail "it has copied one"
grep -q "has 698 VMs more than the 2 that are shown" out.txt || fail "$(cat out.txt)"
ok "it is told that there are more"
over
lies no_vms
refuses "no VM" 1 "has no VM now" "$ljprof" heap -p "$door" --vm 1
over
