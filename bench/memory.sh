#!/bin/sh
# Measures what the memory profiler costs: the slowdown, ns and bytes per event, and
# whether the collector keeps its usual pace; instructions per event; memory for each
# VM. Prints the targets below the figures.
# Usage: memory.sh [RUNS] [time|instructions|vms]...
# Each of RUNS rounds (default 5) runs a workload plain and profiled, one after the
# other, since a machine may be faster in one minute than in the next. Each figure
# is the median over the rounds, and each round is compared with its own plain run.
# Collections are summed. "+-" is half the distance between the quartiles of the rounds.
# every: wall time; cpu: CPU time of the program's own thread; process: CPU time of
# all threads, the writer's included. On a busy machine CPU time is more reliable
# than wall time, but does not include waiting for the writer.
# native: CPU time per event, with every event recorded with its C frames.
# instr.: instructions of the program's thread, counted by valgrind. This is the
# difference of two runs of different sizes, so start and end do not count. The only
# noise in these figures comes from which blocks are sampled.
# Workloads with ".off" run with the JIT compiler off.
# instructions: what the program itself takes for an allocation, a free or a
# reallocation, what a session of every event adds to its thread, and what the writer's
# thread takes. Valgrind counts, so a busy machine matters little: the writer then takes
# more or fewer rounds.
# vms: how much memory a VM takes that is made in a session, less what it takes without
# one. The mean over such VMs, since the first ones have larger rings.
set -eu
luajit=${BUILD_DIR:-build}/bin/luajit
here=$(dirname "$0")
runs=5
case ${1:-} in
[1-9]*)
  runs=$1
  shift
  ;;
esac
[ $# -gt 0 ] || set -- time instructions vms
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v valgrind > /dev/null || {
  echo "memory: error: valgrind is missing: ./run deps" >&2
  exit 1
}

count() { # WORKLOAD MODE PART: instructions of the program's thread, of others; events
  rm -f "$work"/count*
  setarch "$(uname -m)" -R env -i LJP_BENCH_SEED=7 \
    LD_PRELOAD="${BUILD_DIR:-build}/bench/even_start.so" \
    valgrind -q --tool=callgrind --separate-threads=yes \
    --callgrind-out-file="$work/count" "$luajit" "$here/memory.lua" "$1" "$2" \
    "$work/out.ljp" "$3" > "$work/printed"
  awk -v events="$(cut -f 3 "$work/printed")" '/^totals: / {
    if (FILENAME ~ /-01$/) own += $2; else other += $2
  } END { printf "%d %d %d\n", own, other, events }' "$work"/count-*
}

difference() { # WORKLOAD MODE: what count prints of a large run and of a small one
  case $1 in
    # Few collections: one more or less by chance must not matter.
    objects) echo "$(count "$1" "$2" 0.6) $(count "$1" "$2" 0.1)" ;;
    *) echo "$(count "$1" "$2" 0.1) $(count "$1" "$2" 0.0167)" ;;
  esac
}

instructions() { # WORKLOAD: the ratio of sampled to plain
  for mode in plain sample; do
    difference "$1" $mode
  done | awk '{ n[NR] = $1 - $4 } END { printf "%.3f", n[2] / n[1] }'
}

event_instructions() { # WORKLOAD: of the program, of its thread, of the writer
  for mode in plain every; do
    difference "$1" $mode
  done | awk -v name="$1" '
    { own[NR] = $1 - $4; other[NR] = $2 - $5; events = $3 - $6 }
    END {
      printf "%-15s %8.0f %8.0f %8.0f\n", name, own[1] / events,
        (own[2] - own[1]) / events, other[2] / events
    }'
}

workloads='churn closures callbacks objects coroutines churn.off sites2 sites2.off
growing growing.off sites3 sites3.off sites5 sites5.off deep deep.off requests'

measure_instructions() {
  echo
  echo 'Instructions for an event, every event recorded:'
  printf '%-15s %8s %8s %8s\n' '' program thread writer
  for workload in $workloads; do
    event_instructions "$workload"
  done
}

