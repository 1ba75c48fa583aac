#!/bin/sh
# storm.sh NAME [LUAJIT-OPTION...]: runs one storm of storm.lua at 10 kHz on
# each available timer, then the same number of rounds without the profiler.
# Both must print the same; the files must be clean and their stacks complete.
#
# LJP_STORM_SECONDS  CPU time under each timer (0.8)
. "$SOURCE_DIR/test/e2e/lib.sh"
name=$1
shift
seconds=${LJP_STORM_SECONDS:-0.8}
# A storm that takes longer than this hangs.
limit=$(echo "$seconds" | awk '{ print int($1 * 20 + 120) }')
percent=99.9 how_far=''
case $name in
# Stacks beyond the depth limit are cut by design.
overflow) how_far=--deep ;;
# Two VMs call each other: no function is in a stack twice.
vms) how_far=--once ;;
esac

timers="perf posix"

storm() {
  LUA_CPATH="$BUILD_DIR/storm/?.so" timeout -s ABRT "$limit" \
    "$BUILD_DIR/bin/luajit" "$@"
}

for timer in $timers; do
  code=0
  storm "$@" "$SOURCE_DIR/test/storm/storm.lua" "$SOURCE_DIR" "$name" \
    "$seconds" "$timer" "$timer.bin" > "$timer.out" || code=$?
  if [ "$code" = 77 ]; then
    echo "skipped: there is no timer $timer here: $(tail -n 1 "$timer.out")"
    continue
  fi
  [ "$code" = 0 ] || fail "$name under $timer: exit code $code"
  rounds=$(wc -l < "$timer.out")
  [ "$rounds" -gt 0 ] || fail "$name under $timer: no output"
  storm "$@" "$SOURCE_DIR/test/storm/storm.lua" "$SOURCE_DIR" "$name" \
    "$rounds" > plain.out || fail "$name without profiler: exit code $?"
  cmp plain.out "$timer.out" || fail "$name under $timer: output differs"
  ok "$name under $timer: $rounds rounds, output unchanged"
  # shellcheck disable=SC2086 # nothing or one word
  "$BUILD_DIR/bin/storm_judge" $how_far $percent "$timer.bin" ||
    fail "$name under $timer: see the line above"
  "$BUILD_DIR/bin/ljprof" check "$timer.bin" > check.out ||
    fail "$name under $timer: ljprof check: $(tail -n 1 check.out)"
  ok "$name under $timer: file clean, stacks complete"
done
[ "$passed" -gt 0 ] || fail "no timer works here"
