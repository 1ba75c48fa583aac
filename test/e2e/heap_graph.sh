#!/bin/sh
# A heap snapshot has the references that Lua's debug library shows, of random
# heaps. LJPROF_HEAP_SEEDS and LJPROF_HEAP_OBJECTS: the number of heaps, and how large
# they are; or heap_graph.sh FIRST LAST OBJECTS.
. "$(dirname "$0")/lib.sh"
LJPROF=$BUILD_DIR/bin/ljprof
export LJPROF
lua=$SOURCE_DIR/test/e2e/heap_graph.lua
first=${1:-1} last=${2:-${LJPROF_HEAP_SEEDS:-4}}
objects=${3:-${LJPROF_HEAP_OBJECTS:-2000}}

for jit in on off; do
  "$BUILD_DIR/bin/luajit" -j$jit "$lua" "$first" "$last" "$objects" > out.txt \
    2>&1 || fail "JIT $jit: $(head -c 4000 out.txt)"
  ok "JIT $jit: $(cat out.txt)"
done

# The comparison finds what is wrong.
sed 's/how == "value" then/how == "a value" then/' "$lua" > broken.lua
if "$BUILD_DIR/bin/luajit" broken.lua 1 1 1000 > out.txt 2>&1; then
  fail "values of upvalues are not compared"
fi
grep -q '^.*seed 1, function' out.txt || fail "$(head -c 4000 out.txt)"
ok "a missing value is found"
