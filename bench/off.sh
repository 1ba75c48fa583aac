#!/bin/sh
# What the patched LuaJIT costs while no profiler runs: patched against
# unpatched, same base and flags.
#
#   BUILD_DIR=build bench/off.sh [NAME...]    only the scripts of these names
#
# Instructions are counted by valgrind in runs that differ in nothing else:
# no address randomisation, a fixed environment, equal path lengths, and
# LuaJIT's random seed replaced by a fixed one. Start-up is taken off: a run of
# the same script with size 0, so that what grows at some count of strings (the
# table of all strings) has grown in both. The names that the patched library adds
# move string ids and thereby the order in hash tables, which costs or saves up
# to some percent in either direction; a seed moves them too. So each figure is
# the mean of the ratios for several seeds, and "+-" its standard error: where
# that is larger than the distance to the target, the verdict is "unclear", and
# more seeds (LJP_BENCH_SEEDS) decide. CPU time is paired: the median of the
# ratios of alternating runs.
#
# One accident is left, in "throw": errors are thrown by libgcc, and how many
# steps its binary search takes to a function depends on how many others there
# are. To lj_err_throw it is 5 steps in the unpatched library and 11 in the
# patched one, over all functions 9.4 and 9.6.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD_DIR:-build}")
seeds=${LJP_BENCH_SEEDS:-10}
rounds=${LJP_BENCH_ROUNDS:-7}
target_workload=1.002
target_micro=1.030

die()
{
  echo "off: error: $*" >&2
  exit 1
}
command -v valgrind >/dev/null || die "valgrind is missing: ./run deps"
[ -x "$build/unpatched/bin/luajit" ] ||
  die "there is no unpatched luajit in $build (-DLJPROF_UNPATCHED=ON)"
[ -x "$build/bench/bench_pair" ] || die "$build is not built: ./run build"

tmp=$(mktemp -d "${TMPDIR:-/tmp}/off.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
# Two places whose paths have the same length.
for side in p u; do
  from=$build
  [ $side = p ] || from=$build/unpatched
  mkdir -p "$tmp/$side/bin" "$tmp/$side/lib"
  cp "$from/bin/luajit" "$tmp/$side/bin/"
  cp -L "$from/lib/libluajit-5.1.so.2" "$tmp/$side/lib/"
  # Each must load its own library, or the figures compare nothing.
  ldd "$tmp/$side/bin/luajit" | grep -q "$tmp/$side/bin/../lib/libluajit" ||
    die "$from/bin/luajit does not use the library beside it"
done
cp "$build/bench/fixed_random.so" "$tmp/"
: >"$tmp/empty.lua"

# layout SEED: a heap of another shape for each seed. Where bytecode lies decides
# which hot counters collide and so what is compiled when; without this, one
# accident of the two libraries would stand in all figures.
layout()
{
  echo "keep = {} for i = 1, $1 * 37 % 101 do keep[i] = ('x'):rep(i * $1 % 211) end"
}

# count SIDE SEED OPTION SCRIPT SIZE: instructions of one run.
count()
{
  out=$(setarch "$(uname -m)" -R env -i \
    LD_PRELOAD="$tmp/fixed_random.so" LJP_BENCH_SEED="$2" \
    valgrind --tool=cachegrind --cache-sim=no --branch-sim=no \
    --smc-check=all-non-file --cachegrind-out-file=/dev/null \
    "$tmp/$1/bin/luajit" "$3" -e "$(layout "$2")" "$4" "$5" 2>&1 >/dev/null) || {
    echo "$out" >&2
    return 1
  }
  n=$(echo "$out" | sed -n 's/.*I *refs: *//p' | tr -d ,)
  [ -n "$n" ] || { echo "$out" >&2; return 1; }
  echo "$n"
}

# counts SEEDS OPTION SCRIPT SIZE: a line "patched unpatched" for each seed.
counts()
{
  last=$1 seed=1
  shift
  while [ "$seed" -le "$last" ]; do
    count p "$seed" "$@" >"$tmp/n.p" &
    other=$!
    u=$(count u "$seed" "$@") || die "a run failed"
    wait $other || die "a run failed"
    echo "$(cat "$tmp/n.p") $u"
    seed=$((seed + 1))
  done
}

# Sizes: 10 to 20 million instructions a run. Compiled code needs more passes
# until the compiler's own share is small; "compile" is about that share.
size_of() # OPTION NAME
{
  case $2 in
  closures | ipairs | rawget | tables) size=4 ;;
  methods | upvalue | libm | next) size=3 ;;
  coroutines) size=20 ;;
  compile) size=10 ;;
  recursion | callbacks | numeric) size=6 ;;
  *) size=9 ;;
  esac
  case $1:$2 in
  -jon:methods | -jon:numeric | -jon:recursion | -jon:rawget) size=$((size * 4)) ;;
  -jon:len_* | -jon:next | -jon:ipairs | -jon:upvalue) size=$((size * 6)) ;;
  esac
  echo $size
}

