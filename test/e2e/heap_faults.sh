#!/bin/sh
# Whatever call fails while a heap snapshot is taken (memory, threads, processes,
# files): the snapshot is whole or refused, and nothing is left of it. A session's
# file tells which snapshots it lacks.
. "$(dirname "$0")/lib.sh"

while read -r way often stride; do
  mkdir "$way.$often"
  (cd "$way.$often" &&
    LD_PRELOAD=$BUILD_DIR/lib/test/failing_calls.so "$BUILD_DIR/bin/luajit" \
      "$SOURCE_DIR/test/e2e/heap_faults.lua" "$way" "$often" "$stride" \
      > ../out.txt 2> ../err.txt) ||
    fail "$way, $often: $(cat err.txt)"
  read -r calls refused < out.txt
  if [ "$calls" -lt 2 ] || [ "$refused" -lt 2 ]; then
    fail "$way, $often: $calls calls failed, $refused snapshots were refused"
  fi
  set -- "$way.$often"/*.ljp-*
  [ ! -e "$1" ] || fail "left: $*"
  for file in "$way.$often"/*.ljp; do
    # In a session's file a snapshot may be missing.
    "$BUILD_DIR/bin/ljprof" check "$file" > check.txt 2>&1 ||
      { grep -q '^0 malformed' check.txt && grep -q 'heap snapshot .*in' check.txt; } ||
      fail "$file: $(cat check.txt)"
  done
  for file in "$way.$often"/session-*.ljp; do
    [ -e "$file" ] || continue
    "$BUILD_DIR/bin/ljprof" dump "$file" > dump.txt || fail "$file: dump"
    wanted=$(grep -c '^  heap-moment ' dump.txt || :)
    whole=$(grep -c '^  heap-end ' dump.txt || :)
    # If no call succeeds, there is no memory for a note either.
    [ "$whole" = 1 ] || [ "$wanted$whole" = 00 ] || [ "$often" = onward ] ||
      grep -q 'note .*heap snapshot .*\(missing\|incomplete\)' dump.txt ||
      fail "$file does not tell that the snapshot is missing"
  done
  rm -rf "${way:?}.$often"
  ok "$way, $often: $calls calls failed, $refused snapshots were refused"
done << 'EOF'
copy once 1
copy onward 7
place once 7
behind once 7
session once 1
session onward 1
session_place once 1
session_read once 1
EOF
