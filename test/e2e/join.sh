#!/bin/sh
# A running program is joined many times, and nothing in it changes: threads,
# descriptors, memory, waits, registers, signals. A client that is killed, or is
# slow, at any step leaves it as it was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

rss() {
  sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$host/status"
}
# many MODE COUNT: joins after the first ones take no more memory.
many() {
  begin "$1"
  "$BUILD_DIR/bin/join_loop" "$host" 3 > loop.txt 2>&1 ||
    fail "$1: $(cat loop.txt)"
  before=$(rss)
  "$BUILD_DIR/bin/join_loop" "$host" "$2" > loop.txt 2>&1 ||
    fail "$1: $(cat loop.txt)"
  eventually "$1: threads and descriptors as before" settled
  after=$(rss)
  [ "$mode" = storm ] || [ $((after - before)) -lt 512 ] ||
    fail "$1: the program had $before KiB, and has $after"
  end "$1"
  ok "$1: joined $2 times: $(head -n 1 loop.txt)"
}
count=${LJP_JOIN_COUNT:-60}
for mode in epoll poll cancel sleep read send queue loop busy signals; do
  many $mode "$count"
done
many storm $((count / 10))

# A static program without symbols, and a program in namespaces of its own.
cp "$BUILD_DIR/bin/luajit_no_markers" static
strip static 2> strip.txt || :
./static -e 'while true do end' &
host=$!
eventually "the program runs" grep -qx static "/proc/$host/comm"
"$BUILD_DIR/bin/join_loop" "$host" 10 > loop.txt 2>&1 || fail "$(cat loop.txt)"
kill -9 "$host"
wait "$host" 2> /dev/null || :
host=
ok "our static library, stripped: $(head -n 1 loop.txt)"
if [ "$(id -u)" = 0 ] && unshare -Urpfm --mount-proc true 2> unshare.txt; then
  unshare -Urpfm --mount-proc "$BUILD_DIR/bin/join_host" poll > far.txt &
  outer=$!
  eventually "ready" grep -q ready far.txt
  host=$(ps -o pid= --ppid $outer | tr -d ' ')
  "$BUILD_DIR/bin/join_loop" "$host" 10 > loop.txt 2>&1 ||
    fail "$(cat loop.txt)"
  kill -TERM "$host"
  wait $outer || fail "the program in a namespace: $?"
  host=
  same "a program in namespaces of its own" "poll: interrupted 0 early 0" \
    "$(tail -n 1 far.txt)"
fi

# alive WHAT: the program can be joined, and runs on.
alive() {
  "$ljprof" status -p "$host" > status.txt 2>&1 ||
    fail "$1: $(cat status.txt)"
  grep -q "^process $host (join_host): library [0-9.]*, 1 VM\$" status.txt ||
    fail "$1: $(cat status.txt)"
}
# If the client ends while the thread is stopped, a wait may fail with EINTR, as
# under strace. A wait with a timeout also may if the client ends later, before it
# has restored the thread.
may_interrupt() {
  wanted=$(echo "$wanted" | sed 's/interrupted 0/interrupted [0-9]*/')
  last=$(tail -n 1 host.txt)
  expr "$last" : "$wanted\$" > /dev/null || fail "$1: $last"
  wanted=$last
}
# faulty MODE STEP ACTION: the client meets the fault.
faulty() {
  what="$1: the client, $2, $3"
  LJPROF_JOIN_STEP=$2:$3 timeout 60 "$faults" status -p "$host" \
    > fault.txt 2>&1 && code=0 || code=$?
  case $3 in
  kill)
    [ "$code" != 0 ] || [ "$2" = left ] || [ "$2" = restored ] ||
      fail "$what: it was not killed"
    ;;
  *) [ "$code" = 0 ] || fail "$what: exit code $code: $(cat fault.txt)" ;;
  esac
  alive "$what"
}
steps="seized stopped checked claimed framed registers masked detached ready \
taken hello"
for mode in epoll poll cancel read loop; do
  begin "$mode"
  for step in $steps; do
    faulty "$mode" "$step" kill
  done
  case $mode in
  poll | cancel)
    for step in left restored; do
      faulty "$mode" "$step" kill
    done
    ;;
  esac
  eventually "$mode: threads and descriptors as before" settled
  [ "$mask_before" = "$(grep SigBlk "/proc/$host/status")" ] ||
    fail "$mode: signals are blocked: $(grep SigBlk "/proc/$host/status")"
  kill -TERM "$host"
  wait "$host" || fail "$mode: the program ended with $?"
  host=
  may_interrupt "$mode"
  ok "$mode: a client that is killed, at each step"
  begin "$mode"
  for step in $steps; do
    faulty "$mode" "$step" sleep=150
  done
  case $mode in
  poll | cancel)
    # Later visits meet a wait that earlier ones have continued.
    for wait in 120 150 300; do
      faulty "$mode" left sleep=$wait
    done
    ;;
  esac
  end "$mode: a slow client"
  ok "$mode: a slow client, at each step"
done
# A signal comes in each of these pauses, and stops the thread that is traced: it is
# met at the first instruction of its handler, in place of its wait.
begin signals
for ms in 3 30 150; do
  faulty signals seized sleep=$ms
done
end "signals: a slow client"
ok "a signal each millisecond: a slow client"
begin storm
for step in stopped claimed masked; do
  faulty storm $step kill
  # A client that is slow at each stop would hardly find a safe moment.
  [ $step = stopped ] || faulty storm $step sleep=150
done
end "storm: a client that is killed or slow"
ok "storm: a client that is killed or slow"

# A client that is stopped, and goes on.
stopped_client() {
  for pid in "$client" $(ps -o pid= --ppid "$client"); do
    ! grep -q '^State:.T' "/proc/$pid/status" 2> /dev/null || return 0
  done
  return 1
}
continued() {
  for pid in "$client" $(ps -o pid= --ppid "$client"); do
    kill -CONT "$pid" 2> /dev/null || :
  done
  ! grep -q '^State:.[^Z]' "/proc/$client/status" 2> /dev/null
}
# halts MODE STEP
halts() {
  LJPROF_JOIN_STEP=$2:stop "$faults" status -p "$host" > fault.txt 2>&1 &
  client=$!
  eventually "$1, $2: the client stops" stopped_client
  sleep 0.3
  # It comes to the step again if the moment was not safe.
  eventually "$1, $2: the client goes on" continued
  wait "$client" || fail "$1: a client stopped at $2: $(cat fault.txt)"
  alive "$1: a client stopped at $2"
}
for mode in epoll poll loop; do
  begin "$mode"
  for step in $steps; do
    halts "$mode" "$step"
  done
  [ "$mode" != poll ] || for step in left restored; do
    halts "$mode" "$step"
  done
  end "$mode: a client that is stopped"
  ok "$mode: a client that is stopped and goes on, at each step"
done

# Clients at the same time.
begin loop
clients=
for i in 1 2 3 4 5 6; do
  "$ljprof" status -p "$host" > "same$i.txt" 2>&1 &
  clients="$clients $!"
done
for client in $clients; do
  wait "$client" || fail "six clients: $(cat same?.txt)"
done
same "six clients at the same time" 6 "$(grep -l '^no session' same?.txt | wc -l)"
end "six clients"
