#!/bin/sh
# Measures heap snapshots: for how long the program stops, how fast the walk is, and
# what `ljprof heap` takes, with the targets.
# Usage: heap.sh [OBJECTS]: of the heap that is analyzed (10000000).
# pause: the call without the walk, which a copy of the process does; the median, the
# least and the most of fifteen. The machine's noise is in the most. Beside it a bare
# clone() of the same process, of which most of the pause consists.
# walk: the best of three, with encoding and writing.
# file: bytes without compression, of references in random order, the worst there are; an
# object is that of small arrays.
# analyzer: CPU time and peak memory of the command, with the loading of the file.
set -eu
build=${BUILD_DIR:-build}
here=$(dirname "$0")
objects=${1:-10000000}
work=$(mktemp -d "${TMPDIR:-/tmp}/heap.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

run() {
  "$build/bin/luajit" "$here/heap.lua" "$@"
}

for size in 50 1024; do
  # shellcheck disable=SC2046 # words are wanted
  set -- $(run pause $size "$work/pause.ljp")
  target=2
  [ $size = 50 ] || target=30
  printf 'pause, heap of %4d MiB, %d MiB resident: %.2f ms (%.2f to %.2f); ' \
    $size "${7%.*}" "$2" "$1" "$3"
  printf 'a bare clone: %.2f ms (%.2f to %.2f); target <= %d ms\n' \
    "$5" "$4" "$6" $target
  rm -f "$work/pause.ljp"
done

run walk "$objects" "$work/heap.ljp" > "$work/walk"
awk '{ printf "walk: %.1f million objects, %.1f million references: %.2f s, %.1f " \
  "million objects/s; target >= 5\n", $1 / 1e6, $2 / 1e6, $3, $1 / $3 / 1e6 }' "$work/walk"
awk '{ printf "file: %.1f bytes an object with its %.1f references; target <= %.1f\n",
  $4 / $1, $2 / $1, 12 + 4 * $2 / $1 }' "$work/walk"
run bytes 200000 "$work/bytes.ljp" > "$work/bytes"
awk '{ printf "file: %.1f bytes an object, target <= 12; %.1f bytes a reference, " \
  "target <= 4\n", $1, $2 }' "$work/bytes"
for view in '' --dominators --strings; do
  # shellcheck disable=SC2086 # no option is no word
  run analyze "$build/bin/ljprof" "$work/heap.ljp" $view > "$work/analyzed"
  read -r count _ < "$work/walk"
  awk -v count="$count" -v view="$view" '{
    printf "ljprof heap%s: %.1f s, %.0f bytes of memory an object; target <= %.1f s, " \
      "<= 100 bytes\n", view ? " " view : "", $1, $2 / count, 15 * count / 1e7
  }' "$work/analyzed"
done
