#!/bin/sh
# What the CPU profiler delivers and costs: the share of expected samples, the
# handler's time by depth, bytes per sample, slowdown of the program, start and
# stop, the watcher of waiting threads, what a timer costs at each wait, and what
# labels cost.
#
#   BUILD_DIR=build bench/cpu.sh [delivery|handler|bytes|slowdown|start|waiting|switches|labels]...
#
# Slowdown compares rounds in one process: the same work without a session, with
# signals to an empty handler, and with a session, in changing order. The
# figures are medians of the ratios of the thread's CPU time, of the process's
# CPU time (which includes the writer's thread), and of wall time. The handler
# measures its own cost; the kernel's part of a signal is not in it and shows in
# the row of the empty handler. For that row the file is in memory: a disk that
# is busy with the file slows the whole machine. Throttling is off.
# "+-" is half the distance between the quartiles.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD_DIR:-build}")
tmp=$(mktemp -d "${TMPDIR:-/tmp}/cpu.XXXXXX")
memory=$(mktemp -d /dev/shm/cpu.XXXXXX 2>/dev/null) || memory=$tmp
trap 'rm -rf "$tmp" "$memory"' EXIT
trap 'exit 130' INT TERM

# measure WHAT TIMER [LUAJIT-OPTION...]
measure() {
  what=$1 timer=$2 folder=$tmp
  shift 2
  [ "$what" != handler ] || folder=$memory
  LUA_CPATH="$build/bench/?.so" "$build/bin/luajit" "$@" bench/cpu.lua \
    "$what" "$folder/profile" "$timer"
}

[ $# -gt 0 ] || set -- delivery handler bytes slowdown start waiting switches labels
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs"
for what in "$@"; do
  case $what in
  delivery)
    echo "Samples delivered (target: 97 % at 1 ms)"
    measure delivery perf
    measure delivery posix
    ;;
  handler)
    echo "Handler (target: 1000 ns at 30 + 30)"
    measure handler perf -joff
    measure handler perf
    measure handler posix -joff
    ;;
  bytes)
    echo "File (target: 12 bytes a sample)"
    measure bytes auto -joff
    ;;
  slowdown)
    echo "Slowdown (target: 1.02 at 1 ms, 1.08 at 0.1 ms)"
    for timer in perf posix; do
      measure slowdown "$timer" -joff
      measure slowdown "$timer"
    done
    ;;
  start)
    echo "Start and stop (target: start 5 ms)"
    measure start auto
    ;;
  waiting)
    echo "Waiting threads, event \"wall\""
    measure waiting auto
    ;;
  switches)
    echo "A wait of a sampled thread, interval 10 ms"
    measure switches any
    ;;
  labels)
    echo "Labels, no session"
    measure labels none
    ;;
  *)
    echo "cpu: error: there is no measure '$what'" >&2
    exit 2
    ;;
  esac
done
