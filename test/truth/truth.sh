#!/bin/sh
# truth.sh POINTS SECONDS INTERVAL TIMER [LUAJIT-OPTION...]: runs truth.lua and
# compares the shares. Exit code 77: the timer is not available.
set -eu
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
points=$1 seconds=$2 interval=$3 timer=$4
shift 4
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-truth.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
LUA_CPATH="$BUILD_DIR/truth/?.so" timeout 300 "$BUILD_DIR/bin/luajit" "$@" \
  "$SOURCE_DIR/test/truth/truth.lua" "$seconds" "$interval" "$timer" \
  "$tmp/profile" "$tmp/table"
"$BUILD_DIR/bin/truth_judge" "$points" "$tmp/profile" "$tmp/table"
