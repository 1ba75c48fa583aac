#!/bin/sh
# snapshots.sh [luajit's options]: a program that takes snapshots of its heap all
# the time computes what it computes without, leaves no process behind, and each
# snapshot has all bytes.
# LJP_STORM_SECONDS  CPU time with snapshots (0.8)
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/all_bytes.sh"
seconds=${LJP_STORM_SECONDS:-0.8}
lua=$SOURCE_DIR/test/storm/snapshots.lua
"$BUILD_DIR/bin/luajit" "$@" "$lua" 0 0 > without.txt 2> err.txt ||
  fail "without snapshots: $(cat err.txt)"
for mode in "" every sampled; do
  # shellcheck disable=SC2086 # no mode is no argument
  "$BUILD_DIR/bin/luajit" "$@" "$lua" "$seconds" 0.05 $mode > with.txt 2> err.txt ||
    fail "with snapshots: $(cat err.txt)"
  same "the output $mode" "$(cat without.txt)" "$(cat with.txt)"
  "$BUILD_DIR/bin/ljprof" check storm.ljp > check.txt || fail "$(cat check.txt)"
  ok "$(cat err.txt)"
  [ -n "$mode" ] || continue
  "$BUILD_DIR/bin/ljprof" check session.ljp > check.txt || fail "$(cat check.txt)"
  all_bytes "$mode" session.ljp 3
done
