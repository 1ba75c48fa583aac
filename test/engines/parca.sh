#!/bin/sh
# A real Parca takes what ljprof push sends: by function it has exactly what the
# files have.
#
# The program is `parca` in PATH, or $LJPROF_PARCA. It listens on 127.0.0.1 only and
# keeps its data in memory and in the test's folder.
. "$(dirname "$0")/../e2e/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
program=${LJPROF_PARCA:-$(command -v parca || :)}
[ -x "$program" ] ||
  fail "no parca in PATH, and LJPROF_PARCA names none: install it"
totals() {
  python3 "$SOURCE_DIR/test/engines/totals.py" "$@"
}
server=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill -9 $server 2> /dev/null'
port=$(python3 -c 'import socket
print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
url=http://127.0.0.1:$port
printf '%s\n' 'object_storage:' '  bucket:' '    type: FILESYSTEM' \
  '    config:' '      directory: ./data' > parca.yaml
"$program" --config-path=parca.yaml --http-address=127.0.0.1:"$port" \
  --log-level=warn > server.log 2>&1 &
# shellcheck disable=SC2034 # for end_test()
server=$!
for i in 1 2 3; do
  record $i.ljp
  "$ljprof" export --to pprof --force -o $i.pb.gz $i.ljp 2> /dev/null
done
"$ljprof" push --to parca --service shop --retry 0.2 "$url" 1.ljp 2.ljp 3.ljp \
  2> said || fail "$(cat said)"
for value in cpu alloc_space alloc_objects inuse_space; do
  case $value in
  cpu) type=process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta ;;
  *_space) type=memory:$value:bytes:space:bytes:delta ;;
  *) type=memory:$value:count:space:bytes:delta ;;
  esac
  totals files $value - 1.pb.gz 2.pb.gz 3.pb.gz > want
  for _ in $(seq 100); do
    totals parca "$url" $type '{service_name="shop"}' > have 2> error || :
    ! cmp -s want have || break
    sleep 0.3
  done
  same "three workers, $value: $(head -n 1 want), $(($(wc -l < want) - 1)) functions" \
    "$(cat want)" "$(cat have)"
done
refuses "a wrong path" 1 "gRPC status 12" \
  "$ljprof" push --to parca "$url/nowhere" 1.ljp
