#!/bin/sh
# Varied code with the compiler on, every allocation recorded, alone and with CPU
# samples at 10 kHz: the program's output is as without, no event is lost, no
# stack is cut, and the bytes of all events are the change of the heap.
. "$(dirname "$0")/lib.sh"

varied=$SOURCE_DIR/test/mem/varied.lua
rounds=${ROUNDS:-211}
run() {
  "$BUILD_DIR/bin/luajit" "$SOURCE_DIR/test/e2e/memprof_storm.lua" \
    "$varied" "$rounds" storm.ljp "$1"
}

run plain > plain.txt 2> err.txt || fail "plain: $(cat err.txt)"
for mode in every combined native; do
  run $mode > out.txt 2> counts.txt || fail "$mode: $(cat counts.txt)"
  cmp -s plain.txt out.txt || fail "$mode: another output"
  read -r events lost cut < counts.txt
  same "$mode: events lost, stacks cut" "0 0" "$lost $cut"
  "$BUILD_DIR/bin/ljprof" check storm.ljp > check.txt ||
    fail "$mode: $(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" dump storm.ljp | awk -v wanted="$events" '
    function number(key,   at) {
      at = index($0, " " key "=")
      return at ? substr($0, at + length(key) + 2) + 0 : 0
    }
    /^  gc / { if (!gc++) first = number("heap_bytes"); last = number("heap_bytes") }
    /^  mem / && !/failed=true/ {
      n++
      if ($0 ~ /operation="free"/) sum -= number("size")
      else sum += number("size") - number("old_size")
    }
    END {
      printf "%d events, %d + %d, heap %d\n", n, first, sum, last
      exit !(n == wanted && n > 50000 && first + sum == last)
    }' > sum.txt || fail "$mode: $(cat sum.txt), $events recorded"
  ok "$mode: $(cat sum.txt)"
done
