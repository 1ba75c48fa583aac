#!/bin/sh
# The guides about host programs: their commands work as printed
# (test/e2e/guides.py), with the programs installed.
. "$(dirname "$0")/lib.sh"
need nginx-core libnginx-mod-http-lua wrk neovim love python3

root=$(realpath "$(dirname "$0")/../..")
cd "$tmp"
unset LD_LIBRARY_PATH
PATH=$build/bin:$PATH
for guide in nginx neovim games; do
  python3 "$root/test/e2e/guides.py" "$root/doc/guide/$guide.md" \
    > "$guide.txt" 2>&1 || fail "$(cat "$guide.txt")"
  cat "$guide.txt"
  grep -q "^$guide.md: [0-9]* commands" "$guide.txt" || fail "$guide was not run"
done
