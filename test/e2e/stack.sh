#!/bin/sh
# Little stack: Lua runs where threads and coroutines have stacks of 16 KiB, and
# where signals get alternate stacks of 8 KiB, in every kind of session. What the
# handler needs of an alternate stack is measured.
. "$(dirname "$0")/lib.sh"

host=$BUILD_DIR/bin/stack_host
ljprof=$BUILD_DIR/bin/ljprof

# stack NAME PLACE BYTES START STOP: runs the host; leaves $used and $frame.
stack() {
  code=0
  "$host" "$2" "$3" "$4" "$5" > out.txt 2> err.txt || code=$?
  [ $code = 0 ] || fail "$1 on $2 $3: exit code $code: $(cat out.txt err.txt)"
  read -r _ used _ frame < out.txt
}

# whole NAME FILE: the stream is whole and has events.
whole() {
  same "$1: a whole stream" whole "$("$ljprof" check "$2" | tail -n 1)"
  n=$("$ljprof" dump --json "$2" | grep -c -m 20 "\"type\":\"$3\"" || :)
  [ "$n" = 20 ] || fail "$1: only $n events"
}

timers=
for timer in perf posix; do
  "$BUILD_DIR/bin/luajit" -e "
    local ok = misc.sysprof.start{path = 'try.ljp', timer = '$timer'}
    os.exit(ok and 0 or 1)" && timers="$timers $timer"
done
[ -n "$timers" ] || fail "no timer"

for timer in $timers; do
  start="assert(misc.sysprof.start{path='cpu.ljp', interval=1, timer='$timer'})"
  stop="assert(misc.sysprof.stop())"
  for bytes in 8192 8192g 65536; do
    stack "$timer" alternate $bytes "$start" "$stop"
    whole "$timer, alternate stack of $bytes" cpu.ljp sample
    [ $bytes = 65536 ] || [ $((used - frame)) -le 1024 ] ||
      fail "the handler took $((used - frame)) bytes"
  done
  stack "$timer" faults 8192g "$start" "$stop"
  whole "$timer, faults in the handler on 8192g" cpu.ljp sample
  for place in thread fiber; do
    stack "$timer" $place 16384g "$start" "$stop"
    whole "$timer, $place of 16 KiB" cpu.ljp sample
  done
done

memory() {
  for place in thread fiber; do
    stack "$1" $place 16384g "assert(misc.memprof.start{path='m.ljp', $1})$2" \
      "$3 assert(misc.memprof.stop())"
    whole "memory $1, $place of 16 KiB" m.ljp mem
  done
}
for options in 'sample=4096' 'every=true' 'every=true, native=true'; do
  memory "$options" '' ''
done

# The VM is made and closed there, too, and the session starts and stops there.
for place in thread fiber; do
  for kind in sysprof memprof profile; do
    stack $kind $place 16384ga "assert(misc.$kind.start{path='a.ljp'})" \
      "assert(misc.$kind.stop())"
    same "$kind, started on a $place of 16 KiB" whole \
      "$("$ljprof" check a.ljp | tail -n 1)"
  done
  "$ljprof" record --memory --force -o r.ljp "$host" $place 16384ga '' '' \
    > out.txt 2>&1 || fail "record: $(cat out.txt)"
  whole "recorded from the first VM, on a $place of 16 KiB" r.ljp sample
done

memory 'every=true, native=true' \
  "assert(misc.sysprof.start{path='c.ljp', interval=0.2})" \
  'assert(misc.sysprof.stop())'
