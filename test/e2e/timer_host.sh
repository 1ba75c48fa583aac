#!/bin/sh
# Threads that cannot have the session's timer get another one, and the file
# says so; timer tick leaves waiting threads alone.
. "$(dirname "$0")/lib.sh"

host=$BUILD_DIR/bin/timer_host
ljprof=$BUILD_DIR/bin/ljprof
chmod 777 . # for what has dropped root

# possible CASE: runs it; false if this machine does not permit it.
possible() {
  code=0
  "$host" "$1" "$1.ljp" > "$1.txt" 2>&1 || code=$?
  if [ $code = 77 ]; then
    echo "case $1 is not possible here"
    return 1
  fi
  [ $code = 0 ] || fail "$1: exit code $code: $(cat "$1.txt")"
  same "$1: a whole stream" whole "$("$ljprof" check "$1.ljp" | tail -n 1)"
  "$ljprof" dump --json "$1.ljp" > "$1.json"
}

# has CASE WHAT PATTERN: some line of the case's stream matches.
has() {
  grep -q -e "$3" "$1.json" || fail "$1: no $2"
  ok "$1: $2"
}

if possible waits; then
  has waits "timer tick, and why" \
    '"type":"producer",.*"timer":"tick","refused":1[,}]'
fi
if possible nothing; then
  has nothing "time of a thread without a timer" \
    '"type":"unsampled",.*"why":"the thread has no timer"'
  has nothing "note" '"type":"note",.*is not sampled'
fi
if possible sigwait; then
  has sigwait "time of a thread that blocks the signal" \
    '"type":"unsampled",.*"why":"the thread blocks the signal"'
fi
if possible closed; then
  ok "closed: the host's file stays, and the event is opened again"
fi
if possible steady; then
  ! grep '"type":"note",.*the list of threads' steady.json ||
    fail "steady: the writer needed a descriptor"
  ok "steady: no descriptor is needed while no thread comes or goes"
fi
if possible no_list; then
  has no_list "time of threads that cannot be found" \
    '"type":"unsampled",.*"why":"the list of threads cannot be read"'
  has no_list "note" '"type":"note",.*the list of threads'
fi
if possible ended; then
  has ended "time of a thread that ended before its first sample" \
    '"type":"unsampled",.*"thread":[^1],.*after the thread.s last.*"ns":[0-9]\{7\}'
fi
for case in "root 13" "descriptors 24"; do
  errno=${case#* } case=${case% *}
  possible "$case" || continue
  has "$case" "thread by perf" '"type":"producer",.*"timer":"perf","refused":0'
  has "$case" "thread by tick, and why" \
    "\"type\":\"producer\",.*\"timer\":\"tick\",\"refused\":${errno}[,}]"
  has "$case" "samples of the thread" '"type":"sample",.*"text":"in_worker '
  has "$case" "note" '"type":"note",.*cannot have timer'
done
