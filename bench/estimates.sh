#!/bin/sh
# Whether samples of memory tell the truth: sessions of the same script, sampled, beside
# one that records every event. For each place and each figure of a report, the mean of
# the estimates must be the truth, and 95 % of the bounds must hold.
# Usage: estimates.sh [RUNS]: sampled sessions for each distance of samples (200)
set -eu
build=${BUILD_DIR:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/estimates.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for distance in 8192 2048; do
  echo "One sample per $distance bytes:"
  code=0
  "$build/bin/mem_estimates" test/mem/sites.lua "$work/estimates.ljp" "${1:-200}" \
    $distance > "$work/all" || code=$?
  # A line has two estimates: ... OFF % (by chance LIMIT %) ...
  awk '
    {
      for (i = 1; i <= NF; i++)
        if ($i == "chance" && $(i + 1) <= 2) {
          off = $(i - 3) < 0 ? -$(i - 3) : $(i - 3) + 0
          n++
          worst = off > worst ? off : worst
        }
    }
    END {
      printf "  %d means are known to within 2 %% after this many runs; the worst is %.2f %% off\n",
        n, worst
    }' "$work/all"
  tail -n 1 "$work/all" | sed 's/^/  /'
  [ $code = 0 ] || {
    grep WRONG "$work/all" || :
    exit $code
  }
done
