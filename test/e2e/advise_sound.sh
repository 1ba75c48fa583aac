#!/bin/sh
# ljprof advise on programs without the JIT compiler, and on sound programs
# (test/advise), about which it says nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/advise_lib.sh"

for name in json game parser matrix; do
  judge_pair "$name" -joff
  ok "$name without the JIT compiler: $(cat judged.txt)"
done

sound=0
for program in "$programs"/sound/*.lua; do
  name=$(basename "$program" .lua)
  record "$name" "$program"
  python3 -c 'import json, sys
f = json.load(open(sys.argv[1]))["findings"]
sys.exit(repr(f)) if f else 0' "$name.json" || fail "$name is sound"
  sound=$((sound + 1))
done
[ $sound -ge 12 ] || fail "only $sound sound programs"
ok "nothing is said on $sound sound programs"
