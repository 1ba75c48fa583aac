#!/bin/sh
# When nothing was recorded, ljprof record says why, as far as it can know.
. "$(dirname "$0")/lib.sh"

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit

refuses "a program without LuaJIT" any "did not load our libluajit-5.1.so.2 (is" \
  "$ljprof" record -o x.ljp sh -c :
refuses "a program whose child runs Lua" any \
  "not sh, but 1 process that it started loaded our libluajit" \
  "$ljprof" record -o x.ljp sh -c "'$luajit' -e 'io.open(\"ran\", \"w\")'; :"
[ -e ran ] || fail "the child did not run"
cat > early.c << 'END'
void *luaL_newstate(void);
void lua_close(void *);
int main(void) { lua_close(luaL_newstate()); return 0; }
END
"${CC:-cc}" early.c -L "$BUILD_DIR/lib" -l:libluajit-5.1.so.2 -o early
refuses "a VM without libraries" any "opened the libraries of no VM (--children" \
  env LD_LIBRARY_PATH="$BUILD_DIR/lib" "$ljprof" record -o x.ljp ./early

# Through a pipe, which has no limit of its own.
"$ljprof" record -o x.ljp prlimit --fsize=1 "$luajit" -e 'os.exit(7)' 2>&1 |
  cat > err.txt
[ "$(grep -c '^ljprof record: nothing was recorded: .*: File too large$' \
  err.txt)" = 1 ] || fail "a refused session: $(cat err.txt)"
grep -q 'statically' err.txt && fail "not the reason: $(cat err.txt)"
ok "a refused session: $(tail -n 1 err.txt)"

# Whoever has the record's number later gets nothing from us.
mkfifo other
stat -c "told=$$:9:%d:%i;pid=1;path=nowhere.ljp" other > request
exec 9> stranger
LJPROF_RECORD=$(cat request) "$luajit" -e 'os.exit(0)' || fail "a stale request"
[ ! -s stranger ] || fail "another's file was written: $(cat stranger)"
ok "a descriptor that is not the record's pipe is left alone"

# A daemon runs on when the program has ended.
cat > daemon.lua << 'END'
local ffi = require("ffi")
ffi.cdef("int fork(void); unsigned sleep(unsigned); int waitpid(int, int *, int);")
local short = ffi.C.fork()
if short == 0 then os.exit(0) end
ffi.C.waitpid(short, nil, 0)
local child = ffi.C.fork()
if child == 0 then
  ffi.C.sleep(20)
  os.exit(0)
end
print(child)
local stop = os.clock() + 0.05
repeat until os.clock() > stop
END
"$ljprof" record -o daemon.ljp "$luajit" daemon.lua > child.txt 2> err.txt ||
  fail "$(cat err.txt)"
same "a process that runs on is told" 1 "$(grep -c \
  "has ended, but 1 process that it forked runs on .* $(cat child.txt) (" err.txt)"
kill "$(cat child.txt)"
"$ljprof" record --children -o daemon.ljp --force "$luajit" daemon.lua \
  > child.txt 2> err.txt || fail "$(cat err.txt)"
kill "$(cat child.txt)"
same "a process that is recorded is not" 0 "$(grep -c 'runs on' err.txt)"

# Samples of a thread that runs no Lua belong to no VM.
cat > spin.c << 'END'
#include <pthread.h>
#include <time.h>
void *luaL_newstate(void);
void luaL_openlibs(void *);
static void *spin(void *arg)
{
  struct timespec used;
  do
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  while (used.tv_sec == 0 && used.tv_nsec < 500000000);
  return arg;
}
int main(void)
{
  pthread_t thread;
  luaL_openlibs(luaL_newstate());
  if (pthread_create(&thread, 0, spin, 0))
    return 1;
  return pthread_join(thread, 0);
}
END
"${CC:-cc}" spin.c -L "$BUILD_DIR/lib" -l:libluajit-5.1.so.2 -lpthread -o spin
"$ljprof" record --threads all -o spin.ljp ./spin 2> err.txt ||
  fail "$(cat err.txt)"
"$ljprof" report --by vm spin.ljp > vms.txt || fail "report"
grep -q '(unknown VM)' vms.txt && fail "no VM is unknown: $(cat vms.txt)"
grep -q '[0-9]  (no VM)$' vms.txt || fail "no samples outside: $(cat vms.txt)"
ok "samples of host code belong to no VM"
