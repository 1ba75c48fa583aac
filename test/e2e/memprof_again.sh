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
    "$BUILD_DIR/bin/ljprof" report --native --alloc --by kind again.ljp \
      > kinds.txt
    if [ $stacks = native ]; then leaf='100.00% host'; else leaf=; fi
    same "$mode: what allocates, by C" "$leaf" \
      "$(awk '$NF == "host" { print $3, $NF }' kinds.txt)"
  done
done

# Deeper than any event has room for: cut, not lost.
for native in false true; do
  "$BUILD_DIR/bin/luajit" -joff - $native > deep.txt << 'END' || fail "deep: the program"
local keep
local function deep(n) if n == 0 then for i = 1, 101 do keep = { i } end return 0 end return deep(n - 1) + 1 end
assert(misc.memprof.start { path = "deep.ljp", every = true, native = arg[1] == "true" })
deep(3001)
assert(misc.memprof.stop())
local s = misc.memprof.status()
print(s.losses, s.cut >= 101 and "cut" or s.cut)
END
  same "native = $native, 3,001 calls deep: events lost, stacks cut" "0 cut" \
    "$(tr '\t' ' ' < deep.txt)"
  "$BUILD_DIR/bin/ljprof" check deep.ljp > check.txt || fail "deep: $(cat check.txt)"
  same "native = $native: tables that are told" 101 \
    "$("$BUILD_DIR/bin/ljprof" dump deep.ljp | grep -c 'operation="alloc".*type="table"' || true)"
done
