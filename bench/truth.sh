#!/bin/sh
# How close the CPU profiler comes to the truth: the shares of CPU time of Lua
# code, C functions, builtins, coroutines and system calls, on each timer, with
# JIT off and on. The target is one percentage point with 10,000 samples or
# more.
set -eu
cd "$(dirname "$0")/.."
BUILD_DIR=$(realpath "${BUILD_DIR:-build}")
SOURCE_DIR=$PWD
export BUILD_DIR SOURCE_DIR
[ -x "$BUILD_DIR/bin/truth_judge" ] || {
  echo "truth: error: $BUILD_DIR is not built with tests: ./run build" >&2
  exit 1
}
echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
for timer in perf posix; do
  for option in -joff -jon; do
    printf '\ntimer %s, luajit %s\n' $timer $option
    code=0
    test/truth/truth.sh truth 1 "${LJP_BENCH_SECONDS:-6}" 0.4 $timer $option ||
      code=$?
    case $code in
    0) echo "ok: within one point" ;;
    77) echo "not available here" ;;
    *) echo "ABOVE one point" ;;
    esac
  done
done
