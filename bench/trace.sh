#!/bin/sh
# What knowing the inside of traces costs: memory of marks by trace, instructions
# that compiling takes, time of a sample inside of a trace.
#
#   BUILD_DIR=build bench/trace.sh [marks|compile|sample]...
#
# Instructions as in bench/off.sh, where the method is described; the script is the
# one of which nearly everything is compiling (bench/micro/traces.lua); means for
# LJP_BENCH_SEEDS seeds. What events of traces cost in a session cannot be counted
# so (valgrind knows no such timers): it is the CPU time of the process, with and
# without a session whose timer never fires, in turn in one process.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD_DIR:-build}")
seeds=${LJP_BENCH_SEEDS:-3}

die() {
  echo "trace: error: $*" >&2
  exit 1
}
[ -x "$build/bench/bench_trace_marks" ] || die "$build is not built: ./run build"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/trace.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

marks() {
  echo "Memory of traces alive at the end of a script: means of each trace"
  LJPROF_MARKERS=1 "$build/bench/bench_trace_marks" 3 bench/workloads/*.lua \
    test/oracle/traces/*.lua
}

# count SIDE MARKERS SEED SCRIPT SIZE: instructions of one run.
count() {
  out=$(setarch "$(uname -m)" -R env -i LJPROF_MARKERS="$2" \
    LD_PRELOAD="$tmp/even_start.so" LJP_BENCH_EVEN=1 LJP_BENCH_SEED="$3" \
    valgrind --tool=cachegrind --cache-sim=no --branch-sim=no \
    --smc-check=all-non-file --cachegrind-out-file=/dev/null \
    "$tmp/$1/bin/luajit" "$4" "$5" 2>&1 > /dev/null) || die "$(echo "$out" | grep -v '^[=-][=-]' | head -n 2)"
  echo "$out" | sed -n 's/.*I *refs: *//p' | tr -d ,
}

# compile_cost SIDE MARKERS SCRIPT: instructions of all compiling, mean.
compile_cost() {
  seed=1
  sum=0
  while [ "$seed" -le "$seeds" ]; do
    large=$(count "$1" "$2" "$seed" "$3" 12) || exit 1
    small=$(count "$1" "$2" "$seed" "$3" 2) || exit 1
    sum=$((sum + large - small))
    seed=$((seed + 1))
  done
  echo $((sum / seeds))
}

compile() {
  command -v valgrind > /dev/null || die "valgrind is missing: ./run deps"
  [ -x "$build/unpatched/bin/luajit" ] ||
    die "there is no unpatched luajit in $build (-DLJPROF_UNPATCHED=ON)"
  for side in p u; do
    from=$build
    [ $side = p ] || from=$build/unpatched
    mkdir -p "$tmp/$side/bin" "$tmp/$side/lib"
    cp "$from/bin/luajit" "$tmp/$side/bin/"
    cp -L "$from/lib/libluajit-5.1.so.2" "$tmp/$side/lib/"
  done
  cp "$build/bench/even_start.so" "$tmp/"
  cp bench/micro/traces.lua "$tmp/plain.lua"
  echo "Instructions of a script that compiles (LJPROF_MARKERS as named)"
  base=$(compile_cost u 0 "$tmp/plain.lua") || exit 1
  printf '%-34s %11s\n' "unpatched" "$base"
  for marked in 0 1; do
    n=$(compile_cost p $marked "$tmp/plain.lua") || exit 1
    awk -v marked=$marked -v n="$n" -v base="$base" 'BEGIN {
      printf "patched, %-25s %11d %+6.2f %%\n",
             marked ? "always marked" : "never marked", n,
             100 * (n / base - 1) }'
  done
  LJPROF_MARKERS=1 "$build/bin/luajit" bench/trace.lua events "$tmp/profile"
}

sample() {
  echo "Handler, in a trace (load: $(cut -d' ' -f1-3 /proc/loadavg))"
  for timer in perf posix; do
    LJPROF_MARKERS=1 "$build/bin/luajit" bench/trace.lua sample "$tmp/profile" $timer
  done
}

[ $# -gt 0 ] || set -- marks compile sample
for what in "$@"; do
  case $what in
  marks | compile | sample) $what ;;
  *)
    echo "trace: error: no measure is called '$what'" >&2
    exit 2
    ;;
  esac
  echo
done
