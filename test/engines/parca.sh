#!/bin/sh
# A real Parca takes what ljprof push sends: by function it has exactly what the
# files have; also if it is killed, and comes back, between two requests.
. "$(dirname "$0")/../e2e/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
. "$SOURCE_DIR/test/engines/parca_lib.sh"
[ -n "$parca_program" ] || {
  echo "skipped: $LJPROF_NO_PARCA"
  exit 77
}
pusher=''
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill -9 $pusher $parca 2> /dev/null'
start_parca
for i in 1 2 3; do
  record $i.ljp
  "$ljprof" export --to pprof --force -o $i.pb.gz $i.ljp 2> /dev/null
done
"$ljprof" push --to parca --service shop --retry 0.2 "$parca_url" 1.ljp 2.ljp 3.ljp \
  2> said || fail "$(cat said)"
for value in cpu alloc_space alloc_objects inuse_space; do
  compare_parca "three workers" shop $value 1.pb.gz 2.pb.gz 3.pb.gz
done
refuses "a wrong path" 1 "gRPC status 12" \
  "$ljprof" push --to parca "$parca_url/nowhere" 1.ljp

mkdir st
"$ljprof" push --to parca --service fault --retry 0.05 --look 0.1 "$parca_url" \
  --follow st 2> said &
pusher=$!
# sent N: waits until so many files are sent.
sent() {
  for _ in $(seq 600); do
    [ "$(outcomes st/.push/journal 3)" -lt "$1" ] || return 0
    sleep 0.1
  done
  fail "$1 files are not sent: $(cat said)"
}
for i in 01 02 03 04 05 06; do
  give $i
  case $i in
  02 | 04)
    sent $i
    kill_parca
    ;;
  03 | 05) start_parca ;;
  esac
done
sent 6
kill $pusher
wait $pusher 2> /dev/null || :
grep -q '^ljprof push: 6 sent' said || fail "$(cat said)"
for value in cpu alloc_space inuse_space; do
  compare_parca "after two kills of the server" fault $value f0?.pb.gz
done
