#!/bin/sh
# What grows with what: series of measurements with more and more work. Each prints a
# table, and how the figure grows: the factor that twice the work makes at the end of the
# series, and the power of the work that fits the whole series. With work^1.00, twice the work
# costs twice as much; with work^0.00, the work does not matter. The brackets hold the
# quartiles of the rounds. Additional CPU time is measured in pairs of rounds, with and
# without a session; there the brackets hold the median minus and plus its standard error.
#
#   BUILD_DIR=build bench/growth.sh [SERIES]...
#
# LJP_BENCH_PLOTS: a folder for a picture of each series (SVG), made by plot.py.
#
# rate, sampled_memory: the additional CPU time of the whole process. Other figures: see
# each title.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD_DIR:-build}")
work=$(mktemp -d "${TMPDIR:-/tmp}/growth.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

lua() {
  "$build/bin/luajit" bench/growth.lua "$1" "$work/file.ljp"
}
# best COMMAND...: the CPU seconds of a command, the best of three.
best() {
  for _ in 1 2 3; do
    "$build/bin/luajit" bench/growth_time.lua "$@"
  done | sort -g | head -n 1
}
reports() {
  for million in 1 2 4 8 16; do
    "$build/bench/large_profile" ${million}000000 100000 > "$work/samples.ljp"
    echo "$(($(wc -c < "$work/samples.ljp") >> 20)) $(best "$build/bin/ljprof" report \
      "$work/samples.ljp")"
  done
}
heaps() {
  for thousands in 125 250 500 1000 2000 4000; do
    "$build/bin/luajit" bench/heap.lua walk ${thousands}000 "$work/heap.ljp" > /dev/null
    echo "$thousands $(best "$build/bin/ljprof" heap "$work/heap.ljp")"
  done
}
# series NAME TITLE X Y COMMAND...
series() {
  name=$1 title=$2 x=$3 y=$4
  shift 4
  case " $wanted " in
  *" $name "* | "  ") ;;
  *) return 0 ;;
  esac
  "$@" > "$work/$name"
  printf '\n%s\n' "$title"
  awk -v x="$x" -v y="$y" '
    BEGIN { printf "%12s  %14s  (spread)\n", x, y }
    {
      printf "%12s  %14s", $1, $2
      if (NF > 2)
        printf "  (%s to %s)", $3, $4
      print ""
      least = NF > 2 && $3 < least ? $3 : least
      if ($2 <= 0)
        least = -1
      if (least < 0)
        next
      n++; a = log($1); b = log($2)
      sa += a; sb += b; saa += a * a; sab += a * b
      step = a - last_a; rise = b - last_b; last_a = a; last_b = b
    }
    END {
      if (least < 0)
        print "the spread is larger than the least costs, so no growth is stated"
      else if (n > 2)
        printf "the last doubling: x%.2f; over all: work^%.2f\n",
          exp(rise * log(2) / step), (n * sab - sa * sb) / (n * saa - sa * sa)
    }' "$work/$name"
  [ -z "${LJP_BENCH_PLOTS:-}" ] ||
    bench/plot.py "$title" "$x" "$y" < "$work/$name" > "$LJP_BENCH_PLOTS/$name.svg"
}

wanted=$*
known='rate sampled_memory depth file reports pause walk heaps'
for name in $wanted; do
  case " $known " in
  *" $name "*) ;;
  *)
    echo "growth.sh: there is no series '$name': $known" >&2
    exit 2
    ;;
  esac
done
series rate 'CPU samples: additional CPU time, by rate' 'samples/s' share lua rate
series sampled_memory 'Sampled memory: additional CPU time, by distance of samples' \
  KiB share lua sampled_memory
series depth 'CPU samples: time in the handler, by depth of the Lua stack' frames ns \
  lua depth
series file 'CPU samples: size of the file, by samples of the same stacks' samples bytes \
  lua file
series reports 'ljprof report: CPU time, by size of the file' MiB seconds reports
series pause 'Heap snapshot: pause of the program, by size of its heap' MiB ms lua pause
series walk 'Heap snapshot: time of the walk, by objects' 'thousands' seconds lua walk
series heaps 'ljprof heap: CPU time, by objects' thousands seconds heaps
