#!/bin/sh
# What the memory profiler costs: slowdown, ns and bytes an event, and whether
# the collector works at its usual pace, beside what they are meant to be.
# Usage: memory.sh [RUNS]
# Each round runs a workload plain and profiled, one after the other; a figure is the
# median of what RUNS rounds (default 5) give for it, each by its own plain run, since
# a machine may be faster in one minute than in the next. Collections are summed up.
# native: every event with frames of C, CPU time of an event.
# cpu: by the CPU time of the program's own thread; of a busy machine it tells
# more than the time on the clock, but not what waiting for the writer costs.
# instr.: instructions of that thread as valgrind counts them, of runs that differ
# in size, so that start and end are not in it: without noise, but for which
# blocks are hit.
set -eu
luajit=${BUILD_DIR:-build}/bin/luajit
here=$(dirname "$0")
runs=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v valgrind > /dev/null || {
  echo "memory: error: valgrind is missing: ./run deps" >&2
  exit 1
}

count() { # WORKLOAD MODE PART: instructions of the thread that runs the program
  rm -f "$work"/count*
  setarch "$(uname -m)" -R env -i LJP_BENCH_SEED=7 \
    LD_PRELOAD="${BUILD_DIR:-build}/bench/even_start.so" \
    valgrind -q --tool=callgrind --separate-threads=yes \
    --callgrind-out-file="$work/count" "$luajit" "$here/memory.lua" "$1" "$2" \
    "$work/out.ljp" "$3" > /dev/null
  sed -n 's/^totals: *//p' "$work/count-01"
}

instructions() { # WORKLOAD: sampled by plain
  for mode in plain sample; do
    echo "$(count "$1" $mode 0.1) $(count "$1" $mode 0.0167)"
  done | awk '{ n[NR] = $1 - $2 } END { printf "%.3f", n[2] / n[1] }'
}

printf '%-20s %9s | %7s %7s %9s %8s %7s %7s | %9s | %8s %7s %7s %7s\n' '' plain \
  every cpu 'cpu ns/ev' events B/event GC 'native ns' sampled cpu instr. GC
for workload in churn closures callbacks objects coroutines; do
  i=0
  while [ $i -lt "$runs" ]; do
    for mode in plain sample every native; do
      "$luajit" "$here/memory.lua" $workload $mode "$work/out.ljp"
    done | paste -s -d ' ' -
    i=$((i + 1))
  done > "$work/rounds"
  awk -v name=$workload -v instructions="$(instructions $workload)" '
    # memory.lua prints wall seconds, collections, events, bytes, CPU seconds.
    function median(a,  i, j, t) {
      for (i = 2; i <= NR; i++) {
        t = a[i]
        for (j = i - 1; j && a[j] > t; j--) a[j + 1] = a[j]
        a[j + 1] = t
      }
      return NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2
    }
    {
      wall[NR] = $1
      sampled[NR] = $6 / $1; sampled_cpu[NR] = $10 / $5
      every[NR] = $11 / $1; every_cpu[NR] = $15 / $5
      ns[NR] = ($15 - $5) * 1e9 / $13; native[NR] = ($20 - $5) * 1e9 / $18
      events[NR] = $13; bytes[NR] = $14 / $13
      runs += $2; sampled_runs += $7; every_runs += $12
    }
    END {
      if (!runs) runs = 1
      printf "%-20s %8.3fs | %6.2fx %6.2fx %9.1f %8d %7.2f %7.3f | %9.1f | %7.3fx %6.3fx %6.3fx %7.3f\n",
        name, median(wall), median(every), median(every_cpu), median(ns),
        median(events), median(bytes), every_runs / runs, median(native),
        median(sampled), median(sampled_cpu), instructions, sampled_runs / runs
    }' "$work/rounds"
done
printf '%-20s %9s | %7s %7s %9s %8s %7s %7s | %9s | %8s %7s %7s %7s\n' 'target' '' \
  '<= 2x *' '' '<= 60' '' '<= 8' '+-0.02' '<= 200' '<= 1.02x' '' '' '+-0.02'
echo '* churn, with the compiler on. A run of objects has 18 to 25 collections by itself:'
echo '  sixty rounds tell them to the hundredth.'
