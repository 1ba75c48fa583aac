#!/bin/sh
# Heap snapshots in a session's file: whole, with their places among its events,
# however the session ends; what cannot be there is told.
. "$(dirname "$0")/lib.sh"
lua=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof

# run CASE [EXPECTED CODE]: into CASE.ljp.
run() {
  code=0
  "$lua" "$SOURCE_DIR/test/e2e/heap_session.lua" "$1" "$1.ljp" \
    > out.txt 2> err.txt || code=$?
  [ "$code" = "${2:-0}" ] || fail "$1: exit code $code: $(cat err.txt)"
  [ ! -s err.txt ] || [ "$code" = 137 ] || fail "$1: $(cat err.txt)"
}

# holds FILE MOMENTS SNAPSHOTS: so many in the file. Each is behind its moment,
# and has what its end says.
holds() {
  "$ljprof" check "$1" > check.txt || fail "$1: $(cat check.txt)"
  "$ljprof" dump "$1" > dump.txt || fail "$1: dump"
  got=$(awk '
    function field(key,   at) {
      at = index($0, " " key "=")
      return at ? substr($0, at + length(key) + 2) + 0 : 0
    }
    /^  heap-moment / { moments++; bytes[field("snapshot")] = field("heap_bytes") }
    /^  heap / {
      number = field("snapshot")
      if (number in bytes && bytes[number] != field("heap_bytes"))
        exit bad = 1
      objects = refs = 0
    }
    /^  object / { objects += !/type="-"/ }
    /^  ref / { refs += / key=0x/ ? 2 : 1 }
    /^  heap-end / {
      ends++
      if (field("objects") != objects || field("refs") != refs ||
          field("snapshot") != number ||
          (number in bytes && field("bytes") != bytes[number]))
        exit bad = 1
    }
    END { if (bad) print "bad sums"; else print moments + 0, ends + 0 }' dump.txt) || :
  same "$1: moments, snapshots" "$2 $3" "$got"
}

run two
holds two.ljp 2 2
holds own.ljp 0 1
grep -q '^  heap .*taken="in place"' dump.txt && fail "own.ljp was taken in place"
"$ljprof" heap two.ljp > heap.txt || fail "heap two.ljp: $(cat heap.txt)"
grep -q 'main thread' heap.txt || fail "$(cat heap.txt)"
"$ljprof" report two.ljp > report.txt || fail "report two.ljp"
run last
holds last.ljp 2 2
run sampled
holds sampled.ljp 1 1
if [ -z "${LJP_NO_ZSTD:-}" ]; then
  run compressed
  holds compressed.ljp 1 1
fi
run combined
holds combined.ljp 2 2
run close
holds close.ljp 1 1
# What a VM has at exit() without lua_close() is no leak.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
run exit 7
holds exit.ljp 1 1
run exit_compiled 7
"$ljprof" check exit_compiled.ljp > check.txt || fail "$(cat check.txt)"
ok "exit() from compiled code does no harm"

run rotated
n=0
for file in rotated.ljp*; do
  "$ljprof" dump "$file" > dump.txt
  heaps=$(grep -c '^  heap ' dump.txt || :)
  same "$file: ends of snapshots" "$heaps" "$(grep -c '^  heap-end ' dump.txt || :)"
  n=$((n + heaps))
done
same "snapshots in all segments" 3 "$n"

run interval
"$ljprof" dump interval.ljp > dump.txt
n=$(grep -c '^  heap-moment ' dump.txt)
[ "$n" -ge 3 ] || fail "interval: $n snapshots"
holds interval.ljp "$n" "$n"
grep -q '^  heap .*phase="sweep strings"' dump.txt || fail "interval: the phases"
run duration
holds duration.ljp 1 1
run duration_idle
holds duration_idle.ljp 0 0
grep -q 'note .*no heap snapshot at the end of the session' dump.txt ||
  fail "the missing snapshot is not told"

for options in --snapshot '--snapshot-every 1h' '--snapshot --children'; do
  # shellcheck disable=SC2086 # several options
  "$ljprof" record --memory $options -o recorded.ljp --force \
    "$SOURCE_DIR/test/e2e/heap_session.lua" recorded 2> err.txt ||
    fail "record: $(cat err.txt)"
  holds recorded.ljp 1 1
done
refuses "without memory" 2 "snapshot needs --memory" \
  "$ljprof" record --snapshot "$SOURCE_DIR/test/e2e/heap_session.lua" recorded
refuses "no time" 2 "snapshot-every is 'often'" \
  "$ljprof" record --memory --snapshot-every often x.lua

run fork
holds fork.ljp 2 2
set -- fork.ljp.*
same "files of children" 1 $#
holds "$1" 1 1

run crash
"$ljprof" check crash.ljp > check.txt || fail "$(cat check.txt)"
whole=$(cat out.txt)
holds crash.ljp $((whole + 1)) "$whole"
grep -q 'note .*heap snapshot [0-9]* is missing: the copy of the process was killed' \
  dump.txt || fail "the crash is not told: $(grep note dump.txt)"
holds later.ljp 0 1

# The only snapshot is missing: ljprof heap does not say that none was asked for.
(ulimit -f 64
  "$BUILD_DIR/bin/luajit" -e "t = {} for i = 1, 100000 do t[i] = {i, 'item ' .. i} end
    assert(misc.memprof.start('missing.ljp'))
    assert(not misc.memprof.snapshot{wait = true})
    assert(misc.memprof.stop())") || fail "missing: the program"
refuses "only missing snapshots" 1 "heap snapshots are missing; ljprof check says why" \
  "$ljprof" heap missing.ljp

run killed_before 137
read -r copy whole < out.txt
kill -9 "$copy" # It was stopped.
"$ljprof" check killed_before.ljp > check.txt 2>&1 || :
grep -q '0 malformed' check.txt || fail "killed before: $(cat check.txt)"
"$ljprof" dump killed_before.ljp > dump.txt 2> err.txt || :
same "killed before: the moments" $((whole + 1)) \
  "$(grep -c '^  heap-moment ' dump.txt)"
same "killed before: the snapshots" "$whole" "$(grep -c '^  heap-end ' dump.txt || :)"
run killed_after 137
"$ljprof" dump killed_after.ljp > dump.txt 2> err.txt || :
same "killed after: the snapshot" 1 "$(grep -c '^  heap-end ' dump.txt)"
run kinds
mv out.txt kinds.txt
while read -r file snapshots; do
  holds "$file" "$snapshots" "$snapshots"
done < kinds.txt
run refusals
ok "refusals"
