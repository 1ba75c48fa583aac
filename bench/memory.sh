#!/bin/sh
# What the memory profiler costs: slowdown, ns and bytes an event, and whether
# the collector works at its usual pace, beside what they are meant to be.
# Usage: memory.sh [RUNS]
# Each figure is the median of RUNS runs (default 5), plain and profiled in turn.
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

# Fields of memory.lua's line: 1 wall, 2 collections, 3 events, 4 bytes, 5 CPU.
median() { # MODE FIELD
  sort -n -k "$2,$2" "$work/$1" | awk -v f="$2" -v at=$(((runs + 1) / 2)) \
    'NR == at { print $f }'
}

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
  for mode in plain every native sample; do : > "$work/$mode"; done
  i=0
  while [ $i -lt "$runs" ]; do
    for mode in plain every native sample; do
      "$luajit" "$here/memory.lua" $workload $mode "$work/out.ljp" >> "$work/$mode"
    done
    i=$((i + 1))
  done
  for mode in plain every native sample; do
    echo "$(median $mode 1) $(median $mode 2) $(median $mode 3)" \
      "$(median $mode 4) $(median $mode 5)"
  done | awk -v name=$workload -v instructions="$(instructions $workload)" '
      { s[NR] = $1; gc[NR] = $2; events[NR] = $3; bytes[NR] = $4; cpu[NR] = $5 }
      END {
        n = events[2] ? events[2] : 1
        native = events[3] ? events[3] : 1
        runs = gc[1] ? gc[1] : 1
        printf "%-20s %8.3fs | %6.2fx %6.2fx %9.1f %8d %7.2f %7.3f | %9.1f | %7.3fx %6.3fx %6.3fx %7.3f\n",
          name, s[1], s[2] / s[1], cpu[2] / cpu[1],
          (cpu[2] - cpu[1]) * 1e9 / n, events[2], bytes[2] / n, gc[2] / runs,
          (cpu[3] - cpu[1]) * 1e9 / native, s[4] / s[1], cpu[4] / cpu[1],
          instructions, gc[4] / runs
      }'
done
printf '%-20s %9s | %7s %7s %9s %8s %7s %7s | %9s | %8s %7s %7s %7s\n' 'target' '' \
  '<= 2x *' '' '<= 60' '' '<= 8' '+-0.02' '<= 200' '<= 1.02x' '' '' '+-0.02'
echo '* churn, with the compiler on. Collections of objects and callbacks are few:'
echo '  one more or less is more than two in a hundred.'
