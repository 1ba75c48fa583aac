#!/bin/sh
# What the memory profiler costs: slowdown, ns and bytes an event, and whether
# the collector works at its usual pace. Usage: memory.sh [RUNS]
# Each figure is the median of RUNS runs (default 5), plain and profiled in turn.
set -eu
luajit=${BUILD_DIR:-build}/bin/luajit
here=$(dirname "$0")
runs=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf '%-10s %8s | %6s %8s %8s %9s %6s | %7s %6s\n' workload plain every \
  events ns/event B/event GC sampled GC
for workload in churn closures callbacks objects; do
  for mode in plain every sample; do : > "$work/$mode"; done
  i=0
  while [ $i -lt "$runs" ]; do
    for mode in plain every sample; do
      "$luajit" "$here/memory.lua" $workload $mode "$work/out.ljp" >> "$work/$mode"
    done
    i=$((i + 1))
  done
  for mode in plain every sample; do
    # The run with the median time, whole.
    sort -n "$work/$mode" | sed -n "$(((runs + 1) / 2))p" > "$work/$mode.median"
  done
  cat "$work/plain.median" "$work/every.median" "$work/sample.median" |
    awk -v name=$workload '
      { s[NR] = $1; gc[NR] = $2; events[NR] = $3; bytes[NR] = $4 }
      END {
        n = events[2] ? events[2] : 1
        printf "%-10s %7.3fs | %5.2fx %8d %8.1f %9.2f %6.3f | %6.3fx %6.3f\n",
          name, s[1], s[2] / s[1], events[2], (s[2] - s[1]) * 1e9 / n,
          bytes[2] / n, gc[2] / (gc[1] ? gc[1] : 1), s[3] / s[1],
          gc[3] / (gc[1] ? gc[1] : 1)
      }'
done
