#!/bin/sh
# A sampled program that execs: the new program runs as if nobody had sampled
# the old one. Signals that the kernel queued during the exec must not end it.
. "$(dirname "$0")/lib.sh"

for timer in perf trap tick posix; do
  [ $timer = perf ] && many=200 || many=40
  for mode in "own 40" "follow $many"; do
    # shellcheck disable=SC2086 # two arguments
    "$BUILD_DIR/bin/luajit" "$SOURCE_DIR/test/e2e/exec.lua" $timer $mode \
      > out.txt 2>&1 && code=0 || code=$?
    [ "$code" != 77 ] || { ok "$timer: $(cat out.txt)"; continue; }
    [ "$code" = 0 ] || fail "$timer, $mode: $(cat out.txt)"
    same "$timer, $mode: programs that ended by a signal" 0 "$(cat out.txt)"
    rm -f ./*.ljp*
  done
done
