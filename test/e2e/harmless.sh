#!/bin/sh
# A session does no harm to programs that hang in a backtracer, take signals late,
# ignore them, have no room for them, cancel threads, or start sessions from many
# threads.
. "$(dirname "$0")/lib.sh"

host=$BUILD_DIR/bin/harmless_host
ljprof=$BUILD_DIR/bin/ljprof
for mode in hang ignored starts cancel late queue; do
  "$host" $mode $mode.ljp > text 2>&1 || fail "$mode: code $?: $(cat text)"
  ok "$mode"
done
# whole FILE: fails unless the file is complete.
whole() {
  "$ljprof" check "$1" > check.txt 2>&1 || {
    tail -n 3 check.txt
    fail "$1 is not whole"
  }
}
whole hang.ljp.1
"$ljprof" dump hang.ljp.1 > dump.txt
grep -q "did not return" dump.txt ||
  fail "hang: the file does not say that a handler did not return"
whole hang.ljp.2

# The late signal's time is the first thread's, not the second's.
whole late.ljp
"$ljprof" report --by thread --json late.ljp > threads
second=$(sed -n 's/.*(second)"[^}]*"self_ns":\([0-9]*\).*/\1/p' threads)
if [ "${second:-0}" -lt 100000000 ] || [ "$second" -gt 1000000000 ]; then
  fail "late: the second thread has $second ns of samples: $(cat threads)"
fi
ok "no late signal counts for another thread"

refuses "perf with a real-time signal" any 'timer "perf" cannot use signal' \
  "$BUILD_DIR/bin/luajit" -e \
  'assert(misc.sysprof.start{path = "x", timer = "perf", signal = "RTMIN+5"})'
[ ! -e x ] || fail "a refused session has left a file"
