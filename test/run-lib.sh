# shellcheck shell=sh disable=SC2154 # build() in run sets dir
# Verbs of run for long tests and benchmarks, and what other tests need; run reads this
# file.

# verb_fuzz [SECONDS [NAME...]]
verb_fuzz() {
  seconds=${LJPROF_FUZZ_SECONDS:-60}
  case ${1:-} in
  [0-9]*)
    seconds=$1
    shift
    ;;
  esac
  deps build fuzz
  build fuzz fuzz 'fuzz_[a-z0-9_]*'
  LJPROF_FUZZ_SECONDS=$seconds test/fuzz/run.sh "$dir" "$seconds" "$@"
}

# verb_soak [HOURS [SEED]]
verb_soak() {
  hours=${1:-0.334}
  seed=${2:-$(date +%s)}
  case $hours in
  *[!0-9.]* | *.*.* | . | '') misuse "soak takes a number of hours, and there is '$hours'" ;;
  esac
  case $seed in
  *[!0-9]* | '') misuse "soak's seed is a number, and there is '$seed'" ;;
  esac
  [ $# -le 2 ] || misuse "soak takes HOURS and SEED, and there is '$3', too"
  deps build test
  build asan asan
  asan_dir=$dir
  build release ''
  test/soak/soak.py "$(echo "$hours" | awk '{ print int($1 * 3600) }')" "$seed" \
    "$dir" "$asan_dir"
}

# verb_coverage [REGEX]: of the tests with these names only. Tests that measure time may
# fail in such a build, so their failures are only told.
verb_coverage() {
  [ $# -le 1 ] || misuse "coverage takes one regular expression, and there is '$2', too"
  deps build test coverage
  build coverage coverage
  find "$dir" -name '*.gcda' -delete
  say "tests that count lines"
  # What a process cannot write, since it has changed its root, is not its output.
  failed=
  GCOV_ERROR_FILE=/dev/null tests "$dir" -j2 -R "${1:-^(unit/|e2e/|vm/.*/hot\$)}" ||
    failed=1
  test/coverage.sh "$dir"
  [ -z "$failed" ] || die "some tests failed, so the figures may be too low"
}

# verb_mutate [COUNT [SEED [AREA...]]]: in a copy of what is committed, which is built
# twice: the second build counts lines, to find the tests that run a line.
verb_mutate() {
  count=${1:-200}
  seed=${2:-$(date +%s)}
  shift $(($# < 2 ? $# : 2))
  case $count:$seed in
  *[!0-9:]* | :* | *:) misuse "mutate takes COUNT and SEED, two numbers" ;;
  esac
  deps build test
  tree=build-mutants/tree
  mkdir -p "$tree"
  # As new files: a run that was ended may have left a change in what is built.
  git archive HEAD | tar -C "$tree" -xmf -
  LJPROF_CACHE=$(realpath "${LJPROF_CACHE:-.cache}")
  export LJPROF_CACHE
  (
    cd "$tree" || exit
    build release ''
    build coverage coverage
  )
  test/mutate.py "$tree" "$tree/build" "$tree/build-coverage" "$count" "$seed" "$@"
}

# engine_programs: finds or builds the servers of the tests with real engines, and names
# them to the tests. If Parca cannot be built, the end of the run says so.
engine_programs() {
  folder=${LJPROF_CACHE:-.cache}/engines
  test/engines/make-engines --look "$folder" > /dev/null 2>&1 || {
    deps engines
    command -v go > /dev/null || deps pprof
  }
  say "Pyroscope and Parca"
  list=$(test/engines/make-engines "$folder") ||
    die "the tests with engines need Pyroscope, see the line above"
  LJPROF_PYROSCOPE=$(echo "$list" | sed -n 's/^pyroscope //p')
  LJPROF_PARCA=$(echo "$list" | sed -n 's/^parca //p')
  LJPROF_NO_PARCA=
  case $LJPROF_PARCA in
  '- '*)
    LJPROF_NO_PARCA=${LJPROF_PARCA#- } LJPROF_PARCA=
    untested="$untested==> Parca was not tested: $LJPROF_NO_PARCA
"
    ;;
  esac
  export LJPROF_PYROSCOPE LJPROF_PARCA LJPROF_NO_PARCA
}

# -- Benchmarks ------------------------------------------------------------------

# bench_names: a benchmark is an executable bench/NAME.sh, or the program
# bench_NAME in the build folder.
bench_names() {
  for f in bench/*.sh "$dir"/bin/bench_*; do
    [ -x "$f" ] || continue
    f=${f##*/}
    f=${f#bench_}
    echo "${f%.sh}"
  done | sort -u
}

# bench_one NAME [ARGUMENT...]
bench_one() {
  name=$1
  shift
  say "bench $name"
  [ "$name" != page ] || browser_parts
  if [ -x "bench/$name.sh" ]; then
    BUILD_DIR=$dir "bench/$name.sh" "$@"
  elif [ -x "$dir/bin/bench_$name" ]; then
    "$dir/bin/bench_$name" "$@"
  else
    die "no benchmark is called '$name'; there are: $(
      bench_names | tr '\n' ' ')"
  fi
}

# bench_all [NAME...]: all outputs, and the pictures of growth, become a page of the docs.
# With names: only these are measured again.
bench_all() {
  logs=$dir/bench-outputs
  [ $# -gt 0 ] || rm -rf "$logs"
  mkdir -p "$logs/plots"
  export LJP_BENCH_PLOTS="$PWD/$logs/plots"
  for one in "$@"; do
    bench_names | grep -qxF -e "$one" ||
      die "no benchmark is called '$one'; there are: $(bench_names | tr '\n' ' ')"
  done
  # shellcheck disable=SC2046 # a name has no blanks
  [ $# -gt 0 ] || set -- $(bench_names)
  for one in "$@"; do
    code=0
    commit=$(bench/evidence.py --commit)
    bench_one "$one" > "$logs/$one.out" 2>&1 || code=$?
    cat "$logs/$one.out"
    [ "$code" = 0 ] || die "bench $one ended with $code"
    # The page has no paths of this machine.
    sed -e '/^==> /d' -e "s,$PWD/,,g" -e "s,${TMPDIR:-/tmp}/[^ /]*/,,g" \
      "$logs/$one.out" > "$logs/$one.txt"
    echo "$commit" > "$logs/$one.commit"
  done
  # shellcheck disable=SC2046
  bench/evidence.py "$logs" $(bench_names)
}

verb_bench() {
  deps build bench
  build release ''
  case ${1:-} in
  '') echo "benchmarks: $(bench_names | tr '\n' ' ')" ;;
  all)
    shift
    bench_all "$@"
    ;;
  *) bench_one "$@" ;;
  esac
}
