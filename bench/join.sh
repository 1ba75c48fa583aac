#!/bin/sh
# Measures how long a thread of a program is stopped when ljprof joins the program
# (ljprof record -p), in programs that wait, work, or do nothing but malloc().
# Usage: join.sh [COUNT]: joins each program COUNT times (1000). The targets are
# those of RFC 8. The longest times have the machine's noise.
# pause: from the stop of the thread until it goes on.
# answer: until the program has answered, including the search for the library in
# its memory.
set -eu
build=${BUILD_DIR:-build}
count=${1:-1000}
work=$(mktemp -d "${TMPDIR:-/tmp}/join.XXXXXX")
host=
trap '[ -z "$host" ] || kill -9 "$host" 2> /dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "target of the pause: median <= 1 ms, 99 % <= 5 ms"
for mode in epoll poll sleep read loop busy signals storm; do
  "$build/bin/join_host" $mode > "$work/host.txt" &
  host=$!
  sleep 0.5
  visits=$count
  [ $mode != storm ] || visits=$(((count + 9) / 10))
  printf '%s, %d visits\n' $mode "$visits"
  "$build/bin/join_loop" $host "$visits" | sed 's/^/  /'
  kill $host
  wait $host || {
    echo "join: error: $mode ended with $?" >&2
    exit 1
  }
  host=
  printf '  the program: %s\n' "$(tail -n 1 "$work/host.txt")"
done
