#!/bin/sh
# A copy of the process by a raw clone(), for which no handlers of fork() run,
# made while the writer holds a lock: see copy_host.c.
. "$(dirname "$0")/lib.sh"

for how in tables loader; do
  "$BUILD_DIR/bin/copy_host" copy.bin $how > out.txt 2>&1 ||
    fail "$how: $(cat out.txt)"
  for file in copy.bin*; do
    same "$how, $file" whole "$("$BUILD_DIR/bin/ljprof" check "$file" | tail -n 1)"
  done
  rm -f copy.bin*
done
