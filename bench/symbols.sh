#!/bin/sh
# How fast the command names addresses in machine code: 100,000 addresses of our
# library (names, lines and inlined functions from DWARF) and as many of the C
# library, in one batch each, best of three runs. BUILD_DIR names the build.
set -eu
probe=${BUILD_DIR:?}/bin/symbols_probe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# places FILE: the probe's input, addresses spread evenly over .text.
places() {
  file=$(readlink -f "$1")
  id=$(readelf -nW "$file" | sed -n 's/.*Build ID: *//p')
  # shellcheck disable=SC2046 # two words are wanted
  set -- $(readelf -SW "$file" | sed -n \
    's/.* \.text  *PROGBITS  *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p')
  awk -v file="$file" -v id="$id" -v start=$((0x$1)) -v size=$((0x$2)) 'BEGIN {
    for (i = 0; i < 100000; i++)
      printf "%s\t%s\t1\t0\t%x\n", file, id, start + int(i * size / 100000) }'
}

for file in "$BUILD_DIR/lib/libluajit-5.1.so.2" \
  "$(ldd "$BUILD_DIR/bin/luajit" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')"; do
  places "$file" > "$work/places"
  best=
  for _ in 1 2 3; do
    start=$(date +%s%N)
    "$probe" < "$work/places" > "$work/names" 2> "$work/notices"
    ms=$((($(date +%s%N) - start) / 1000000))
    [ -n "$best" ] && [ "$best" -le "$ms" ] || best=$ms
  done
  echo "${file##*/}: $(sort -u "$work/places" | wc -l) addresses," \
    "$(grep -c '+0x' "$work/names" || :) without a name: $best ms"
done
