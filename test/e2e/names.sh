#!/bin/sh
# A function has the name under which it was defined, even if the collector has
# freed the chunk that defined it, and its strings, before the session starts.
. "$(dirname "$0")/lib.sh"

# expected: the lines and names of the functions in which names.lua allocates.
expected() {
  for chunk in dumped plain; do
    echo "2 $chunk.lua as_local"
    echo "4 $chunk.lua as_global"
    echo "6 $chunk.lua as_field"
    echo "7 $chunk.lua as_method"
    echo "8 $chunk.lua slot"
    echo "9 $chunk.lua slot2"
    echo "11 $chunk.lua inner"
    echo "17 $chunk.lua "
  done | sort -k2,2 -k1,1n
}
expected > wanted.txt

for when in before after collected; do
  for jit in on off; do
    "$BUILD_DIR/bin/luajit" -j$jit "$SOURCE_DIR/test/e2e/names.lua" n.ljp \
      $when > out.txt || fail "$when, JIT $jit: the program"
    same "$when, JIT $jit: all were called" 16 "$(cat out.txt)"
    "$BUILD_DIR/bin/ljprof" dump n.ljp | grep ' proto id=' |
      sed -n -e 's/.* first_line=\([0-9]*\) .* chunk="@\([a-z]*\.lua\)"/\1 \2/' \
        -e 's/^\([0-9]* [a-z.]*\) name="\(.*\)".*/\1 \2/p' |
      grep -v "main chunk" | sort -u | sort -k2,2 -k1,1n > got.txt
    grep -vE ' (as_upvalue_of|maker)$' got.txt > seen.txt || :
    diff wanted.txt seen.txt || fail "$when, JIT $jit: other names"
    ok "$when, JIT $jit: $(grep -c . seen.txt) functions by name"
  done
done
