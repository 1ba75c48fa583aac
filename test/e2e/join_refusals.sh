#!/bin/sh
# A program that cannot be joined: one line says why, and the program runs on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

gone() {
  sh -c 'echo $$' > gone.txt
  cat gone.txt
}
refuses "a process that is gone" 1 "there is no process" \
  "$ljprof" status -p "$(gone)"
refuses "no number" 2 "-p is 'x1', but must be the number of a process" \
  "$ljprof" status -p x1
refuses "no process" 2 "-p PID is missing" "$ljprof" status
refuses "zero" 2 "-p is '0', but must be" "$ljprof" stop -p 0
refuses "too large" 2 "must be the number of a process" \
  "$ljprof" record -p 99999999999999999999
refuses "a program, too" 2 "records a running program, so 'x.lua' cannot be run as well" \
  "$ljprof" record -p 1 x.lua
refuses "--jitdump with -p" 2 "type 'ljprof jitdump -p PID'" \
  "$ljprof" record -p $$ --jitdump
refuses "--preload with -p" 2 "--preload is for a program that is started" \
  "$ljprof" record -p $$ --preload
refuses "--threads this with -p" 2 "with -p there is none: type 'lua' or 'all'" \
  "$ljprof" record -p $$ --threads this

begin storm
for thread in "/proc/$host/task"/*; do
  thread=${thread##*/}
  [ "$thread" = "$host" ] || break
done
refuses "a thread" 1 "$thread is a thread of process $host (join_host)" \
  "$ljprof" status -p "$thread"
kill -STOP "$host"
stopped() { grep -q '^State:.T' "/proc/$host/status"; }
eventually "stopped" stopped
refuses "a stopped program" 1 "is stopped by a signal: continue it first" \
  "$ljprof" status -p "$host"
kill -CONT "$host"
"$ljprof" list > list.txt 2>&1 || fail "$(cat list.txt)"
grep -q "^ *$host  joins      1  -  .*  [0-9.]*  .*join_host storm" list.txt ||
  fail "$(cat list.txt)"
ok "the list has the program, its VM and no session"
end "storm"

sleep 60 &
other=$!
eventually "sleep runs" grep -qx sleep "/proc/$other/comm"
refuses "no LuaJIT" 1 "process $other (sleep) does not run our library" \
  "$ljprof" record -p $other -o no.ljp
kill $other
[ ! -e no.ljp ] || fail "a file was written"

python3 -c '
import os, time
child = os.fork()
if not child: os._exit(0)
print(child, flush=True)
time.sleep(60)' > zombie.txt &
parent=$!
eventually "a zombie" test -s zombie.txt
refuses "a zombie" 1 "is a zombie: it has ended" \
  "$ljprof" status -p "$(cat zombie.txt)"
kill $parent

if [ -x "$BUILD_DIR/unpatched/bin/luajit" ]; then
  "$BUILD_DIR/unpatched/bin/luajit" -e 'while true do end' &
  other=$!
  eventually "its library" grep -q libluajit "/proc/$other/maps"
  refuses "another LuaJIT" 1 "which is not ours, and cannot be joined yet" \
    "$ljprof" status -p $other
  grep -q 'uses LuaJIT 2\.[0-9][^ ]* of .*/libluajit-5.1.so.2[^ ]* (build ID [0-9a-f]\{40\}' \
    out.txt || fail "$(cat out.txt)"
  kill $other
fi
cat > other.c << 'END'
#include "lauxlib.h"
#include "lualib.h"
int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return luaL_dostring(L, "print('ready') io.stdout:flush() while true do end");
}
END
plain=$BUILD_DIR/luajit/unpatched/work/src/libluajit.a
if [ -f "$plain" ] && # a sanitizer's does not link so
  ${CC:-cc} -I "$BUILD_DIR/include" other.c -o other "$plain" -lm -ldl 2> cc.txt; then
  strip other
  : > other.txt
  ./other > other.txt &
  other=$!
  eventually "ready" grep -q ready other.txt
  refuses "another LuaJIT, linked statically" 1 "such a program cannot be joined yet" \
    "$ljprof" record -p $other -o no.ljp
  grep -q "(other) uses LuaJIT 2\.[0-9][^ ]*, which is linked into .*/other (" out.txt ||
    fail "$(cat out.txt)"
  kill $other
fi

cat > full.lua << 'END'
local ffi = require("ffi")
ffi.cdef("struct limit { unsigned long now, most; };" ..
  "int setrlimit(int, const struct limit *); int open(const char *, int);")
ffi.C.setrlimit(7, ffi.new("struct limit", { 9, 9 })) -- RLIMIT_NOFILE
while ffi.C.open("/dev/null", 0) >= 0 do end
io.stdout:setvbuf("no")
io.stdout:write("full\n")
while true do end
END
: > full.txt
"$BUILD_DIR/bin/luajit" full.lua > full.txt &
other=$!
eventually "no descriptor is left" grep -q full full.txt
refuses "no descriptor" 1 \
  "no room for what joining takes: Too many open files (its limit of descriptors: ulimit -n)" \
  "$ljprof" status -p $other
# Its compiled loop is in no file, whichever module lies next to it.
"$ljprof" dump-stacks -p $other > stacks.txt 2> error.txt && fail "no descriptor: stacks"
grep -Eq '^  0x[0-9a-f]+$' stacks.txt || fail "$(cat error.txt stacks.txt)"
ok "from outside, compiled code has no name"
kill $other

begin epoll
if strace -V > /dev/null 2>&1; then
  strace -o strace.txt -p "$host" 2> strace.err &
  tracer=$!
  traced() { ! grep -q '^TracerPid:.0$' "/proc/$host/status"; }
  eventually "strace: $(cat strace.err)" traced
  refuses "a traced program" 1 "is traced by process $tracer (strace)" \
    "$ljprof" status -p "$host"
  kill $tracer
  untraced() { ! traced; }
  eventually "strace ends" untraced
  kill -9 "$host" # strace has ended its wait
  wait "$host" || :
  begin epoll
fi
if [ "$(id -u)" = 0 ] && command -v setpriv > setpriv.txt; then
  chmod 755 "$SCRATCH"
  cp "$ljprof" others # who may not be able to reach what stands below /root
  refuses "another user's program" 1 "belongs to root (user 0)" \
    setpriv --reuid 65534 --clear-groups ./others status -p "$host"
fi
end "refusals"
ok "a program that was not joined is as before"
