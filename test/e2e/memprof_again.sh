#!/bin/sh
# A stack that the memory profiler remembers is the one that a full walk finds,
# at every event, interpreted and compiled, with frames of C and without, and in a
# session that samples. Usage: memprof_again.sh
. "$(dirname "$0")/lib.sh"

for stacks in guest native some; do
  for jit in on off; do
    mode="JIT $jit, $stacks frames"
    LJPROF_MEMPROF_CHECK=1 "$BUILD_DIR/bin/luajit" -j$jit \
      "$SOURCE_DIR/test/e2e/memprof_again.lua" again.ljp \
      "$SOURCE_DIR/test/mem/varied.lua" $stacks > again.txt ||
      fail "$mode: the program"
    read -r checked differed remembered cut < again.txt
    same "$mode: stacks that differ, of $checked" 0 "$differed"
    same "$mode: stacks that were cut" 0 "$cut"
    [ "$checked" -gt 20000 ] || fail "$mode: only $checked stacks remembered"
    same "$mode: all that were remembered are compared" "$remembered" "$checked"
    "$BUILD_DIR/bin/ljprof" check again.ljp > check.txt ||
      fail "$mode: $(cat check.txt)"
    # Who allocates is a function of C; all of them are told, or none.
    "$BUILD_DIR/bin/ljprof" report --alloc --by kind again.ljp > kinds.txt
    if [ $stacks = native ]; then leaf='100.00% host'; else leaf=; fi
    same "$mode: what allocates, by C" "$leaf" \
      "$(awk '$NF == "host" { print $3, $NF }' kinds.txt)"
  done
done
