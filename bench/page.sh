#!/bin/sh
# bench page: how long the flame graph page of a million samples and 100,000
# distinct stacks takes to load and to answer, in headless Chromium.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/ljprof-page.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
page=$scratch/large.html
"$root/test/browser/run.sh" assemble.mjs large "$page"
echo "page of $(wc -c < "$page") bytes"
"$root/test/browser/run.sh" bench.mjs "$page" "${1:-5}"
