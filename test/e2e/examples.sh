#!/bin/sh
# Each example prints its known output, with the JIT on and off.
. "$(dirname "$0")/lib.sh"

lua=$BUILD_DIR/bin/luajit
for jit in on off; do
  same "words, JIT $jit" "the 18000 runs 8000 loop 6000 trace 6000" \
    "$("$lua" -j$jit "$SOURCE_DIR/examples/words.lua" | tr '\n' ' ' |
      sed 's/ $//')"
  same "queens, JIT $jit" "first of 92 solutions: 1 5 8 6 3 7 2 4" \
    "$("$lua" -j$jit "$SOURCE_DIR/examples/queens.lua")"
  same "sieve, JIT $jit" \
    "148933 primes below 2000000, the last is 1999993" \
    "$("$lua" -j$jit "$SOURCE_DIR/examples/sieve.lua")"
  same "site, JIT $jit" \
    "1642 links, 117 broken, 9409 hits, checksum 3766866328" \
    "$("$lua" -j$jit "$SOURCE_DIR/examples/site.lua")"
done
for f in "$SOURCE_DIR"/examples/*.lua; do
  "$lua" "$f" > out.txt || fail "$f: $(cat out.txt)"
  ok "${f##*/} runs"
done
