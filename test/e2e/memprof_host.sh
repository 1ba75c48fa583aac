#!/bin/sh
# The memory profiler in a host: the C interface, and what hosts may do to it.
. "$(dirname "$0")/lib.sh"

for what in writer ended refused wrong other close replaced thread; do
  "$BUILD_DIR/bin/memprof_host" $what $what.ljp > out.txt 2>&1 ||
    fail "$what: $(cat out.txt)"
  ok "$what"
done
for what in writer close other thread; do
  "$BUILD_DIR/bin/ljprof" check $what.ljp > check.txt ||
    fail "$what: $(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" dump $what.ljp > dump.txt
  n=$(grep -c '^  mem .*operation="alloc"' dump.txt)
  [ "$n" -gt 40000 ] || fail "$what: only $n allocations"
  ok "$what: $n allocations, whole"
done
