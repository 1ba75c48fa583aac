#!/bin/sh
# A real Pyroscope takes what ljprof push sends: by function and by label it has
# exactly what the files have; also if it is killed, and comes back, in the middle.
. "$(dirname "$0")/../e2e/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
. "$SOURCE_DIR/test/engines/pyroscope_lib.sh"
pusher=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill -9 $pusher $server 2> /dev/null'

# shellcheck disable=SC2119 # It takes none here.
start_server
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
  give $i
  case $i in
  03 | 06)
    sleep 0.2
    kill_server
    ;;
  04 | 08) start_server ;;
  esac
done
for _ in $(seq 600); do
  [ "$(outcomes st/.push/journal 3)" -lt 18 ] || break
  sleep 0.1
done
kill $pusher
wait $pusher 2> /dev/null || :
grep -q '^ljprof push: 18 sent' said || fail "$(cat said)"
compare "after two kills of the server" $CPU fault cpu f0?.pb.gz
compare "after two kills of the server" memory:alloc_space:bytes:space:bytes \
  fault alloc_space f0?.pb.gz
