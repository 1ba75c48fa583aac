#!/bin/sh
# The memory profiler in a host: the C interface, and what hosts may do to it.
. "$(dirname "$0")/lib.sh"

for what in writer short ended refused errno greedy first onstop again wrong bare \
  oom other close covered replaced swapped shared thread; do
  "$BUILD_DIR/bin/memprof_host" $what $what.ljp > out.txt 2>&1 ||
    fail "$what: $(cat out.txt)"
  ok "$what"
done
for what in writer short greedy close other thread; do
  "$BUILD_DIR/bin/ljprof" check $what.ljp > check.txt ||
    fail "$what: $(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" dump $what.ljp > dump.txt
  n=$(grep -c '^  mem .*operation="alloc"' dump.txt)
  [ "$n" -gt 40000 ] || fail "$what: only $n allocations"
  ok "$what: $n allocations, whole"
done

"$BUILD_DIR/bin/memprof_captured" captured.ljp > out.txt 2>&1 ||
  fail "captured: $(cat out.txt)"
ok "allocators that a host keeps work on, whatever is on: $(cat out.txt)"

for what in covered swapped; do
  "$BUILD_DIR/bin/ljprof" check $what.ljp > check.txt ||
    fail "$what: $(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" dump $what.ljp |
    grep -q '^  note .*the program has replaced its allocator' ||
    fail "$what: the stream does not tell"
done
ok "a stream tells that the allocator was replaced"
"$BUILD_DIR/bin/ljprof" dump oom.ljp > dump.txt
same "failed allocations of 70 KB" 17 \
  "$(grep -c '^  mem .* size=70028 type="string".*failed=true' dump.txt || :)"

# Without a function of Lua: events with the host's state, and no stack of Lua.
"$BUILD_DIR/bin/ljprof" check bare.ljp > check.txt || fail "bare: $(cat check.txt)"
"$BUILD_DIR/bin/ljprof" dump bare.ljp > dump.txt
# bytes, how many, type
while read -r bytes count type; do
  same "bare: $type of $bytes bytes" "$count" "$(grep -c \
    "^  mem .*=\"alloc\".* size=$bytes type=\"$type\".* state=\"outside\".* stack=0\$" dump.txt)"
done << EOF
1057 211 userdata
64 224 table
1056 223 table array part
76 227 string
72 229 function
EOF
