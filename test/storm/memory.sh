#!/bin/sh
# memory.sh NAME [LUAJIT-OPTION...]: runs one storm of storm.lua with every
# allocation recorded, alone and together with CPU samples at 10 kHz, and with
# sampled allocations and CPU samples; then the same number of rounds without a
# profiler. Both must print the same. No event may be lost, no stack may be cut,
# and the events must add up to LuaJIT's own count, to the byte.
#
# LJP_STORM_SECONDS  CPU time of each session (0.3)
# LJP_STORM_WAYS     the sessions to run (every combined sampled)
# LJP_STORM_NATIVE   if set, every event has its host frames, too
# LJP_STORM_SNAPSHOTS  if set, the session takes a heap snapshot each 0.1 s, and the
#                    program one more between its rounds, each 0.05 s. Each has all
#                    bytes that the VM counts.
# LJPROF_MEMPROF_CHECK=1: each remembered stack must be what a full walk finds.
. "$SOURCE_DIR/test/e2e/lib.sh"
. "$SOURCE_DIR/test/storm/all_bytes.sh"
name=$1
shift
seconds=${LJP_STORM_SECONDS:-0.3}
# A storm that takes longer than this hangs.
limit=$(echo "$seconds" | awk '{ print int($1 * 20 + 120) }')
percent=99.9 deep='' how_far=''
case $name in
overflow) deep=--deep how_far=--deep ;;
# Two VMs call each other: no function is in a stack twice.
vms) how_far=--once ;;
esac

storm() {
  LUA_CPATH="$BUILD_DIR/storm/?.so" timeout -s ABRT "$limit" \
    "$BUILD_DIR/bin/luajit" "$@"
}

for how in ${LJP_STORM_WAYS:-every combined sampled}; do
  code=0
  storm "$@" "$SOURCE_DIR/test/storm/storm.lua" "$SOURCE_DIR" "$name" \
    "$seconds" "$how" "$how.bin" > "$how.out" || code=$?
  [ "$code" = 0 ] || fail "$name, $how: exit code $code: $(tail -n 1 "$how.out")"
  rounds=$(wc -l < "$how.out")
  [ "$rounds" -gt 0 ] || fail "$name, $how: no output"
  storm "$@" "$SOURCE_DIR/test/storm/storm.lua" "$SOURCE_DIR" "$name" \
    "$rounds" > plain.out || fail "$name without profiler: exit code $?"
  cmp plain.out "$how.out" || fail "$name, $how: output differs"
  ok "$name, $how: $rounds rounds, output unchanged"
  sampled=
  [ "$how" != sampled ] || sampled=--sampled
  # shellcheck disable=SC2086 # nothing or one word each
  "$BUILD_DIR/bin/storm_heap" $deep $sampled "$how.bin" ||
    fail "$name, $how: see the line above"
  # shellcheck disable=SC2086
  [ "$how" = every ] ||
    "$BUILD_DIR/bin/storm_judge" $how_far $percent "$how.bin" ||
    fail "$name, $how: see the line above"
  "$BUILD_DIR/bin/ljprof" check "$how.bin" > check.out ||
    fail "$name, $how: ljprof check: $(tail -n 1 check.out)"
  ok "$name, $how: file clean, every event there, stacks complete"
  [ -z "${LJP_STORM_SNAPSHOTS-}" ] || all_bytes "$name, $how" "$how.bin"
  rm "$how.bin"
done
