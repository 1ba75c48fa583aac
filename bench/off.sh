#!/bin/sh
# What the patched LuaJIT costs while no profiler runs: patched against
# unpatched, same base and flags.
#
#   BUILD_DIR=build bench/off.sh [--as-is] [NAME...]   only scripts of these names
#
# Instructions are counted by valgrind in runs that differ in nothing but the
# library: no address randomisation, a fixed environment, equal path lengths, and
# bench/even_start.c preloaded, which gives both the same random seed, the same
# addresses and the same heap to start from. That the heaps are the same is checked
# before anything is measured. Start-up is taken off: a run of the same script
# with size 0. Each figure is the mean of the ratios for several seeds (hash
# seed, shape of the heap), and "+-" its standard error: where that is larger than
# the distance to the target, the verdict is "unclear", and more seeds
# (LJP_BENCH_SEEDS) decide. CPU time is paired: the median of the ratios of
# alternating runs, and half the distance of their quartiles.
#
# With --as-is the unpatched library starts without "misc". The few strings and
# tables that the patched one has more then move string ids, and with them the
# order in hash tables, the random numbers drawn, and the phase of the GC: each run
# gets up to two percent dearer or cheaper, by luck, as it does from one hash
# seed to the next. So that takes many seeds (10 by default) to say anything.
#
# One accident is left, in "throw": errors are thrown by libgcc, and how many
# steps its binary search takes to a function depends on how many others there
# are. To lj_err_throw it is 5 steps in the unpatched library and 11 in the
# patched one, over all functions 9.4 and 9.6.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD_DIR:-build}")
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
cp "$build/bench/even_start.so" "$tmp/"
: >"$tmp/empty.lua"

# layout SEED: a heap of another shape for each seed. Where bytecode lies decides
# which hot counters collide and so what is compiled when.
layout()
{
  echo "keep = {} for i = 1, $1 * 37 % 101 do keep[i] = ('x'):rep(i * $1 % 211) end"
}

# count SIDE SEED OPTION SCRIPT SIZE: instructions of one run.
count()
{
  out=$(setarch "$(uname -m)" -R env -i \
    LD_PRELOAD="$tmp/even_start.so" LJP_BENCH_EVEN=$even LJP_BENCH_SEED="$2" \
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

# state SIDE: what a script sees of the heap that it starts with: its size, where
# new objects lie, and the ids of new strings (by the order of a hash table).
cat >"$tmp/state.lua" <<'END'
local t, order = {}, {}
for i = 1, 300 do t["key" .. i] = {} end
for k, v in pairs(t) do order[#order + 1] = k .. tostring(v) end
print(collectgarbage("count"), table.concat(order, " "))
END
state()
{
  setarch "$(uname -m)" -R env -i LD_PRELOAD="$tmp/even_start.so" \
    LJP_BENCH_EVEN=$even LJP_BENCH_SEED=1 valgrind -q --tool=none \
    --smc-check=all-non-file "$tmp/$1/bin/luajit" "$tmp/state.lua" ||
    die "a run failed"
}

# counts OPTION SCRIPT SIZE: a line "patched unpatched" for each seed.
counts()
{
  seed=1
  while [ "$seed" -le "$seeds" ]; do
    count p "$seed" "$@" >"$tmp/n.p" &
    other=$!
    u=$(count u "$seed" "$@") || die "a run failed"
    wait $other || die "a run failed"
    echo "$(cat "$tmp/n.p") $u"
    seed=$((seed + 1))
  done
}

# Sizes: 10 to 30 million instructions a run. Compiled code needs more passes
# until the compiler's own share is small; "compile" and "traces"
# are about that share.
size_of() # OPTION NAME
{
  case $2 in
  closures | ipairs | rawget | tables) size=4 ;;
  methods | upvalue | libm | next) size=3 ;;
  coroutines) size=20 ;;
  compile | traces) size=10 ;;
  recursion | callbacks | numeric) size=6 ;;
  *) size=9 ;;
  esac
  case $1:$2 in
  -jon:methods | -jon:recursion | -jon:rawget) size=$((size * 4)) ;;
  -jon:tables) size=$((size * 3)) ;;
  -jon:numeric) size=$((size * 24)) ;;
  -jon:len_* | -jon:next | -jon:ipairs | -jon:upvalue) size=$((size * 6)) ;;
  esac
  echo $size
}

# The same run twice must count the same, or the figures mean nothing.
first=$(count u 1 -joff bench/workloads/recursion.lua 2)
again=$(count u 1 -joff bench/workloads/recursion.lua 2)
echo "Repeatable: two runs count $first and $again instructions."
if [ $even = 1 ]; then
  [ "$(state p)" = "$(state u)" ] || die "the two libraries do not start with" \
    "the same heap: are the names in misc those of a build with -DLJPROF=OFF?"
  echo "Even: both start with the same heap."
else
  echo "As is: the heaps differ by misc, so single runs differ by luck."
fi

# shellcheck disable=SC2016 # awk's own variables
mean='{ p += $1; u += $2 } END { printf "%.0f %.0f", p / NR, u / NR }'
counts -joff "$tmp/empty.lua" 0 | awk "$mean" | awk '{
  printf "Start-up with an empty script: %d instructions, unpatched %d (%+d)\n",
         $1, $2, $1 - $2 }'
printf '\n%-11s %-4s %8s %7s %8s %7s %7s\n' script JIT instr. +- CPU +- target

# pair ROUNDS SIDE OPTION SCRIPT SIZE: CPU time of this side and the unpatched,
# with one seed, so that both make the same choices of traces.
pair()
{
  setarch "$(uname -m)" -R env -i LD_PRELOAD="$tmp/even_start.so" \
    LJP_BENCH_EVEN=$even LJP_BENCH_SEED=3 "$build/bench/bench_pair" "$1" \
    "$tmp/$2/bin/luajit" "$tmp/u/bin/luajit" "$3" "$4" "$5"
}

# measure KIND SCRIPT OPTION TARGET
measure()
{
  name=$(basename "$2" .lua)
  size=$(size_of "$3" "$name")
  # More collections, so that the phase of the last one weighs less.
  [ $even = 1 ] || size=$((size * 4))
  # So long that start-up (some 0.1 ms more) does not count: 0.2 seconds a run.
  long=$(pair 1 u "$3" "$2" $((size * 12)) | awk -v n=$((size * 12)) '{
    print int(n * ($3 < 0.2 ? 0.2 / ($3 + 0.001) : 1)) + 1 }')
  cpu=$(pair "$rounds" p "$3" "$2" "$long") || die "a run failed"
  counts "$3" "$2" 0 >"$tmp/empty"
  counts "$3" "$2" "$size" | paste -d ' ' - "$tmp/empty" >"$tmp/counts"
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
  */compile.lua | */traces.lua) kind=compiling target=$target_compiling ;;
  *) kind=micro target=$target_micro ;;
  esac
  measure $kind "$s" -joff $target
  measure $kind "$s" -jon $target
done
[ -s "$tmp/all" ] || die "no script has that name: $*"

echo
for kind in workload micro compiling; do
  grep -q " $kind " "$tmp/all" || continue
  grep " $kind " "$tmp/all" | sort -rn | head -n 1 | awk -v kind=$kind '{
    printf "Worst %s in instructions: %.4f +- %.4f (%s, JIT %s), target %s\n",
           kind, $1, $6, $3, $4, $5 }'
done
