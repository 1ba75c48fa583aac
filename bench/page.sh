#!/bin/bash
# Measures how long a flame graph page of a million samples and 100,000 distinct
# stacks takes to load and to respond, in headless Chromium.
set -eu
BUILD_DIR=$(realpath "$BUILD_DIR")
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-page.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
stream=$scratch/large.ljp
page=$scratch/large.html
"$BUILD_DIR/bench/large_profile" 1000000 100000 > "$stream"
echo "stream of $(wc -c < "$stream") bytes; ljprof flame, in seconds:"
TIMEFORMAT='%R real, %U user'
time "$BUILD_DIR/bin/ljprof" flame "$stream" -o "$page"
echo "page of $(wc -c < "$page") bytes"
"$root/test/browser/run.sh" bench.mjs "$page" "${1:-5}"
