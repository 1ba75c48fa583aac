#!/bin/sh
# Threads of ours in a joined program, under TSan: a program that listens is joined by
# several clients at once, recorded, copied, shown and left, while its own thread works.
# CPU sessions are left out, since none starts under TSan.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

cat > work.lua << 'END'
io.stdout:setvbuf("no")
io.stdout:write("ready\n")
local kept, n = {}, 0
local sleeper = coroutine.wrap(function() coroutine.yield() end)
sleeper()
while not io.open("over") do
  n = n + 1
  kept[n % 1000] = { n, tostring(n) }
end
END
door=$PWD/app.sock
: > host.txt
# TSan knows one table of descriptors only, and takes two descriptors of two tables for
# one. Its reports would go to descriptor 2, which leads nowhere in our threads.
cat > summary.c << 'END'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void __sanitizer_report_error_summary(const char *summary);
void __sanitizer_report_error_summary(const char *summary)
{
  int fd = open(getenv("REPORTS"), O_CREAT | O_WRONLY | O_APPEND, 0666);
  (void)!write(fd, summary, strlen(summary));
  (void)!write(fd, "\n", 1);
  close(fd);
}
END
${CC:-cc} -shared -fPIC summary.c -o summary.so || fail "summary.c"
: > reports.txt
for call in fstat recvmsg sendmsg recv send close read write pread pwrite writev poll \
  ioctl fcntl dup accept4 mmap; do
  echo "race_top:interceptor_$call"
done > known.supp
# Words that the VM's own code reads and writes without atomic operations, while the
# helper exchanges or reads the whole word (RFC 8, section 5).
printf 'race:%s\n' stub_load stub_swap ljp_guest_hasten >> known.supp
LJPROF_LISTEN=$door TSAN_OPTIONS="suppressions=$PWD/known.supp exitcode=66" \
  REPORTS=$PWD/reports.txt LD_PRELOAD=$PWD/summary.so \
  "$BUILD_DIR/bin/luajit" -joff work.lua > host.txt 2>&1 &
host=$!
eventually "the program" grep -q ready host.txt
for turn in 1 2 3; do
  clients=
  for other in 1 2; do
    "$ljprof" status -p "$door" > "status$other.txt" 2>&1 &
    clients="$clients $!"
  done
  record turn.ljp --force --memory --no-cpu --every
  "$ljprof" mark -p "$door" "turn $turn" > mark.txt 2>&1 || fail "mark: $(cat mark.txt)"
  "$ljprof" status -p "$door" > status.txt 2>&1 || fail "status: $(cat status.txt)"
  grep -q '^memory session: running' status.txt || fail "$(cat status.txt)"
  "$ljprof" dump-stacks -p "$door" > stacks.txt 2>&1 || fail "stacks: $(cat stacks.txt)"
  if [ $turn = 2 ]; then
    kill -9 "$client"
    wait "$client" 2> /dev/null || :
    no_session() {
      "$ljprof" status -p "$door" 2>&1 | grep -q '^no session'
    }
    eventually "the session ends with its client" no_session
  else
    kill -INT "$client"
    wait "$client" || fail "record: exit code $?: $(cat record.txt)"
  fi
  "$ljprof" check turn.ljp > check.txt || fail "$(cat check.txt)"
  "$ljprof" heap -p "$door" > heap.txt 2>&1 || fail "heap: $(cat heap.txt)"
  for pid in $clients; do
    wait "$pid" || fail "a client: $(cat status?.txt)"
  done
done
touch over
code=0
wait "$host" || code=$?
host=
[ $code != 66 ] || fail "TSan has found: $(cat reports.txt host.txt)"
same "exit code" 0 $code
ok "three recordings, with other clients meanwhile, and no data race"
