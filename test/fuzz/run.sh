#!/bin/sh
# Runs libFuzzer targets: run.sh BUILD_DIR SECONDS [NAME...]
#
# Runs each target bin/fuzz_NAME (all of them, or only the named ones) for
# SECONDS, or for LJPROF_FUZZ_SECONDS if that is set. The kept corpus
# test/fuzz/corpus/NAME is where it starts. New inputs stay in
# BUILD_DIR/corpus/NAME, inputs that fail in BUILD_DIR/findings/. LJPROF_FUZZ_SEED
# is the seed of the random numbers; without it, or with 0, each run tries other
# inputs. Exit code 1 if a target failed or there is none.
set -eu

[ $# -ge 2 ] || {
  echo "usage: run.sh BUILD_DIR SECONDS [NAME...]" >&2
  exit 2
}
build=$1 seconds=${LJPROF_FUZZ_SECONDS:-$2}
shift 2
kept=$(cd "$(dirname "$0")" && pwd)/corpus
if [ $# -eq 0 ]; then
  for target in "$build"/bin/fuzz_*; do
    [ -x "$target" ] && set -- "$@" "${target##*/fuzz_}"
  done
fi
[ $# -gt 0 ] || {
  echo "run.sh: no fuzz targets in $build/bin" >&2
  exit 1
}

failed=
for name in "$@"; do
  target=$build/bin/fuzz_$name
  learned=$build/corpus/$name
  findings=$build/findings
  [ -x "$target" ] || {
    echo "run.sh: no fuzz target $target" >&2
    exit 1
  }
  mkdir -p "$learned" "$findings"
  seeds=
  [ ! -d "$kept/$name" ] || seeds=$kept/$name
  echo "==> fuzzing $name for $seconds s"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=16384 -print_final_stats=1 -seed="${LJPROF_FUZZ_SEED:-0}" \
    -artifact_prefix="$findings/$name-" \
    "$learned" ${seeds:+"$seeds"} > "$findings/$name.log" 2>&1 || {
    tail -n 40 "$findings/$name.log"
    echo "run.sh: $name failed; the input is in $findings" >&2
    failed=1
    continue
  }
  grep -E '^(Done|stat::)' "$findings/$name.log"
done
[ -z "$failed" ]
