#!/bin/sh
# The guides about host programs: their commands work as printed
# (test/e2e/guides.sh), with the programs installed.
. "$(dirname "$0")/lib.sh"
need nginx-core libnginx-mod-http-lua wrk neovim love python3

root=$(realpath "$(dirname "$0")/../..")
cd "$tmp"
unset LD_LIBRARY_PATH
for guide in nginx neovim games; do
  code=0
  SOURCE_DIR=$root BUILD_DIR=$build "$root/test/e2e/guides.sh" \
    "doc/guide/$guide.md" > "$guide.txt" 2>&1 || code=$?
  cat "$guide.txt"
  # Only a LuaJIT that nginx's module cannot use is a reason not to run a guide.
  [ "$code" = 0 ] || { [ "$code" = 77 ] &&
    grep -q 'not run: luajit-of-openresty not installed' "$guide.txt"; } ||
    fail "$guide: exit code $code"
done
