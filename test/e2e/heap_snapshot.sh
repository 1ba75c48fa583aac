#!/bin/sh
# Heap snapshots hold every byte that the VM counts, whatever the VM is doing;
# each file is whole; nothing of the copy remains.
. "$(dirname "$0")/lib.sh"

for jit in on off; do
  "$BUILD_DIR/bin/luajit" -j$jit "$SOURCE_DIR/test/e2e/heap_snapshot.lua" \
    > count.txt 2> err.txt || fail "JIT $jit: $(cat err.txt)"
  [ ! -s err.txt ] || fail "JIT $jit: $(cat err.txt)"
  ok "JIT $jit: $(cat count.txt) checks while the program runs"
  : > phases.txt
  for file in *.ljp; do
    "$BUILD_DIR/bin/ljprof" check "$file" > check.txt ||
      fail "$file: $(cat check.txt)"
    "$BUILD_DIR/bin/ljprof" dump "$file" > dump.txt || fail "$file: dump"
    sed -n 's/^  heap .*phase="\([^"]*\)".*/\1/p' dump.txt >> phases.txt
    awk '
      function field(key,   at) {
        at = index($0, " " key "=")
        return at ? substr($0, at + length(key) + 2) + 0 : 0
      }
      /^  object / { objects += !/type="-"/ }
      /^  ref / { refs += / key=0x/ ? 2 : 1 }
      /^  heap / { bytes = field("heap_bytes") }
      /^  heap-end / {
        ends++
        if (field("objects") != objects || field("refs") != refs ||
            field("bytes") != bytes)
          exit bad = 1
      }
      END { exit bad || ends != 1 }' dump.txt || fail "$file: the sums"
    grep -q 'dead=true' dump.txt && touch dead
  done
  for phase in pause propagate 'sweep strings' sweep finalize; do
    grep -q "^$phase\$" phases.txt || fail "JIT $jit: no snapshot in phase $phase"
  done
  [ -e dead ] || fail "JIT $jit: no dead object was seen"
  [ -e closing.ljp ] || fail "JIT $jit: no snapshot in lua_close()"
  [ -e behind.ljp ] || fail "JIT $jit: the program did not wait for its copy"
  set -- ./*.ljp
  ok "JIT $jit: $# files are whole, in all phases"
  rm -f ./*.ljp dead
done

"$BUILD_DIR/bin/heap_host" 60 host.ljp > host.txt || fail "heap_host"
"$BUILD_DIR/bin/ljprof" check host.ljp > check.txt || fail "$(cat check.txt)"
ok "a host with threads and children does not notice the copies"

# A limit on the size of files: an error, no signal, no half of a file.
for place in true false; do
  (ulimit -f 64 && "$BUILD_DIR/bin/luajit" -e "
    local t = {} for i = 1, 50000 do t[i] = {} end
    local r, message, number = misc.memprof.snapshot{
      path = 'limit.ljp', wait = true, in_place = $place}
    assert(r == nil and number == 27, message)") || fail "beyond the limit"
  [ ! -e limit.ljp ] || fail "a file beyond the limit is left"
done
ok "a snapshot beyond the limit on files is refused"

"$BUILD_DIR/bin/luajit" -e 'assert(misc.memprof.snapshot("exit.ljp")) os.exit(7)' ||
  code=$?
same "the exit code is the program's" 7 "${code:-0}"
"$BUILD_DIR/bin/ljprof" check exit.ljp > check.txt || fail "$(cat check.txt)"
ok "exit() waits for the copy"
