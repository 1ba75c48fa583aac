#!/bin/sh
# Measures what a recording of a running program costs, and what remains of it: the
# CPU time of the program's work while the client is there and after it has left, each
# divided by the time before it came. alone: no client comes, since later rounds of any
# program may be slower or faster. sampled: CPU samples and sampled memory events;
# every: CPU samples and each memory event.
# thread: of the program's own thread. process: of all threads, so the writer's, too.
# Usage: joined.sh [RUNS]: the median of RUNS programs of each kind (5)
set -eu
build=${BUILD_DIR:-build}
here=$(dirname "$0")
runs=${1:-5}
work=$(mktemp -d "${TMPDIR:-/tmp}/joined.XXXXXX")
host='' client=''
clean() {
  for pid in $host $client; do kill -9 "$pid" 2> /dev/null || :; done
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

# await FILE TEXT
await() {
  until grep -q "$2" "$work/$1" 2> /dev/null; do sleep 0.02; done
}

# once NAME KIND: with and after, of the thread and of the process.
once() {
  rm -f "$work"/*
  "$build/bin/luajit" "$here/joined.lua" "$1" "$work" > "$work/out" &
  host=$!
  await 1 ""
  option=
  [ "$2" != every ] || option=--every
  if [ "$2" != alone ]; then
    env --default-signal=INT "$build/bin/ljprof" record -p $host --memory $option \
      -o "$work/out.ljp" 2> "$work/told" &
    client=$!
    await told 'recording process'
  fi
  echo > "$work/2"
  await 3 ""
  if [ -n "$client" ]; then
    kill -INT $client
    wait $client
    client=
  fi
  echo > "$work/4"
  wait $host
  host=
  awk '{ printf "%.4f %.4f ", $2 / $1, $3 / $1 } END { print "" }' "$work/out"
}

# medians FILE: of its columns.
medians() {
  for column in 1 2 3 4; do
    awk -v c=$column '{ print $c }' "$1" | sort -n |
      awk '{ v[NR] = $1 } END { printf " %7s", v[int((NR + 1) / 2)] }'
  done
}

printf '%-24s %7s %7s %7s %7s\n' '' thread after process after
for name in numeric churn calls coroutines numeric.off churn.off calls.off \
  coroutines.off; do
  for kind in alone sampled every; do
    i=0
    : > "$work.$kind"
    while [ $i -lt "$runs" ]; do
      once $name $kind >> "$work.$kind"
      i=$((i + 1))
    done
    printf '%-15s %-8s%s\n' $name $kind "$(medians "$work.$kind")"
    rm -f "$work.$kind"
  done
done
