#!/bin/sh
# What a client does not expect while it joins a program, and what must do no harm.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

# start MODE: join_edges in the background: $host.
start() {
  rm -f go began
  : > edges.txt
  "$BUILD_DIR/bin/join_edges" "$1" > edges.txt 2>&1 &
  host=$!
  eventually "$1: ready" grep -q ready edges.txt
  sleep 0.1
}
# reaches STEP: the client that runs does nothing for two seconds from this step
# on.
reaches() {
  LJPROF_JOIN_STEP=$1:sleep=2000 timeout 60 "$faults" status -p "$host" \
    > edge.txt 2>&1 &
  client=$!
  sleep 0.5
}

# The program executes another one, which keeps its number.
for case in exec_leader:seized exec_thread:seized exec_thread:checked \
  exec_thread:claimed; do
  start "${case%:*}"
  reaches "${case#*:}"
  touch go
  wait $client && fail "$case: the client has joined something" || code=$?
  same "$case: exit code" 1 "$code"
  grep -q "process $host became another program while it was being joined" \
    edge.txt || fail "$case: $(cat edge.txt)"
  eventually "$case: the other program begins" test -e began
  wait "$host" || fail "$case: $(cat edges.txt)"
  host=
  same "$case: the other program is left alone" "bytes written: 0" \
    "$(tail -n 1 edges.txt)"
done
