#!/bin/sh
# A stack that the memory profiler remembers is the one that a full walk finds,
# at every event, interpreted and compiled. Usage: memprof_again.sh
. "$(dirname "$0")/lib.sh"

for jit in on off; do
  LJPROF_MEMPROF_CHECK=1 "$BUILD_DIR/bin/luajit" -j$jit \
    "$SOURCE_DIR/test/e2e/memprof_again.lua" again.ljp \
    "$SOURCE_DIR/test/mem/varied.lua" > again.txt || fail "JIT $jit: the program"
  read -r checked differed remembered cut < again.txt
  same "JIT $jit: stacks that differ, of $checked" 0 "$differed"
  same "JIT $jit: stacks that were cut" 0 "$cut"
  [ "$checked" -gt 20000 ] || fail "JIT $jit: only $checked stacks remembered"
  same "JIT $jit: all that were remembered are compared" "$remembered" "$checked"
  "$BUILD_DIR/bin/ljprof" check again.ljp > check.txt ||
    fail "JIT $jit: $(cat check.txt)"
done
