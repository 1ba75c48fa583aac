#!/bin/sh
# Files that have Tarantool's format ljm from the start: the counts that users of
# Tarantool rely on, a valid file whatever ends the program, and clear errors. A
# decoder that shares no code with the writer judges the files.
. "$(dirname "$0")/lib.sh"
luajit=$BUILD_DIR/bin/luajit
ljprof=$BUILD_DIR/bin/ljprof
here=$SOURCE_DIR/test/e2e
LUA_CPATH="$BUILD_DIR/lib/test/?.so"
export LUA_CPATH

decode() {
  "$luajit" "$here/tarantool_decode.lua" "$@"
}

# events FILE [cut]: "allocs frees reallocs" of a file.
events() {
  decode "$@" > sums.txt 2> err.txt || fail "decode $1: $(cat err.txt)"
  awk -F '\t' '{ split($1, key, " "); n[key[1]] += $2 }
    END { print n["alloc"] + 0, n["free"] + 0, n["realloc"] + 0 }' sums.txt
}

run() {
  "$luajit" "$here/ljm.lua" "$@"
}

# -- Counts --------------------------------------------------------------------

for jit in off on; do
  "$luajit" -j$jit "$here/tarantool_scenario.lua" ljm > out.txt 2> err.txt ||
    fail "scenario, JIT $jit: $(cat err.txt)"
  ok "scenario, JIT $jit"
done

# The events of a program by place, and those of an export of our own format.
for jit in off on; do
  for format in ljprof ljm; do
    run work $format $jit.$format $jit > wanted.$format || fail "work: $format"
  done
  same "events as status() counts them, JIT $jit" "$(cat wanted.ljm)" \
    "$(events $jit.ljm)"
  grep -v ' INTERNAL' sums.txt | grep -v 'TRACE' | cut -f 1,2 > got.txt
  "$ljprof" export --to ljm --force -o export.ljm $jit.ljprof 2> /dev/null ||
    fail "export, JIT $jit"
  events export.ljm > /dev/null
  grep -v ' INTERNAL' sums.txt | grep -v 'TRACE' | cut -f 1,2 > wanted.txt
  [ $jit = on ] || cmp -s wanted.txt got.txt ||
    fail "events by place: $(diff wanted.txt got.txt)"
  [ "$(wc -l < got.txt)" -gt 8 ] || fail "few places: $(cat got.txt)"
done
ok "events by place as in our own format"

# Without a stop: the end of the program and the end of the VM are the end.
for how in return exit error; do
  ! run ends "$how" ends.ljm > /dev/null 2>&1 || [ "$how" != error ] ||
    fail "no error"
  events ends.ljm > /dev/null
  ok "whole after $how"
done

# Functions that come and go, over many flushes.
wanted=$(run many many.ljm) || fail "many"
same "many functions" "$wanted" "$(events many.ljm)"
same "lines of the last function" 1 \
  "$(grep -c '^alloc =chunk 3000:2	' sums.txt)"
"$luajit" -tm many.ljm > out.txt || fail "-tm"
grep -q '^=chunk 3000:2: ' out.txt || fail "-tm has no line"
ok "-tm"

# -- What ends early -----------------------------------------------------------

# kill -9 once the file has some size: everything up to the last whole event.
for size in 1 4096 65536 200003 1000003; do
  "$luajit" "$here/ljm.lua" forever kill.ljm > /dev/null &
  pid=$!
  until [ -s kill.ljm ] && [ "$(wc -c < kill.ljm)" -ge $size ]; do
    kill -0 $pid 2> /dev/null || fail "the program ended"
    sleep 0.01
  done
  kill -9 $pid
  wait $pid 2> /dev/null || :
  events kill.ljm cut > /dev/null
  "$ljprof" report --json kill.ljm > json.txt 2> err.txt ||
    grep -q 'nothing to show: no memory allocated in the file' err.txt ||
    fail "report after kill -9 at $size: $(cat err.txt)"
  grep -q 'cut short: it ends at byte' json.txt ||
    fail "the report does not say that the file is cut"
  ! "$luajit" -tm kill.ljm > shown.txt 2> err.txt ||
    fail "-tm takes a cut file for a whole one"
  [ $size -lt 65536 ] || grep -q 'ljm.lua:[0-9]*: [0-9]* events' shown.txt ||
    fail "-tm shows nothing: $(cat err.txt)"
  rm kill.ljm
  ok "kill -9 from $size bytes on"
done

# The disk is full: here, files have a limit.
# shellcheck disable=SC3045
(ulimit -f 2000 && run full full.ljm > out.txt) || fail "full"
same "stop after a full disk" "nil full.ljm: File too large 27 failed" \
  "$(tr '\t' ' ' < out.txt)"
events full.ljm cut > /dev/null
"$ljprof" report --json full.ljm | grep -q 'cut short: it ends at byte' ||
  fail "a file that lacks events is not cut"
[ "$("$ljprof" report --json full.ljm |
  grep -oE '"alloc_events":[0-9]+' | head -n 1 | cut -d : -f 2)" -gt 1000 ] ||
  fail "the events before the limit are missing"
refuses "a full device" 1 "/dev/full: No space left on device" \
  "$luajit" -e 'print(misc.memprof.start{path = "/dev/full", format = "ljm"})
    os.exit(1)'

# A pipe whose reader sleeps until events are lost: the stop reports them, and the
# pipe gets all others.
mkfifo pipe
exec 9<> pipe # So that it can be opened for writing.
(
  exec < pipe 9>&-
  until [ -e lost ]; do sleep 0.01; done
  cat > pipe.ljm
) &
reader=$!
run slow pipe lost > out.txt || fail "slow: $(cat out.txt)"
exec 9>&-
wait $reader
read -r lost pushed < out.txt
[ "$lost" -gt 0 ] || fail "nothing was lost"
# shellcheck disable=SC2046
set -- $(events pipe.ljm)
same "events there and lost" "$pushed" $(($1 + $2 + $3 + lost))

# -- Forks ---------------------------------------------------------------------

run fork stop fork.ljm > out.txt || fail "fork: $(cat out.txt)"
same "events with a child" "$(sed -n 's/^parent //p' out.txt)" \
  "$(events fork.ljm)"
same "events of the child's own session" "$(sed -n 's/^child //p' out.txt)" \
  "$(events fork.ljm.own)"
rm fork.ljm*
run fork follow fork.ljm > out.txt || fail "fork: $(cat out.txt)"
same "events with a child that is followed" \
  "$(sed -n 's/^parent //p' out.txt)" "$(events fork.ljm)"
child=$(echo fork.ljm.[0-9]*)
same "events of the child" "$(sed -n 's/^child //p' out.txt)" \
  "$(events "$child")"
grep -q '^alloc @.*ljm.lua:' sums.txt || fail "the child's lines are missing"
ok "the child's lines"

# -- Errors --------------------------------------------------------------------

echo before > kept
run errors kept > out.txt 2>&1 || fail "errors: $(cat out.txt)"
same "a refused start leaves the file" before "$(cat kept)"
ok "$(wc -l < out.txt) errors"

echo "$passed checks"
