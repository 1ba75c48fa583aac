#!/bin/sh
# In a program under ThreadSanitizer the CPU profiler says that it cannot run;
# the memory profiler runs. tsan_host.c says why.
. "$(dirname "$0")/lib.sh"

host=$BUILD_DIR/bin/tsan_host
same "the reason is still true" "SIGSEGV blocked in a handler for another: yes" \
  "$("$host" signals)"
"$host" start > out.txt 2> err.txt || fail "start: $(cat out.txt err.txt)"
said='nil	no CPU samples under ThreadSanitizer, which delays signals until their context is gone; use a build without it	95'
same "CPU, both, memory" "$said
$said
true" "$(cat out.txt)"
same "the refused sessions left no file" mem.ljp "$(echo ./*.ljp | sed 's,^./,,')"
"$BUILD_DIR/bin/ljprof" check mem.ljp > check.txt || fail "$(cat check.txt)"
[ "$(awk '/^mem /{print $2}' check.txt)" -ge 1009 ] || fail "$(cat check.txt)"
ok "memory is recorded whole"
