# shellcheck shell=sh
# What the tests with a real Pyroscope share: it is started, killed and asked. It
# listens on 127.0.0.1 only, and keeps its data in the folder in which the test runs.
#
# A test has fail() and $SOURCE_DIR, and ends $server.

# shellcheck source=test/engines/lib.sh
. "$SOURCE_DIR/test/engines/lib.sh"
pyroscope_program=$(engine_program pyroscope) || exit 1
# Its second storage keeps what it has acknowledged when it is killed. Version 1 has it
# on request.
export PYROSCOPE_V2=1
storage='-write-path=segment-writer -enable-query-backend=true
  -all.enable-v1-write-path=false -all.enable-v1-read-path=false'
! "$pyroscope_program" -help-all 2>&1 | grep -q -e -architecture.storage ||
  storage=-architecture.storage=v2
server=''

# new_ports: four that are free, for one Pyroscope.
new_ports() {
  # shellcheck disable=SC2046 # four words
  set -- $(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*(s.getsockname()[1] for s in sockets))')
  http=$1 grpc=$2 gossip=$3 raft=$4
  url=http://127.0.0.1:$http
}
new_ports

# start_server [OPTION...]: and waits until it is ready.
# shellcheck disable=SC2120 # Not each test has options.
start_server() {
  # shellcheck disable=SC2086 # words are wanted
  "$pyroscope_program" $storage -usage-stats.enabled=false \
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
    -pyroscopedb.data-path=data -storage.backend=filesystem \
    -storage.filesystem.dir=store \
    -compactor.ring.instance-addr=127.0.0.1 \
    -distributor.ring.instance-addr=127.0.0.1 \
    -ingester.lifecycler.addr=127.0.0.1 \
    -overrides-exporter.ring.instance-addr=127.0.0.1 \
    -query-frontend.instance-addr=127.0.0.1 \
    -query-scheduler.ring.instance-addr=127.0.0.1 \
    -segment-writer.lifecycler.addr=127.0.0.1 \
    -store-gateway.sharding-ring.instance-addr=127.0.0.1 \
    -segment-writer.min-ready-duration=0s -metastore.min-ready-duration=0s \
    "$@" >> server.log 2>&1 &
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
  kill -9 "$server"
  wait "$server" 2> /dev/null || :
}

# compare WHAT TYPE SERVICE VALUE FILE...: what the server has of a type of profile,
# and what a value of the files (exported as pprof) is; of all, and of each label in
# $selections. What the server has acknowledged may need a moment until queries see
# it.
selections='- route=/a route=/b'
compare() {
  what=$1 type=$2 service=$3 value=$4
  shift 4
  for label in $selections; do
    selector="service_name=\"$service\""
    [ "$label" = - ] || selector="$selector,${label%%=*}=\"${label#*=}\""
    totals files "$value" "$label" "$@" > want
    for _ in $(seq 100); do
      totals pyroscope "$url" "$type" "{$selector}" > have 2> error || :
      ! cmp -s want have || break
      sleep 0.3
    done
    cmp -s want have ||
      fail "$what, $value, $label: wanted, and from Pyroscope: $(diff want have) $(cat error)"
    echo "$what, $value, $label: $(head -n 1 want), $(($(wc -l < want) - 1)) functions"
  done
}
# shellcheck disable=SC2034 # for the test
CPU=process_cpu:cpu:nanoseconds:cpu:nanoseconds
