#!/bin/sh
# coverage.sh BUILD: after tests in a build with -DLJPROF_COVERAGE=ON, prints the share
# of lines that ran, of each folder and of all our C files, and the files below 90 %.
# BUILD/coverage.txt has each file, BUILD/coverage.html its lines.
set -eu
build=$(realpath "$1")
cd "$(dirname "$0")/.."
gcovr --root . --filter '(src|profilers|parsers|tools)/' --exclude-unreachable-branches \
  --exclude-throw-branches --gcov-ignore-parse-errors --csv "$build/coverage.csv" \
  --txt "$build/coverage.txt" --html-details "$build/coverage.html" "$build" \
  > "$build/coverage.log" 2>&1 || {
  tail -n 3 "$build/coverage.log" >&2
  exit 1
}
awk -F, '
  NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
  {
    file = $column["filename"]
    lines = $column["line_total"]
    ran = $column["line_covered"]
    folder = file
    sub("/[^/]*$", "", folder)
    all[folder] += lines
    sum[folder] += ran
    total += lines
    total_ran += ran
    if (lines && ran < lines * 0.9)
      low[file] = sprintf("%5.1f %%  %5d of %5d lines do not run", 100 * ran / lines,
        lines - ran, lines)
  }
  END {
    for (folder in all)
      if (all[folder])
        printf "%5.1f %% of %6d lines  %s\n", 100 * sum[folder] / all[folder],
          all[folder], folder | "sort -k 5"
    close("sort -k 5")
    print "below 90 %:"
    for (file in low)
      print low[file] "  " file | "sort -n"
    close("sort -n")
    printf "all: %.1f %% of %d lines (aim: 90 %%)\n", 100 * total_ran / total, total
  }' "$build/coverage.csv"
