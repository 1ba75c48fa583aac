# shellcheck shell=sh
# What the tests with a real Parca share. The program is `parca` in PATH, or
# $LJPROF_PARCA. It listens on 127.0.0.1 only, and keeps its data in memory and in the
# folder in which the test runs.
#
# A test has fail() and $SOURCE_DIR, and ends $parca.

# shellcheck source=test/engines/lib.sh
. "$SOURCE_DIR/test/engines/lib.sh"
parca_program=$(engine_program parca "${LJPROF_PARCA:-}") || exit 1
parca=''
parca_port=$(python3 -c 'import socket
print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
parca_url=http://127.0.0.1:$parca_port

start_parca() {
  printf '%s\n' 'object_storage:' '  bucket:' '    type: FILESYSTEM' \
    '    config:' '      directory: ./parca-data' > parca.yaml
  "$parca_program" --config-path=parca.yaml --http-address=127.0.0.1:"$parca_port" \
    --log-level=warn > parca.log 2>&1 &
  # shellcheck disable=SC2034 # for the test
  parca=$!
}

# compare_parca WHAT VALUE FILE...: what the server has of the service "shop", and
# what the files (exported as pprof) have.
compare_parca() {
  what=$1 value=$2
  shift 2
  case $value in
  cpu) type=process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta ;;
  inuse_space) type=memory:$value:bytes:space:bytes ;;
  *_space) type=memory:$value:bytes:space:bytes:delta ;;
  *) type=memory:$value:count:space:bytes:delta ;;
  esac
  totals files "$value" - "$@" > want
  for _ in $(seq 100); do
    totals parca "$parca_url" "$type" '{service_name="shop"}' > have 2> error || :
    ! cmp -s want have || break
    sleep 0.3
  done
  cmp -s want have ||
    fail "$what, $value: wanted, and from Parca: $(diff want have) $(cat error)"
  echo "$what, $value: $(head -n 1 want), $(($(wc -l < want) - 1)) functions"
}
