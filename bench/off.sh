#!/bin/sh
# What the patched LuaJIT costs while no profiler runs: the patched library
# against the unpatched one, of the same base and flags.
#
#   BUILD_DIR=build bench/off.sh [--as-is] [NAME...]   only these scripts;
#                                                      "memory": the memory
#
# Valgrind counts the instructions of runs that differ in nothing but the
# library: no address randomisation, a fixed environment, paths of equal length,
# and bench/even_start.c preloaded, which gives both sides the same random seed,
# the same addresses and the same heap to start from. The benchmark checks first
# that the heaps are the same. A run of the same script with size 0 is
# subtracted, so that start-up does not count. Each figure is the mean of the
# ratios for several seeds (a seed decides the hash seed and the shape of the
# heap); "+-" is its standard error. Where that error is larger than the
# distance to the target, the verdict is "unclear", and more seeds
# (LJP_BENCH_SEEDS) decide. CPU time comes from alternating runs: the median of
# the ratios of pairs, and half the distance between their quartiles.
#
# With --as-is the unpatched library starts without "misc". The few additional
# strings and tables of the patched library then change string ids, and with
# them the order in hash tables, the random numbers drawn, and the phase of the
# collector. Each run gets up to two percent faster or slower by chance, as it
# does from one hash seed to the next, so --as-is needs many seeds (10 by
# default) to show anything.
#
# One accident remains, in "throw": libgcc throws the errors, and the number of
# steps that its binary search takes to find a function depends on how many
# other functions there are. Finding lj_err_throw takes 5 steps in the unpatched
# library and 11 in the patched one; the means over all functions are 9.4 and
# 9.6.
bench=off
. "$(dirname "$0")/lib.sh"
even=1
[ "${1:-}" != --as-is ] || {
  even=0
  shift
}
seeds=${LJP_BENCH_SEEDS:-$([ $even = 1 ] && echo 3 || echo 10)}
rounds=${LJP_BENCH_ROUNDS:-7}
target_workload=1.002
target_micro=1.030
target_compiling=1.020
[ -x "$build/bench/bench_pair" ] || die "$build is not built: ./run build"
two_sides
: > "$tmp/empty.lua"
: > "$tmp/all"

# layout SEED: a chunk that gives the heap another shape for each seed. The
# addresses of bytecode decide which hot counters collide, and so what is
# compiled when.
layout() {
  echo "keep = {} for i = 1, $1 * 37 % 101 do keep[i] = ('x'):rep(i * $1 % 211) end"
}

# count SIDE SEED OPTION SCRIPT SIZE: instructions of one run.
count() {
  instructions "LJP_BENCH_EVEN=$even LJP_BENCH_SEED=$2" \
    "$tmp/$1/bin/luajit" "$3" -e "$(layout "$2")" "$4" "$5"
}

# state SIDE: what a script sees of the heap that it starts with: its size, the
# addresses of new objects, and the ids of new strings (which decide the order
# of a hash table).
cat > "$tmp/state.lua" <<'END'
local t, order = {}, {}
for i = 1, 300 do t["key" .. i] = {} end
for k, v in pairs(t) do order[#order + 1] = k .. tostring(v) end
print(collectgarbage("count"), table.concat(order, " "))
END
state() {
  evenly "LJP_BENCH_EVEN=$even LJP_BENCH_SEED=1" valgrind -q --tool=none \
    --smc-check=all-non-file "$tmp/$1/bin/luajit" "$tmp/state.lua" ||
    die "a run failed"
}

# counts OPTION SCRIPT SIZE: a line "patched unpatched" for each seed.
counts() {
  seed=1
  while [ "$seed" -le "$seeds" ]; do
    count p "$seed" "$@" > "$tmp/n.p" &
    other=$!
    u=$(count u "$seed" "$@") || die "a run failed"
    wait $other || die "a run failed"
    echo "$(cat "$tmp/n.p") $u"
    seed=$((seed + 1))
  done
}

# size_of OPTION NAME: a size that makes 10 to 60 million instructions a run.
# Compiled code needs more passes to make the compiler's own share small;
# "compile" and "traces" measure that share. "recursion" has many traces: of 15
# million instructions, the compiler's additional ones would be 0.2 to 0.3 %.
size_of() {
  case $2 in
  closures | ipairs | rawget | tables) size=4 ;;
  methods | upvalue | libm | next) size=3 ;;
  coroutines) size=20 ;;
  compile | traces) size=10 ;;
  recursion | callbacks | numeric) size=6 ;;
  *) size=9 ;;
  esac
  case $1:$2 in
  -jon:recursion) size=$((size * 16)) ;;
  -jon:methods | -jon:rawget) size=$((size * 4)) ;;
  -jon:tables) size=$((size * 3)) ;;
  -jon:numeric) size=$((size * 24)) ;;
  -jon:len_* | -jon:next | -jon:ipairs | -jon:upvalue) size=$((size * 6)) ;;
  esac
  echo $size
}

# Two equal runs must have equal counts, or the figures mean nothing.
first=$(count u 1 -joff bench/workloads/recursion.lua 2)
again=$(count u 1 -joff bench/workloads/recursion.lua 2)
echo "Repeatable: two runs count $first and $again instructions."
if [ $even = 1 ]; then
  [ "$(state p)" = "$(state u)" ] || die "the two libraries do not start with" \
    "the same heap: does misc have the same names as in a build with" \
    "-DLJPROF=OFF?"
  echo "Even: both start with the same heap."
