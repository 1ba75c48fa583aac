#!/bin/sh
# What scripts and C programs for Tarantool's profilers expect of the calls:
# results, errors, metrics, and three habits of C programs.
. "$(dirname "$0")/lib.sh"

for jit in off on; do
  "$BUILD_DIR/bin/luajit" -j$jit "$SOURCE_DIR/test/e2e/tarantool_api.lua" \
    > out.txt 2>&1 || fail "Lua, JIT $jit: $(cat out.txt)"
  grep -q '^ok' out.txt || fail "Lua, JIT $jit: $(cat out.txt)"
  ok "Lua, JIT $jit"
done
for what in asked handled buffers greedy memory metrics freed; do
  "$BUILD_DIR/bin/tarantool_host" $what $what.ljp > out.txt 2>&1 ||
    fail "$what: $(cat out.txt)"
  ok "$what"
done
for what in asked buffers greedy memory; do
  "$BUILD_DIR/bin/ljprof" check $what.ljp > check.txt ||
    fail "$what: $(cat check.txt)"
done
same "samples asked for" 8 \
  "$("$BUILD_DIR/bin/ljprof" dump asked.ljp | grep -c '^  sample ')"
"$BUILD_DIR/bin/ljprof" report buffers.ljp > report.txt
grep -q 'busy' report.txt || fail "buffers: $(cat report.txt)"
ok "the streams of the program's own writers are whole"
