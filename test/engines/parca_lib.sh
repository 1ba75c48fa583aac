# shellcheck shell=sh
# What the tests with a real Parca share: it is started, killed and asked. It listens on
# 127.0.0.1 only, asks no other server, and keeps its data in the folder in which the test
# runs. What it has acknowledged is in its log on disk 50 ms later.
#
# A test has fail() and $SOURCE_DIR, and ends $parca. If $LJPROF_NO_PARCA says why there
# is no Parca, $parca_program is empty.

# shellcheck source=test/engines/lib.sh
. "$SOURCE_DIR/test/engines/lib.sh"
parca_program=''
[ -n "${LJPROF_NO_PARCA:-}" ] || parca_program=$(engine_program parca) || exit 1
parca=''
parca_port=$(python3 -c 'import socket
print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
parca_url=http://127.0.0.1:$parca_port

# start_parca: and waits until it listens.
start_parca() {
  printf '%s\n' 'object_storage:' '  bucket:' '    type: FILESYSTEM' \
    '    config:' '      directory: ./parca-data' > parca.yaml
  "$parca_program" --config-path=parca.yaml --http-address=127.0.0.1:"$parca_port" \
    --storage-enable-wal --storage-path=parca-wal --debuginfod-upstream-servers= \
    --log-level=warn >> parca.log 2>&1 &
  parca=$!
  for _ in $(seq 300); do
    kill -0 $parca 2> /dev/null || fail "Parca ends: $(tail -n 3 parca.log)"
    ! python3 -c "import socket
socket.create_connection(('127.0.0.1', $parca_port))" 2> /dev/null || return 0
    sleep 0.2
  done
  fail "Parca does not listen: $(tail -n 3 parca.log)"
}
# kill_parca: kill -9, when what it has acknowledged is on disk.
kill_parca() {
  sleep 1
  kill -9 "$parca"
  wait "$parca" 2> /dev/null || :
}

# compare_parca WHAT SERVICE VALUE FILE...: what the server has of this service, and what
# the files (exported as pprof) have.
compare_parca() {
  what=$1 service=$2 value=$3
  shift 3
  case $value in
  cpu) type=process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta ;;
  inuse_space) type=memory:$value:bytes:space:bytes ;;
  *_space) type=memory:$value:bytes:space:bytes:delta ;;
  *) type=memory:$value:count:space:bytes:delta ;;
  esac
  totals files "$value" - "$@" > want
  for _ in $(seq 100); do
    totals parca "$parca_url" "$type" "{service_name=\"$service\"}" > have 2> error || :
    ! cmp -s want have || break
    sleep 0.3
  done
  cmp -s want have ||
    fail "$what, $value: wanted, and from Parca: $(diff want have) $(cat error)"
  echo "$what, $value: $(head -n 1 want), $(($(wc -l < want) - 1)) functions"
}