else
  echo "As is: the heaps differ by misc, so single runs differ by chance."
fi

# shellcheck disable=SC2016 # awk's own variables
mean='{ p += $1; u += $2 } END { printf "%.0f %.0f", p / NR, u / NR }'
counts -joff "$tmp/empty.lua" 0 | awk "$mean" | awk '{
  printf "Start-up with an empty script: %d instructions, unpatched %d (%+d)\n",
         $1, $2, $1 - $2 }'
printf '\n%-11s %-4s %8s %7s %8s %7s %7s\n' script JIT instr. +- CPU +- target

# pair ROUNDS SIDE OPTION SCRIPT SIZE: the CPU times of this side and of the
# unpatched one, with one seed, so that both compile the same traces.
pair() {
  evenly "LJP_BENCH_EVEN=$even LJP_BENCH_SEED=3" "$build/bench/bench_pair" \
    "$1" "$tmp/$2/bin/luajit" "$tmp/u/bin/luajit" "$3" "$4" "$5"
}

# measure KIND SCRIPT OPTION TARGET
measure() {
  name=$(basename "$2" .lua)
  size=$(size_of "$3" "$name")
  # More collections give the phase of the last one less weight.
  [ $even = 1 ] || size=$((size * 4))
  # Runs of 0.2 s or more, so that start-up (0.1 ms more) does not matter.
  long=$(pair 1 u "$3" "$2" $((size * 12)) | awk -v n=$((size * 12)) '{
    print int(n * ($3 < 0.2 ? 0.2 / ($3 + 0.001) : 1)) + 1 }')
  cpu=$(pair "$rounds" p "$3" "$2" "$long") || die "a run failed"
  counts "$3" "$2" 0 > "$tmp/empty"
  counts "$3" "$2" "$size" | paste -d ' ' - "$tmp/empty" > "$tmp/counts"
  awk -v kind="$1" -v name="$name" -v jit="${3#-j}" -v cpu="$cpu" \
    -v target="$4" -v all="$tmp/all" '
    BEGIN { split(cpu, c) }
    { r = ($1 - $3) / ($2 - $4); sum += r; squares += r * r }
    END {
      ratio = sum / NR
      var = squares / NR - ratio * ratio
      err = NR > 1 && var > 0 ? sqrt(var / (NR - 1)) : 0
      if (ratio > target)
        verdict = ratio - 2 * err > target ? "ABOVE" : "unclear"
      else
        verdict = ratio + 2 * err > target ? "ok, but see +-" : "ok"
      printf "%-11s %-4s %8.4f %7.4f %8.4f %7.4f %7s  %s\n",
             name, jit, ratio, err, c[1], c[4], target, verdict
      print ratio, kind, name, jit, target, err >> all
    }' "$tmp/counts"
}

# wanted SCRIPT [NAME...]: whether the script has one of the names.
wanted() {
  script=$(basename "$1" .lua)
  shift
  [ $# -gt 0 ] || return 0
  for w in "$@"; do
    [ "$w" != "$script" ] || return 0
  done
  return 1
}

memory() {
  LD_LIBRARY_PATH=$tmp/$1/lib "$build/bench/bench_off_memory" ||
    die "bench_off_memory failed"
}

for s in bench/workloads/*.lua bench/micro/*.lua; do
  wanted "$s" "$@" || continue
  case $s in
  */workloads/*) kind=workload target=$target_workload ;;
  */compile.lua | */traces.lua) kind=compiling target=$target_compiling ;;
  *) kind=micro target=$target_micro ;;
  esac
  measure $kind "$s" -joff $target
  measure $kind "$s" -jon $target
done
wanted memory.lua "$@" && memory p > "$tmp/memory.p" && memory u > "$tmp/memory.u"
[ -s "$tmp/all" ] || [ -s "$tmp/memory.u" ] ||
  die "no script has that name: $*"

echo
for kind in workload micro compiling; do
  grep -q " $kind " "$tmp/all" || continue
  grep " $kind " "$tmp/all" | sort -rn | head -n 1 | awk -v kind=$kind '{
    printf "Worst %s in instructions: %.4f +- %.4f (%s, JIT %s), target %s\n",
           kind, $1, $6, $3, $4, $5 }'
done

# Memory of one of each, patched against unpatched: off_memory.c says what the
# columns are.
[ -s "$tmp/memory.u" ] || exit 0
echo
for side in p u; do
  lib=$tmp/$side/lib/libluajit-5.1.so.2
  tls=$(readelf -lW "$lib" | awk '$1 == "TLS" { print $6 }')
  size "$lib" | awk -v side=$side -v tls="$((${tls:-0}))" 'NR == 2 {
    printf "The library %s: %d bytes of code and constants, %d of data, " \
           "%d of zeroes, %d of each thread\n",
           side == "p" ? "patched" : "unpatched", $1, $2, $3, tls }'
done
printf '\n%-24s %18s %19s %21s\n' "bytes of one" "heap" "malloc" "resident"
paste "$tmp/memory.p" "$tmp/memory.u" | sed 1d | awk -F '\t' '{
  what = substr($1, 1, 24)
  split(substr($1, 25), p, " ")
  split(substr($2, 25), u, " ")
  printf "%s %9.1f %+8.1f %10.1f %+8.1f %11.1f %+9.1f\n", what,
         p[2], p[2] - u[2], p[3], p[3] - u[3], p[4], p[4] - u[4] }'
