#!/bin/sh
# run.sh FILE.mjs [ARGUMENT]...: runs tests (*.test.mjs) or a program of this
# folder with node, Debian's Chromium, and playwright-core from npm. Reports what
# is missing; ./run test --browser installs it.
set -eu
cd "$(dirname "$0")"

missing() {
  echo "test/browser: error: $1; ./run test --browser installs it" >&2
  exit 1
}

command -v node > /dev/null || missing "node is missing (Debian package nodejs)"
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] ||
  missing "chromium is missing (Debian package chromium)"
cmp -s package-lock.json node_modules/.installed ||
  missing "playwright-core is missing (npm ci in test/browser)"
case $1 in
*.test.mjs) exec node --test "$@" ;;
*) exec node "$@" ;;
esac
