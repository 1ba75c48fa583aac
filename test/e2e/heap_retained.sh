#!/bin/sh
# What an object of a heap snapshot retains is what the collector frees without it, in
# random graphs with weak tables. LJPROF_HEAP_SEEDS: the number of seeds, of which each
# makes 20 graphs; or heap_retained.sh FIRST LAST.
. "$(dirname "$0")/lib.sh"
LJPROF=$BUILD_DIR/bin/ljprof
export LJPROF
"$BUILD_DIR/bin/luajit" "$SOURCE_DIR/test/e2e/heap_retained.lua" "${1:-1}" \
  "${2:-${LJPROF_HEAP_SEEDS:-2}}" > out.txt 2>&1 || fail "$(head -c 2000 out.txt)"
ok "$(cat out.txt)"
grep -q ' [1-9][0-9]* held more as weak keys' out.txt || fail "$(cat out.txt)"
