#!/bin/sh
# Each key that a command prints as JSON is in doc/reference/json.md: by its
# name, or by its stem if it is one of several figures (self_ns: self_*). For
# `dump` this does not hold: its keys are the fields of RFC 1. No object has a key
# twice.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
data=$SOURCE_DIR/test/data
doc=$SOURCE_DIR/doc/reference/json.md

# unknown FILE: the keys of a JSON file that the reference does not have.
unknown() {
  grep -oE '"[a-z_]+":' "$1" | tr -d '":' | sort -u |
    awk -v doc="$doc" '
      BEGIN {
        while ((getline line < doc) > 0)
          while (match(line, /`[a-z_]+[*]?`/)) {
            known[substr(line, RSTART + 1, RLENGTH - 2)] = 1
            line = substr(line, RSTART + RLENGTH)
          }
      }
      # A figure: STEM_UNIT, and bounds of it.
      function figure(key,   stem) {
        if (sub(/_(low|high|error)$/, "", key) &&
            (key in known || key "_*" in known))
          return 1
        stem = key
        return sub(/_(samples|ns|objects|bytes|percent)$/, "_", stem) &&
          (stem in known || stem "*" in known)
      }
      # One side of a comparison.
      function side(key) {
        return sub(/^(before|after)_/, "", key) && key in known
      }
      !($0 in known) && !figure($0) && !side($0)'
}
printf '{"samples":1,"self_ns":2,"tree_percent":3,"self_xyzzy":4,"xyz":5}' > x
same "a key that is not in the reference" "self_xyzzy xyz" \
  "$(unknown x | tr '\n' ' ' | sed 's/ $//')"

python=$(command -v python3 || :)
[ -n "$python" ] || echo "skipped: there is no python3 to parse JSON"

strict() { # FILE: fails unless this is JSON without a key twice in an object
  [ -z "$python" ] || "$python" "$SOURCE_DIR/test/e2e/json_strict.py" "$1"
}
printf '{"a":1,"b":{"c":1,"a":2}}\n{"a":[{"b":1,"c":2,"b":3}]}\n' > x
if [ -n "$python" ]; then
  refuses "a key twice in an object" 1 "x: line 2: keys that are there twice: b" \
    strict x
fi

prints() { # WHAT COMMAND...: prints JSON to keys.json
  what=$1
  shift
  "$@" > keys.json 2> err || [ -s keys.json ] || fail "$what: $(cat err)"
  strict keys.json 2> err || fail "$what: $(cat err)"
}

told() { # WHAT COMMAND...: prints JSON, whose keys are all in the reference
  prints "$@"
  same "$what: keys that are not in the reference" "" "$(unknown keys.json)"
}
for file in every-record killed rotated vm-closed; do
  told "check $file" "$ljprof" check --json "$data/$file.ljp"
  told "report $file" "$ljprof" report --json "$data/$file.ljp"
  told "jit $file" "$ljprof" report --jit --json "$data/$file.ljp"
done
file=$data/every-record.ljp
for option in --wall --alloc --live --peak --tree --bottom-up --lines --native \
  --by=line --by=stack --by=file --by=module --by=kind --by=thread --by=vm \
  --by=state; do
  told "report $option" "$ljprof" report "$option" --json "$file"
done
"$BUILD_DIR/bin/labelled_stream" labelled.ljp || fail "labelled_stream"
told "labels" "$ljprof" report --by label:route --json labelled.ljp
told "gc-cost" "$ljprof" report --gc-cost --json "$file"
told "types" "$ljprof" report --alloc --by type --json "$file"
told "diff" "$ljprof" diff --json "$file" "$data/vm-closed.ljp"
told "expect" "$ljprof" expect --json "$file" 'live <= 1 MB' 'own(xyzzy) <= 1 %'
for option in '' --path=. --retained-by=. --dominators --coroutines --strings \
  "--diff $data/heap.ljp"; do
  # shellcheck disable=SC2086 # No option is no word.
  told "heap $option" "$ljprof" heap --json $option "$data/heap.ljp"
done

for file in "$data"/*.ljp*; do
  prints "dump ${file##*/}" "$ljprof" dump --json "$file"
done
prints "the export of a heap snapshot" \
  "$ljprof" export --to heapsnapshot -o - "$data/heap.ljp"
ok "no object has a key twice"
