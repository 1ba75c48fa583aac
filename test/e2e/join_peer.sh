#!/bin/sh
# Clients that have come in and then do what ljprof would not do: requests that are
# refused, descriptors that are none of a file, changed messages, no reading. The
# program is as it was after each of them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

LJPROF_LISTEN=$PWD/app.sock
export LJPROF_LISTEN
begin loop
unset LJPROF_LISTEN
for what in wrong_requests wrong_outputs wrong_segments two_starts noise strangers \
  five unread; do
  timeout 120 python3 "$SOURCE_DIR/test/e2e/join_peer.py" "$PWD/app.sock" $what \
    > peer.txt 2>&1 || fail "$what: $(cat peer.txt)"
  eventually "$what: threads and descriptors as before" settled
  "$ljprof" status -p "$PWD/app.sock" > status.txt || fail "$what: $(cat status.txt)"
  grep -q '^no session' status.txt || fail "$what: $(cat status.txt)"
  ok "$what $(cat peer.txt)"
done
same "what was not asked for is empty" 0 "$(wc -c < other.ljp)"
end "a hostile peer"
