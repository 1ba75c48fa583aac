# shellcheck shell=sh
# What off.sh and trace.sh share: they run the patched library beside the
# unpatched one, in runs that differ in nothing but the library. $bench is the
# benchmark's name.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD_DIR:-build}")
bench=${bench:?}

die() {
  echo "$bench: error: $*" >&2
  exit 1
}

tmp=$(mktemp -d "${TMPDIR:-/tmp}/$bench.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# two_sides: puts the command and the library into $tmp/p (patched) and $tmp/u
# (unpatched), since paths of different length would make runs differ.
two_sides() {
  command -v valgrind > /dev/null || die "valgrind is missing: ./run deps"
  [ -x "$build/unpatched/bin/luajit" ] ||
    die "there is no unpatched luajit in $build (-DLJPROF_UNPATCHED=ON)"
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
}

# evenly VARIABLES COMMAND...: runs a command without address randomisation,
# with bench/even_start.c preloaded. VARIABLES (words NAME=VALUE) are the rest
# of its environment.
evenly() {
  variables=$1
  shift
  # shellcheck disable=SC2086 # words are wanted
  setarch "$(uname -m)" -R env -i LD_PRELOAD="$tmp/even_start.so" \
    $variables "$@"
}

# instructions VARIABLES COMMAND...: prints how many instructions a run takes.
instructions() {
  variables=$1
  shift
  failed=
  counted=$(evenly "$variables" valgrind --tool=cachegrind --cache-sim=no \
    --branch-sim=no --smc-check=all-non-file --cachegrind-out-file=/dev/null \
    "$@" 2>&1 > /dev/null) || failed=1
  count=$(echo "$counted" | sed -n 's/.*I *refs: *//p' | tr -d ,)
  if [ -n "$failed" ] || [ -z "$count" ]; then
    echo "$counted" | grep -v '^[=-][=-]' | head -n 5 >&2
    return 1
  fi
  echo "$count"
}
