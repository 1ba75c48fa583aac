#!/bin/sh
# truth.sh PROGRAM POINTS SECONDS INTERVAL TIMER [LUAJIT-OPTION...]: runs
# PROGRAM.lua and compares the shares. Exit code 77: the timer is not available.
set -eu
: "${SOURCE_DIR:?}" "${BUILD_DIR:?}"
program=$1 points=$2 seconds=$3 interval=$4 timer=$5
shift 5
looks=
if [ "$program" = crowd ]; then
  looks=1000000
  [ "$timer" != tick ] || looks=10000000
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-truth.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
LUA_CPATH="$BUILD_DIR/truth/?.so" timeout 300 "$BUILD_DIR/bin/luajit" "$@" \
  "$SOURCE_DIR/test/truth/$program.lua" "$seconds" "$interval" "$timer" \
  "$tmp/profile" "$tmp/table"
"$BUILD_DIR/bin/account" "$tmp/profile"
"$BUILD_DIR/bin/truth_judge" ${looks:+--looks $looks} "$points" "$tmp/profile" "$tmp/table"
