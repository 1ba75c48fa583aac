#!/bin/sh
# Leaks of the kinds that people report (test/leaks): ljprof heap names the
# holder in its second line and in the first row of its table, and so does the
# comparison of two snapshots, without a memory session and with one.
. "$(dirname "$0")/lib.sh"
ljprof=$BUILD_DIR/bin/ljprof

for program in "$SOURCE_DIR"/test/leaks/*.lua; do
  name=$(basename "$program" .lua)
  holder=$(sed -n 's/^-- holder: //p' "$program")
  [ -n "$holder" ] || fail "$name: no holder is named"
  for session in '' 'misc.memprof.start{path = "memory.ljp"}'; do
    "$BUILD_DIR/bin/luajit" -e "$session
      assert(misc.memprof.snapshot{path = 'before.ljp', gc = true, wait = true})
      dofile('$program')
      assert(misc.memprof.snapshot{path = '$name.ljp', gc = true, wait = true})
      if misc.memprof.status().state == 'running' then misc.memprof.stop() end" ||
      fail "$name: the program"
    "$ljprof" heap "$name.ljp" > heap.txt || fail "$name: ljprof heap"
    sed -n 2p heap.txt | grep -F 'What keeps the most alive: ' |
      grep -qF -- "$(echo "$holder" | sed 's/ *$//')" ||
      fail "$name: $(cat heap.txt)"
    sed -n 5p heap.txt > first.txt
    grep -qF -- "$holder" first.txt || fail "$name: $(cat heap.txt)"
    grep -q 'B  .*  \(table {\|function .* first of a list$\)' first.txt ||
      fail "$name: $(cat first.txt)"
    "$ljprof" heap --diff before.ljp "$name.ljp" > diff.txt || fail "$name: --diff"
    sed -n 2p diff.txt | grep -F 'What holds the most of it: ' |
      grep -qF -- "$(echo "$holder" | sed 's/ *$//')" ||
      fail "$name: $(cat diff.txt)"
    sed -n 7p diff.txt > born.txt
    grep -qF -- "$holder" born.txt || fail "$name: $(cat diff.txt)"
    grep -q ' B  .*  table {' born.txt && fail "$name: $(cat diff.txt)"
    "$ljprof" heap --json "$name.ljp" > heap.json
    grep -q '"complete":true' heap.json || fail "$name: $(cat heap.json)"
  done
  ok "$name: $(sed 's/  */ /g' first.txt | cut -c 1-100)"
done

# What is wrong with a file is said.
cp cache.ljp cut.ljp
truncate -s -2000 cut.ljp
"$ljprof" heap cut.ljp > heap.txt && fail "a damaged snapshot is no success"
grep -q '^The snapshot is damaged: its end is missing' heap.txt ||
  fail "$(cat heap.txt)"
ok "a damaged snapshot is shown and reported"
refuses "a file without a snapshot" 1 "it holds no heap snapshot" \
  "$ljprof" heap memory.ljp
"$ljprof" merge -o merged.ljp cache.ljp keys.ljp 2> err.txt || fail "merge"
"$ljprof" check merged.ljp > check.txt || fail "merged: $(cat check.txt)"
for n in 1 2; do
  "$ljprof" heap --snapshot $n merged.ljp | sed -n 6p
done > first.txt
grep -qF -- "$(sed -n 's/^-- holder: //p' "$SOURCE_DIR/test/leaks/cache.lua")" \
  first.txt || fail "$(cat first.txt)"
grep -qF -- "$(sed -n 's/^-- holder: //p' "$SOURCE_DIR/test/leaks/keys.lua")" \
  first.txt || fail "$(cat first.txt)"
ok "merge carries snapshots"
refuses "a pipe" 1 "is not a regular file, but must be read twice" \
  sh -c "cat cache.ljp | '$ljprof' heap -"
refuses "not a stream" 1 "a Lua script, not a profile" "$ljprof" heap "$program"
refuses "--top" 2 "a number from 1 to 1000, not '0'" "$ljprof" heap --top 0 x
