#!/bin/sh
# A wait whose thread's timers are set or deleted while their signal is on its way.
. "$(dirname "$0")/lib.sh"

"$BUILD_DIR/bin/late_signals" file 60 > text 2>&1 ||
  fail "waits ended early: $(cat text)"
ok "no wait ended early: $(cat text)"
