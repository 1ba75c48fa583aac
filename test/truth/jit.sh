#!/bin/sh
# jit.sh SECONDS INTERVAL TIMER CASE...: runs cases of jit.lua and compares the
# shares: functions within two percentage points, lines within three, at least
# 10,000 samples. Exit code 77: the timer is not available.
set -eu
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
seconds=$1 interval=$2 timer=$3
shift 3
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-truth.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
bad=0
for name in "$@"; do
  echo "== $name, timer $timer"
  timeout 300 "$BUILD_DIR/bin/luajit" \
    "$SOURCE_DIR/test/truth/jit.lua" "$name" "$seconds" "$interval" "$timer" \
    "$tmp/profile" "$tmp/functions" "$tmp/lines"
  "$BUILD_DIR/bin/truth_judge" --samples 10000 --stall 5000000 \
    2 "$tmp/profile" "$tmp/functions" || bad=1
  "$BUILD_DIR/bin/truth_judge" --samples 10000 --stall 5000000 \
    3 "$tmp/profile" "$tmp/lines" || bad=1
done
exit $bad
