#!/bin/sh
# A real Pyroscope takes what ljprof push sends: by function and by label it has
# exactly what the files have; also if it is killed, and comes back, in the middle.
#
# The program is `pyroscope` in PATH, or $LJPROF_PYROSCOPE. It listens on
# 127.0.0.1 only and keeps its data in the test's folder.
. "$(dirname "$0")/../e2e/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
program=${LJPROF_PYROSCOPE:-$(command -v pyroscope || :)}
[ -x "$program" ] ||
  fail "no pyroscope in PATH, and LJPROF_PYROSCOPE names none: install it"
totals() {
  python3 "$SOURCE_DIR/test/engines/totals.py" "$@"
}
pusher=''
server=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill -9 $pusher $server 2> /dev/null'

# shellcheck disable=SC2046 # four words
set -- $(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*(s.getsockname()[1] for s in sockets))')
http=$1 grpc=$2 gossip=$3 raft=$4
url=http://127.0.0.1:$http

# start: starts the server, and waits until it is ready.
start() {
  "$program" -architecture.storage=v2 -usage-stats.enabled=false \
    -self-profiling.disable-push=true -log.level=error \
    -server.http-listen-address=127.0.0.1 -server.http-listen-port="$http" \
    -server.grpc-listen-address=127.0.0.1 -server.grpc-listen-port="$grpc" \
    -memberlist.bind-addr=127.0.0.1 -memberlist.advertise-addr=127.0.0.1 \
    -memberlist.bind-port="$gossip" -memberlist.advertise-port="$gossip" \
    -metastore.address=127.0.0.1:"$grpc" \
    -query-backend.address=127.0.0.1:"$grpc" \
    -metastore.raft.bind-address=127.0.0.1:"$raft" \
    -metastore.raft.advertise-address=127.0.0.1:"$raft" \
    -metastore.raft.server-id=127.0.0.1:"$raft" \
    -metastore.data-dir=meta/data -metastore.raft.dir=meta/raft \
    -metastore.raft.snapshots-dir=meta/snapshots \
    -pyroscopedb.data-path=data -storage.filesystem.dir=store \
    -compactor.ring.instance-addr=127.0.0.1 \
    -distributor.ring.instance-addr=127.0.0.1 \
    -ingester.lifecycler.addr=127.0.0.1 \
    -overrides-exporter.ring.instance-addr=127.0.0.1 \
    -query-frontend.instance-addr=127.0.0.1 \
    -query-scheduler.ring.instance-addr=127.0.0.1 \
    -segment-writer.lifecycler.addr=127.0.0.1 \
    -store-gateway.sharding-ring.instance-addr=127.0.0.1 \
    > server.log 2>&1 &
  server=$!
  for _ in $(seq 600); do
    kill -0 $server 2> /dev/null || fail "Pyroscope ends: $(tail -n 3 server.log)"
    case $(python3 -c "import urllib.request
print(urllib.request.urlopen('$url/ready', timeout=5).read().decode())" \
      2> /dev/null) in
    ready*) return 0 ;;
    esac
    sleep 0.3
  done
  fail "Pyroscope is not ready: $(tail -n 3 server.log)"
}
# kill_server: kill -9.
kill_server() {
  kill -9 $server
  wait $server 2> /dev/null || :
}

# compare WHAT TYPE SERVICE VALUE FILE...: of all, and of each route. What the
# server has acknowledged may need a moment until queries see it.
compare() {
  what=$1 type=$2 service=$3 value=$4
  shift 4
  for route in - /a /b; do
    selector="{service_name=\"$service\"}" label=-
    [ $route = - ] || {
      selector="{service_name=\"$service\",route=\"$route\"}"
      label=route=$route
    }
    totals files "$value" $label "$@" > want
    for _ in $(seq 100); do
      totals pyroscope "$url" "$type" "$selector" > have 2> error || :
      ! cmp -s want have || break
      sleep 0.3
    done
    same "$what, ${value}, route $route: $(head -n 1 want), $(($(wc -l < want) - 1)) functions" \
      "$(cat want)" "$(cat have)"
  done
}
# Files of the profile types of a push, as the exports have them.
CPU=process_cpu:cpu:nanoseconds:cpu:nanoseconds

start
for i in 1 2 3; do
  record $i.ljp
  "$ljprof" export --to pprof --force -o $i.pb.gz $i.ljp 2> /dev/null
done
"$ljprof" push --to pyroscope --service shop "$url" 1.ljp 2.ljp 3.ljp 2> said ||
  fail "$(cat said)"
compare "three workers" $CPU shop cpu 1.pb.gz 2.pb.gz 3.pb.gz
for value in alloc_space inuse_space; do
  compare "three workers" memory:$value:bytes:space:bytes shop $value 1.pb.gz 2.pb.gz 3.pb.gz
done
compare "three workers" memory:alloc_objects:count:space:bytes shop \
  alloc_objects 1.pb.gz 2.pb.gz 3.pb.gz
"$ljprof" push --to otlp --service otlp "$url" 1.ljp 2.ljp 2> said ||
  fail "$(cat said)"
compare "OTLP" cpu:cpu:nanoseconds:cpu:nanoseconds otlp cpu 1.pb.gz 2.pb.gz
refuses "a wrong path" 1 "answers 404" \
  "$ljprof" push --to pyroscope "$url/nowhere" 1.ljp

# The server is killed in the middle, twice, and comes back.
mkdir st
"$ljprof" push --to pyroscope --service fault --retry 0.05 --look 0.1 "$url" \
  --follow st 2> said &
pusher=$!
for i in 01 02 03 04 05 06 07 08 09; do
  record f$i.ljp
  "$ljprof" export --to pprof --force -o f$i.pb.gz f$i.ljp 2> /dev/null
  cp f$i.ljp st/.next
  mv st/.next "st/shop-20260101T0000${i}Z-000000$i-1$i.ljp"
  case $i in
  03 | 06)
    sleep 0.2
    kill_server
    ;;
  04 | 08) start ;;
  esac
done
for _ in $(seq 600); do
  [ "$(outcomes st/.push/journal 3)" -lt 9 ] || break
  sleep 0.1
done
kill $pusher
wait $pusher 2> /dev/null || :
grep -q '^ljprof push: 9 sent' said || fail "$(cat said)"
compare "after two kills of the server" $CPU fault cpu f0?.pb.gz
compare "after two kills of the server" memory:alloc_space:bytes:space:bytes \
  fault alloc_space f0?.pb.gz
