#!/bin/sh
# What knowledge about traces costs: the memory that markers take in each trace,
# the instructions that compiling takes, the time of a sample inside a trace, and
# the time that writing a trace for perf takes.
#
#   BUILD_DIR=build bench/trace.sh [marks|compile|sample|jitdump]...
#
# Instructions are counted as in bench/off.sh, which describes the method; the
# script is bench/micro/traces.lua, which does almost nothing but compile;
# figures are means over LJP_BENCH_SEEDS seeds. The cost of a session's trace
# events cannot be counted like that, since valgrind does not support the
# timers. It is measured as the CPU time of the process with and without a
# session whose timer never fires, alternately in one process.
bench=trace
. "$(dirname "$0")/lib.sh"
seeds=${LJP_BENCH_SEEDS:-3}
[ -x "$build/bench/bench_trace_markers" ] ||
  die "$build is not built: ./run build"

marks() {
  echo "Memory of traces alive at the end of a script: means per trace"
  LJPROF_MARKERS=1 "$build/bench/bench_trace_markers" 3 bench/workloads/*.lua \
    test/oracle/traces/*.lua
}

# count SIDE MARKERS SEED SCRIPT SIZE: instructions of one run.
count() {
  instructions "LJPROF_MARKERS=$2 LJP_BENCH_EVEN=1 LJP_BENCH_SEED=$3" \
    "$tmp/$1/bin/luajit" "$4" "$5" || die "a run failed"
}

# compile_cost SIDE MARKERS SCRIPT: instructions of all compiling, the mean over
# the seeds.
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
  two_sides
  cp bench/micro/traces.lua "$tmp/plain.lua"
  echo "Instructions of a script that compiles (LJPROF_MARKERS as named)"
  base=$(compile_cost u 0 "$tmp/plain.lua") || exit 1
  printf '%-34s %11s\n' "unpatched" "$base"
  for marked in 0 1; do
    n=$(compile_cost p $marked "$tmp/plain.lua") || exit 1
    awk -v marked=$marked -v n="$n" -v base="$base" 'BEGIN {
      printf "patched, %-25s %11d %+6.2f %%\n",
             marked ? "always with markers" : "never with markers", n,
             100 * (n / base - 1) }'
  done
  LJPROF_MARKERS=1 "$build/bin/luajit" bench/trace.lua events "$tmp/profile"
}

sample() {
  echo "Handler inside a trace (load: $(cut -d' ' -f1-3 /proc/loadavg))"
  for timer in perf posix; do
    LJPROF_MARKERS=1 "$build/bin/luajit" bench/trace.lua sample "$tmp/profile" $timer
  done
}

jitdump() {
  echo "Writing traces for perf (load: $(cut -d' ' -f1-3 /proc/loadavg))"
  JITDUMPDIR=$tmp "$build/bin/luajit" bench/trace.lua jitdump "$tmp/profile"
}

[ $# -gt 0 ] || set -- marks compile sample jitdump
for what in "$@"; do
  case $what in
  marks | compile | sample | jitdump) $what ;;
  *)
    echo "trace: error: there is no measure '$what'" >&2
    exit 2
    ;;
  esac
  echo
done