measure_vms() {
  echo
  echo 'Resident memory of a VM in a session, KiB:'
  for mode in every sample; do
    "$luajit" "$here/memory_vms.lua" plain > "$work/vms.plain"
    "$luajit" "$here/memory_vms.lua" $mode "$work/out.ljp" > "$work/vms.$mode"
    paste "$work/vms.$mode" "$work/vms.plain" | awk -v mode=$mode '
      { more[NR] = $1 - $2 }
      function mean(from, to,  i, sum) {
        for (i = from; i <= to; i++) sum += more[i]
        return sum / (to - from + 1)
      }
      END {
        printf "%-6s second and third VM %5.0f, next eight %5.0f, further ones %5.0f\n",
          mode, mean(2, 3), mean(4, 11), mean(20, NR)
      }'
  done
}

measure_time() {
  printf '%-12s %8s | %7s %5s %7s %7s %9s %8s %7s %6s | %9s | %8s %6s %7s %7s %6s\n' '' \
    plain every +- cpu process 'cpu ns/ev' events B/event GC 'native ns' sampled +- \
    cpu instr. GC
  for workload in $workloads; do
    instr=$(instructions "$workload")x
    i=0
    while [ $i -lt "$runs" ]; do
      for mode in plain sample every native; do
        "$luajit" "$here/memory.lua" "$workload" $mode "$work/out.ljp"
      done | paste -s -d ' ' -
      i=$((i + 1))
    done > "$work/rounds"
    awk -v name="$workload" -v instructions="$instr" '
      # memory.lua prints wall seconds, collections, events, bytes, and CPU seconds
      # of the thread and of the process. A line has these for plain, sample, every
      # and native.
      function median(a,  i, j, t) {
        for (i = 2; i <= NR; i++) {
          t = a[i]
          for (j = i - 1; j && a[j] > t; j--) a[j + 1] = a[j]
          a[j + 1] = t
        }
        return NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2
      }
      function spread(sorted) {
        return (sorted[int((NR * 3 + 3) / 4)] - sorted[int((NR + 3) / 4)]) / 2
      }
      {
        wall[NR] = $1
        sampled[NR] = $7 / $1; sampled_cpu[NR] = $11 / $5
        every[NR] = $13 / $1; every_cpu[NR] = $17 / $5
        process[NR] = $18 / $6
        ns[NR] = ($17 - $5) * 1e9 / $15; native[NR] = ($23 - $5) * 1e9 / $21
        events[NR] = $15; bytes[NR] = $16 / $15
        runs += $2; sampled_runs += $8; every_runs += $14
      }
      END {
        if (!runs) runs = 1
        every_middle = median(every); sampled_middle = median(sampled)
        printf "%-12s %7.3fs | %6.2fx %5.2f %6.2fx %6.2fx %9.1f %8d %7.2f %6.3f | %9.1f | %7.3fx %6.3f %6.3fx %7s %6.3f\n",
          name, median(wall), every_middle, spread(every), median(every_cpu),
          median(process), median(ns), median(events), median(bytes),
          every_runs / runs, median(native), sampled_middle, spread(sampled),
          median(sampled_cpu), instructions, sampled_runs / runs
      }' "$work/rounds"
  done
  printf '%-12s %8s | %7s %5s %7s %7s %9s %8s %7s %6s | %9s | %8s %6s %7s %7s %6s\n' target \
    '' '<= 2x *' '' '' '' '<= 60' '' '<= 8' '+-0.02' '<= 200' '<= 1.02x' '' '' '' \
    '+-0.02'
  echo '* churn, with the compiler on; sites2: <= 2.1x, or <= 2.3x with the compiler off.'
  echo '  One run of objects has 18 to 25 collections, so comparing their number to the'
  echo '  hundredth takes sixty rounds.'
}

for part in "$@"; do
  case $part in
  time | instructions | vms) "measure_$part" ;;
  *)
    echo "memory: error: there is no measure '$part'" >&2
    exit 2
    ;;
  esac
done
