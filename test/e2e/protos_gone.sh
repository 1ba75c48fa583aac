#!/bin/sh
# The memory kept for freed functions is bounded, and no function ever gets
# another one's name, however often references are used again (protos_gone.lua).
#
# LJP_PROTO_LOADS  chunks under the CPU profiler (150000); fewer with memory
. "$SOURCE_DIR/test/e2e/lib.sh"
loads=${LJP_PROTO_LOADS:-150000}
# AddressSanitizer would keep up to 256 MiB of what was freed.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=4
export ASAN_OPTIONS
# run NAME HOW COUNT [LUAJIT-OPTION...]
run() {
  name=$1 how=$2 count=$3
  shift 3
  "$BUILD_DIR/bin/luajit" "$@" "$SOURCE_DIR/test/e2e/protos_gone.lua" \
    "$how" "$count" protos.bin > protos.out 2>&1 ||
    fail "$name: $(tail -n 2 protos.out)"
  ok "$name: $(cat protos.out)"
}
# judge SAMPLES EVENTS: the least numbers in the stream.
judge() {
  "$BUILD_DIR/bin/protos_judge" protos.bin "$1" "$2" > judge.out ||
    fail "$name: $(cat judge.out)"
  ok "$name: $(cat judge.out)"
  "$BUILD_DIR/bin/ljprof" check protos.bin > check.out ||
    fail "$name: $(tail -n 1 check.out)"
  rm protos.bin
}
for jit in -joff -Ohotloop=2; do
  run "CPU time, $jit" cpu "$loads" "$jit"
  judge 100 0
  run "memory, $jit" memory $((loads / 5)) "$jit"
  judge 0 $((loads / 5))
  run "both, $jit" both $((loads / 10)) "$jit"
  judge 100 $((loads / 10))
done
