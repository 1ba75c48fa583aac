#!/bin/sh
# One request in 10,000 leaves its session behind: that is named first among the
# leaks, with its stack, before a cache that holds ten times as much.
. "$(dirname "$0")/lib.sh"

for jit in on off; do
  "$BUILD_DIR/bin/luajit" -j$jit "$SOURCE_DIR/test/e2e/memprof_leak.lua" l.ljp ||
    fail "JIT $jit: the program"
  "$BUILD_DIR/bin/ljprof" report --leaks l.ljp > report.txt ||
    fail "JIT $jit: $(cat report.txt)"
  grep -q "difference 0" report.txt || fail "JIT $jit: $(cat report.txt)"
  # The first stack: what is under the heading, up to the next one.
  awk '/ self .* stack$/ { on = 1; next } on && /%/ && n++ { exit } on' \
    report.txt > first.txt
  grep -q 'new_session .*memprof_leak.lua:6' first.txt ||
    fail "JIT $jit: first comes $(cat first.txt)"
  grep -q 'handle .*memprof_leak.lua:10' first.txt ||
    fail "JIT $jit: not its caller: $(cat first.txt)"
  ok "JIT $jit: the leak comes first: $(head -1 first.txt)"
done