# The same run twice must count the same, or the figures mean nothing.
first=$(count u 1 -joff bench/workloads/recursion.lua 2)
again=$(count u 1 -joff bench/workloads/recursion.lua 2)
echo "Repeatable: two runs count $first and $again instructions."

# shellcheck disable=SC2016 # awk's own variables
mean='{ p += $1; u += $2 } END { printf "%.0f %.0f", p / NR, u / NR }'
counts "$seeds" -joff "$tmp/empty.lua" 0 | awk "$mean" | awk '{
  printf "Start-up with an empty script: %d instructions, unpatched %d (%+d)\n",
         $1, $2, $1 - $2 }'
printf '\n%-11s %-4s %8s %7s %8s %7s\n' script JIT instr. +- CPU target

# measure KIND SCRIPT OPTION TARGET
measure()
{
  name=$(basename "$2" .lua)
  size=$(size_of "$3" "$name")
  # With one seed, so that both make the same choices of traces.
  cpu=$(setarch "$(uname -m)" -R env -i LD_PRELOAD="$tmp/fixed_random.so" \
    LJP_BENCH_SEED=3 "$build/bench/bench_pair" "$rounds" \
    "$tmp/p/bin/luajit" "$tmp/u/bin/luajit" "$3" "$2" $((size * 12))) ||
    die "a run failed"
  empty=$(counts 2 "$3" "$2" 0 | awk "$mean")
  counts "$seeds" "$3" "$2" "$size" >"$tmp/counts"
  awk -v kind="$1" -v name="$name" -v jit="${3#-j}" -v empty="$empty" \
    -v target="$4" -v cpu="${cpu%% *}" -v all="$tmp/all" '
    BEGIN { split(empty, e) }
    { r = ($1 - e[1]) / ($2 - e[2]); sum += r; squares += r * r }
    END {
      ratio = sum / NR
      var = squares / NR - ratio * ratio
      err = NR > 1 && var > 0 ? sqrt(var / (NR - 1)) : 0
      if (target == "-")
        verdict = ""
      else if (ratio > target)
        verdict = ratio - 2 * err > target ? "ABOVE" : "unclear"
      else
        verdict = ratio + 2 * err > target ? "ok, but see +-" : "ok"
      printf "%-11s %-4s %8.4f %7.4f %8.4f %7s  %s\n",
             name, jit, ratio, err, cpu, target, verdict
      print ratio, kind, name, jit, target, err >> all
    }' "$tmp/counts"
}

# wanted SCRIPT NAMES...
wanted()
{
  script=$(basename "$1" .lua)
  shift
  [ $# -gt 0 ] || return 0
  for w in "$@"; do
    [ "$w" != "$script" ] || return 0
  done
  return 1
}

for s in bench/workloads/*.lua bench/micro/*.lua; do
  wanted "$s" "$@" || continue
  case $s in
  */workloads/*) kind=workload target=$target_workload ;;
  */compile.lua) kind=compile target=- ;;
  *) kind=micro target=$target_micro ;;
  esac
  measure $kind "$s" -joff $target
  measure $kind "$s" -jon $target
done
[ -s "$tmp/all" ] || die "no script has that name: $*"

echo
for kind in workload micro compile; do
  grep -q " $kind " "$tmp/all" || continue
  grep " $kind " "$tmp/all" | sort -rn | head -n 1 | awk -v kind=$kind '{
    printf "Worst %s in instructions: %.4f +- %.4f (%s, JIT %s), target %s\n",
           kind, $1, $6, $3, $4, $5 }'
done
