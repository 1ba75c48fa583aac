#!/bin/sh
# snapshots.sh [luajit's options]: a program that takes snapshots of its heap all
# the time computes what it computes without, leaves no process behind, and each
# snapshot has all bytes.
# LJP_STORM_SECONDS  CPU time with snapshots (0.8)
. "$(dirname "$0")/../e2e/lib.sh"
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
  "$BUILD_DIR/bin/ljprof" dump session.ljp |
    awk '
      function field(key) { return substr($0, index($0, " " key "=") + length(key) + 2) + 0 }
      /^  heap-moment / { moments++; bytes[field("snapshot")] = field("heap_bytes") }
      /^  heap-end / { ends++; bad += bytes[field("snapshot")] != field("bytes") }
      END { print moments + 0, ends + 0, bad + 0 }' > sums.txt
  read -r moments ends bad < sums.txt
  if [ "$moments" != "$ends" ] || [ "$ends" -lt 3 ] || [ "$bad" != 0 ]; then
    fail "$mode: moments, snapshots, wrong sums: $(cat sums.txt)"
  fi
  ok "$mode: $ends snapshots in the session's file have all bytes"
done
