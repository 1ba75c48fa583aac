#!/bin/sh
# The storm of traces at 10 kHz on each timer: see traces.lua.
#
# LJP_TRACE_STORM_SECONDS  CPU time under each timer (1.6; with
#                          ./run test --storm: 60)
. "$SOURCE_DIR/test/e2e/lib.sh"
seconds=${LJP_TRACE_STORM_SECONDS:-1.6}
limit=$(echo "$seconds" | awk '{ print int($1 * 20 + 120) }')
for timer in perf posix; do
  code=0
  LUA_CPATH="$BUILD_DIR/storm/?.so" \
    timeout -s ABRT "$limit" "$BUILD_DIR/bin/luajit" \
    "$SOURCE_DIR/test/storm/traces.lua" "$seconds" "$timer" "$timer.bin" \
    "$timer.log" > "$timer.out" 2>&1 || code=$?
  if [ "$code" = 77 ]; then
    echo "skipped: there is no timer $timer here: $(tail -n 1 "$timer.out")"
    continue
  fi
  [ "$code" = 0 ] || fail "$timer: exit code $code: $(tail -n 3 "$timer.out")"
  ok "$timer: $(tail -n 1 "$timer.out")"
  "$BUILD_DIR/bin/traces_judge" 1000 "$timer.bin" "$timer.log" ||
    fail "$timer: see the lines above"
  "$BUILD_DIR/bin/storm_judge" 99.5 "$timer.bin" || fail "$timer: see above"
  "$BUILD_DIR/bin/ljprof" check "$timer.bin" > check.out ||
    fail "$timer: ljprof check: $(tail -n 1 check.out)"
  ok "$timer: no stale name, no wrong chain"
done
[ "$passed" -gt 0 ] || fail "no timer works here"
