#!/bin/sh
# Work for a round of the writer that could not have the profiler's lock.
. "$(dirname "$0")/lib.sh"

"$BUILD_DIR/bin/missed_round" file > text 2>&1 ||
  fail "the new thread was found late: $(cat text)"
same "a whole stream" whole "$("$BUILD_DIR/bin/ljprof" check file | tail -n 1)"
