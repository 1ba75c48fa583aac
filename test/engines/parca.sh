#!/bin/sh
# A real Parca takes what ljprof push sends: by function it has exactly what the
# files have.
. "$(dirname "$0")/../e2e/lib.sh"
. "$SOURCE_DIR/test/e2e/push_lib.sh"
. "$SOURCE_DIR/test/engines/parca_lib.sh"
# shellcheck disable=SC2016,SC2034 # for end_test()
at_end='kill -9 $parca 2> /dev/null'
start_parca
for i in 1 2 3; do
  record $i.ljp
  "$ljprof" export --to pprof --force -o $i.pb.gz $i.ljp 2> /dev/null
done
"$ljprof" push --to parca --service shop --retry 0.2 "$parca_url" 1.ljp 2.ljp 3.ljp \
  2> said || fail "$(cat said)"
for value in cpu alloc_space alloc_objects inuse_space; do
  compare_parca "three workers" $value 1.pb.gz 2.pb.gz 3.pb.gz
done
refuses "a wrong path" 1 "gRPC status 12" \
  "$ljprof" push --to parca "$parca_url/nowhere" 1.ljp
