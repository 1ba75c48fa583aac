#!/bin/sh
# A program that listens is joined by its socket, also where ptrace is not
# possible. Only its user gets in, clients that mean no good cost little, and the
# program and the socket's folder are afterwards as they were.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"
luajit=$BUILD_DIR/bin/luajit
clients=$SOURCE_DIR/test/e2e/listen_clients.py

# listens MODE: as begin, with a door: $door.
listens() {
  LJPROF_LISTEN=$PWD/%p.sock
  export LJPROF_LISTEN
  begin "$1"
  unset LJPROF_LISTEN
  door=$PWD/$host.sock
}
# script NAME LUA [COMMAND...]: runs the script in the background, until it prints
# "ready": $host. The command runs it.
script() {
  echo "io.stdout:setvbuf('no') $2" > "$1.lua"
  : > "$1.txt"
  name=$1
  shift 2
  "$@" "$luajit" "$name.lua" > "$name.txt" 2> "$name.err" &
  host=$!
  eventually "$name" begun
  grep -q ready "$name.txt" || fail "$name: $(cat "$name.err")"
}
begun() {
  grep -q ready "$name.txt" || ! kill -0 "$host" 2> /dev/null
}
loop='print("ready") while true do end'
over() {
  kill -9 "$host"
  wait "$host" 2> /dev/null || :
  host=
}
no_door() {
  ! grep -qx ljprof-door "/proc/$host/task"/*/comm
}
answers() {
  "$ljprof" status -p "$door" > status.txt 2>&1
}

# -- A recording ------------------------------------------------------------
begin loop
plain_files=$files_before
end "no door"
listens loop
same "the socket is for its user only" "600 socket" "$(stat -c '%a %F' "$door")"
same "the program has no descriptor of the door" "$plain_files" "$files_before"
# glibc keeps signal 33 for itself, musl 33 and 34.
all_but_libcs=fffffffe7ffbfeff
[ "${LJP_LIBC:-}" != musl ] || all_but_libcs=fffffffc7ffbfeff
for task in "/proc/$host/task"/*; do
  ! grep -qx ljprof-door "$task/comm" ||
    same "the door blocks all signals" "$all_but_libcs" \
      "$(sed -n 's/^SigBlk:.//p' "$task/status")"
done
answers || fail "$(cat status.txt)"
grep -q "^process $host (join_host): library [0-9.]*, 1 VM\$" status.txt ||
  fail "$(cat status.txt)"
ok "status: $(head -n 1 status.txt)"
record int.ljp
eventually "samples" some_samples int.ljp
answers || fail "$(cat status.txt)"
grep -q "^CPU session: running, started by ljprof (process $client)" status.txt ||
  fail "$(cat status.txt)"
same "a session leaves no descriptor in the program" "$files_before" \
  "$(ls "/proc/$host/fd")"
refuses "a second session" 1 "is running already, for ljprof (process $client)" \
  "$ljprof" record -p "$door" -o second.ljp
kill -INT $client
wait $client || fail "Ctrl-C: exit code $?: $(cat record.txt)"
whole "Ctrl-C" int.ljp
eventually "threads and descriptors as before" settled
ok "Ctrl-C: $(grep samples record.txt)"
(cd / && "$ljprof" record -p "$door" --duration 200ms --output "$SCRATCH/far.ljp") \
  2> record.txt || fail "$(cat record.txt)"
grep -q 'as --duration asked' record.txt || fail "$(cat record.txt)"
"$ljprof" record -p "./$host.sock" --duration 200ms 2> record.txt ||
  fail "$(cat record.txt)"
set -- join_host-*.ljp
[ -f "$1" ] || fail "the file has another name: $(ls)"
ok "--duration, a relative path, and the default name: $1"
record stop.ljp
eventually "samples" some_samples stop.ljp
"$ljprof" stop -p "$door" > stop.txt || fail "$(cat stop.txt)"
wait $client || fail "stop: exit code $?: $(cat record.txt)"
whole "ljprof stop" stop.ljp
"$ljprof" status -p "$host" > status.txt || fail "$(cat status.txt)"
ok "ljprof stop; and joined by its number, too"
if [ "${LJP_ANALYZER:-ON}" = ON ]; then
  "$ljprof" record -p "$door" --report 300ms > report.txt 2> record.txt ||
    fail "$(cat record.txt)"
  grep -q ' round host' report.txt || fail "$(cat report.txt)"
fi
refuses "a mark without a session" 1 "process $host (join_host): no " \
  "$ljprof" mark -p "$door" deploy
for event in wall cpu; do
  record killed.ljp --event $event --force
  eventually "samples" some_samples killed.ljp
  kill -9 $client
  wait $client 2> /dev/null || :
  eventually "$event: the session ends with its client" settled
  whole "$event: a client that is killed" killed.ljp
done
ok "a client that is killed leaves a whole file"
for step in hello started; do
  LJPROF_JOIN_STEP=$step:kill timeout 60 "$faults" record -p "$door" \
    -o early.ljp > fault.txt 2>&1 || :
  eventually "$step: threads and descriptors as before" settled
  [ ! -e early.ljp ] || "$ljprof" check early.ljp > check.txt ||
    fail "$step: $(cat check.txt)"
  rm -f early.ljp
done
ok "a client that is killed before the session has a name"
kill -STOP "$host"
refuses "a program that is stopped" 1 \
  "process $host (join_host) does not answer: it is stopped by a signal" \
  "$ljprof" status -p "$door"
kill -CONT "$host"

# -- Clients that mean no good -----------------------------------------------
python3 "$clients" "$door" garbage silent many || fail "hostile clients"
answers || fail "after hostile clients: $(cat status.txt)"
python3 "$clients" "$door" flood > flood.txt &
flood=$!
eventually "a flood" grep -q here flood.txt
for _ in 1 2 3 4 5; do
  answers || fail "beside 100 silent clients: $(cat status.txt)"
done
ok "beside 100 silent clients: $(head -n 1 status.txt)"
kill $flood
wait $flood 2> /dev/null || :
end "a program that listens"
[ ! -e "$door" ] || fail "the socket is there after exit()"
ok "exit() removes the socket; the output is as without a door"
refuses "nobody listens any more" 1 "there is no such socket" \
  "$ljprof" status -p "$door"

# -- How it ends -------------------------------------------------------------
listens loop
record end.ljp
eventually "samples" some_samples end.ljp
kill -TERM "$host"
wait "$host" || fail "the program ended with $?"
wait $client || fail "the program's end: exit code $?: $(cat record.txt)"
host=
whole "exit() while a client is joined" end.ljp
[ ! -e "$door" ] || fail "the socket is there after exit() with a client"
ok "exit() while a client is joined: the file is whole"
listens loop
record killed.ljp --force
eventually "samples" some_samples killed.ljp
over
wait $client || fail "kill -9 of the program: exit $?: $(cat record.txt)"
"$ljprof" report killed.ljp > report.txt 2>&1 || :
grep -q ' round host' report.txt || fail "$(cat report.txt)"
ok "kill -9 of the program: the file is readable"
[ -S "$door" ] || fail "kill -9 has removed the socket"
refuses "a socket that is left over" 1 "no program listens there any more" \
  "$ljprof" status -p "$door"
left=$door
script again "assert(misc.profile.listen('$left')) $loop"
door=$left
answers || fail "$(cat status.txt)"
grep -q "^process $host (luajit)" status.txt || fail "$(cat status.txt)"
ok "a socket that is left over is replaced"
same "a living socket is not" \
  "nil $left: process $host listens there already: name another path, or write %p in it for the process's number 98" \
  "$("$luajit" -e "print(misc.profile.listen('$left'))" | tr '\t' ' ')"
LJPROF_LISTEN=$left "$luajit" -e 'print("runs")' > env.txt 2>&1
same "... and the environment says so on one line" \
  "ljprof: LJPROF_LISTEN: $left: process $host listens there already: name another path, or write %p in it for the process's number runs" \
  "$(paste -s -d ' ' env.txt)"
over
"$luajit" -e "assert(misc.profile.listen('$left') and os.remove('$left'))
  io.open('$left', 'w'):close()" || fail "the socket's file is replaced"
[ -f "$left" ] || fail "exit() has removed a file that is not the socket"
rm "$left"
ok "exit() removes no file of others"
script deserted "local ffi = require('ffi') ffi.cdef('long syscall(long, ...);')
  assert(misc.profile.listen('deserted.sock')) print('ready')
  ffi.C.syscall(60, ffi.new('long', 0))"
gone() { ! kill -0 "$host" 2> /dev/null; }
eventually "the door keeps no process alive" gone
wait "$host" || fail "the program without threads ended with $?"
host=
[ ! -e deserted.sock ] || fail "the program without threads left its socket"
ok "the door keeps no process alive"

# -- What is in the way ------------------------------------------------------
long=$(printf '%0120d' 0)
mkdir folder
touch file
ln -s nowhere link
mkfifo fifo
cat > errors.lua << 'END'
local checks = { -- path, message, errno
  {"file", "file is a regular file, which is not replaced: name another path", 17},
  {"folder", "folder is a folder, which is not replaced: name another path", 17},
  {"link", "link is a symbolic link, which is not replaced: name another path", 17},
  {"fifo", "fifo is a pipe, which is not replaced: name another path", 17},
  {"none/door", "none/door: there is no folder none", 2},
  {"file/door", "file/door: there is no folder file", 20},
  {"folder/", "profiler misuse: folder/ is the path of a folder, not of a socket", 21},
  {arg[1], "profiler misuse: " .. arg[1] ..
    ": the path of a socket can have no more than 107 bytes", 36},
  {"", "profiler misuse: listen takes the path of a socket, or nil to listen no longer", 22},
  {7, "profiler misuse: listen takes the path of a socket, or nil to listen no longer", 22},
  {nil, "this program does not listen", 22},
}
for i = 1, 11 do
  local path, message, number = unpack(checks[i], 1, 3)
  local done, text, errno = misc.profile.listen(path)
  assert(done == nil and text == message and errno == number,
    tostring(done) .. " " .. tostring(text) .. " " .. tostring(errno))
end
assert(select(3, misc.profile.listen()) == 22)
assert(misc.profile.status().listen == nil)
assert(misc.profile.listen("%p-%p.sock"))
local path = misc.profile.status().listen
assert(path:match("^(%d+)-%1%.sock$"), path)
assert(select(2, misc.profile.listen("other")) ==
  "this program listens at " .. path .. " already: end that first")
assert(misc.profile.listen(nil))
assert(not io.open(path) and misc.profile.status().listen == nil)
for i = 1, 20 do
  assert(misc.profile.listen("again.sock"))
  assert(misc.profile.listen(nil))
end
-- The folder may be left, and come to be another one.
local ffi = require("ffi")
ffi.cdef[[int chdir(const char *); int luaM_listen(void *, const char *);]]
assert(misc.profile.listen("here.sock"))
ffi.C.chdir("folder")
assert(misc.profile.listen(nil))
ffi.C.chdir("..")
local L = ffi.new("char[1]")
assert(ffi.C.luaM_listen(L, "c.sock") == 0 and ffi.C.luaM_listen(L, "d") == 2)
assert(ffi.C.luaM_listen(L, nil) == 0 and ffi.C.luaM_listen(L, nil) == 2)
assert(ffi.C.luaM_listen(L, "none/x") == 4 and ffi.errno() == 2)
assert(ffi.C.luaM_listen(L, "") == 1 and ffi.errno() == 22)
-- Another file at the path is not removed.
assert(misc.profile.listen("mine.sock") and os.remove("mine.sock"))
io.open("mine.sock", "w"):close()
assert(misc.profile.listen(nil) and os.remove("mine.sock"))
-- All threads of ours are gone. (They may take a moment to end.)
local threads
for _ = 1, 600 do
  threads = 0
  for _ in io.popen("ls /proc/" .. path:match("^%d+") .. "/task"):lines() do
    threads = threads + 1
  end
  if threads == 1 then break end
end
assert(threads == 1, threads)
END
touch errors.txt
before=$(ls)
"$luajit" errors.lua "$long" > errors.txt 2>&1 || fail "$(cat errors.txt)"
same "each error says what it is, and nothing is left" "$before" "$(ls)"
for umask in 0 027 077; do
  (umask $umask && "$luajit" -e "assert(misc.profile.listen('mode.sock'))
    os.execute('stat -c %a mode.sock')") > mode.txt
  same "the mode with umask $umask" 600 "$(cat mode.txt)"
done
refuses "a path that is too long" 1 "is longer than that of a socket can be" \
  "$ljprof" status -p "./$long"
refuses "no socket" 1 "./file: this is not a socket" "$ljprof" status -p ./file
refuses "a name without a '/'" 2 "with a '/': type './file'" \
  "$ljprof" status -p file
python3 "$clients" stream.sock stream &
other=$!
eventually "another program's socket" test -S stream.sock
refuses "another program's socket" 1 "does not answer as a library of ours does" \
  "$ljprof" record -p ./stream.sock -o no.ljp
same "it is not replaced either" 98 \
  "$("$luajit" -e "print((select(3, misc.profile.listen('stream.sock'))))")"
kill $other
LJPROF_LISTEN='' "$luajit" -e 'assert(not misc.profile.status().listen)' ||
  fail "an empty variable"

# -- fork() ------------------------------------------------------------------
cat > fork.lua << 'END'
local ffi = require("ffi")
ffi.cdef[[int fork(void); int usleep(unsigned); int getpid(void);
  int execlp(const char *, ...); int waitpid(int, int *, int); void exit(int);]]
local wait = arg[1]
local child = ffi.C.fork()
if child == 0 and wait == "exec" then
  ffi.C.usleep(20000)
  ffi.C.execlp("sleep", "sleep", "1", ffi.cast("char *", nil))
elseif child == 0 and wait == "exit" then
  ffi.C.exit(0)
elseif child == 0 then
  while true do ffi.C.usleep(10000) end
end
if wait ~= "loop" then ffi.C.waitpid(child, nil, 0) end
print("ready", child)
io.stdout:flush()
while true do ffi.C.usleep(10000) end
END
forks() {
  : > fork.txt
  LJPROF_LISTEN=$PWD/$1 "$luajit" fork.lua "$2" > fork.txt 2> fork.err &
  host=$!
  name=fork
  eventually "fork" begun
  grep -q ready fork.txt || fail "fork: $(cat fork.err)"
  child=$(sed 's/[^0-9]*//' fork.txt)
}
forks one.sock loop
sleep 0.5
grep -qx ljprof-door "/proc/$child/task"/*/comm && fail "the child listens"
door=$PWD/one.sock
answers || fail "$(cat status.txt)"
grep -q "^process $host " status.txt || fail "$(cat status.txt)"
kill -9 "$child"
over
ok "without %p a child of fork() does not listen"
forks one.sock exit
answers || fail "a child's exit() has removed the socket: $(cat status.txt)"
over
rm -f one.sock
ok "the exit() of a child leaves the socket"
forks %p.sock loop
door=$PWD/$child.sock
eventually "the child listens" test -S "$door"
answers || fail "$(cat status.txt)"
grep -q "^process $child " status.txt || fail "$(cat status.txt)"
door=$PWD/$host.sock
answers || fail "$(cat status.txt)"
grep -q "^process $host " status.txt || fail "$(cat status.txt)"
kill -9 "$child"
over
ok "with %p it does, at a socket of its own"
forks %p.sock exec
[ ! -e "$child.sock" ] || fail "a child that executed a program left a socket"
over
ok "a child that executes another program leaves no socket"
same "nothing is said" "" "$(cat fork.err)"

# -- Other places ------------------------------------------------------------
script full "local ffi = require('ffi')
  ffi.cdef('int setrlimit(int, const unsigned long *); int open(const char *, int);')
  ffi.C.setrlimit(7, ffi.new('unsigned long[2]', { 9, 9 })) -- RLIMIT_NOFILE
  while ffi.C.open('/dev/null', 0) >= 0 do end
  assert(misc.profile.listen('full.sock')) $loop"
"$ljprof" record -p ./full.sock --duration 100ms -o full.ljp 2> record.txt ||
  fail "no descriptor is left: $(cat record.txt)"
over
ok "a program that has no descriptor left"
if [ "$(id -u)" = 0 ] && unshare -Urpfm --mount-proc true 2> unshare.txt; then
  LJPROF_LISTEN=$PWD/far%p.sock unshare -Urpfm --mount-proc \
    "$BUILD_DIR/bin/join_host" poll > far.txt &
  outer=$!
  eventually "ready" grep -q ready far.txt
  host=$(ps -o pid= --ppid $outer | tr -d ' ')
  door=$PWD/far1.sock
  answers || fail "$(cat status.txt)"
  grep -q "^process $host (join_host): " status.txt || fail "$(cat status.txt)"
  ok "a program in namespaces of its own: $(head -n 1 status.txt)"
  kill -TERM "$host"
  wait $outer || fail "the program in a namespace: $?"
  same "... is as it was" "poll: interrupted 0 early 0" "$(tail -n 1 far.txt)"
  listens loop
  unshare -Urpfm --mount-proc "$ljprof" status -p "$door" > status.txt 2>&1 ||
    fail "$(cat status.txt)"
  grep -q "^the program behind $door: library" status.txt ||
    fail "$(cat status.txt)"
  (cd "$SCRATCH" && unshare -Urpfm --mount-proc "$ljprof" record -p "$door" \
    --duration 200ms) > record.txt 2>&1 || fail "$(cat record.txt)"
  set -- "$host"-*.ljp
  [ -f "$1" ] || fail "the file has another name: $(ls)"
  ok "a client in namespaces of its own: $(head -n 1 status.txt)"
  end "a client in namespaces of its own"
fi

# -- Where ptrace is not possible --------------------------------------------
# Rights that a program has given up make it untraceable; and so it is for a
# debugger.
hidden="local ffi = require('ffi') ffi.cdef('int prctl(int, long);')
  assert(ffi.C.prctl(4, 0) == 0)" # PR_SET_DUMPABLE
printf '#!/bin/sh\nexec "$@"\n' > as_user
roots_luajit=$luajit roots_ljprof=$ljprof
if [ "$(id -u)" = 0 ]; then
  chmod 777 "$SCRATCH"
  # The other user may not be able to reach what stands below /root.
  mkdir user
  cp "$luajit" "$ljprof" "$BUILD_DIR/lib/libluajit-5.1.so.2" user
  luajit=$PWD/user/luajit ljprof=$PWD/user/ljprof
  printf '#!/bin/sh\nexec setpriv --reuid 65534 --clear-groups env "%s" "$@"\n' \
    "LD_LIBRARY_PATH=$PWD/user" > as_user
fi
chmod 755 as_user
script hidden "$hidden function round() local x = 0 for i = 1, 1e6 do
  x = x + i % 7 end return x end assert(misc.profile.listen('hidden.sock'))
  print('ready') while true do round() end" ./as_user
refuses "by its number" 1 "LJPROF_LISTEN=/PATH, and type '-p /PATH'" \
  ./as_user "$ljprof" status -p "$host"
./as_user "$ljprof" record -p ./hidden.sock -o hidden.ljp --duration 500ms \
  2> record.txt || fail "$(cat record.txt)"
"$ljprof" report --top 0 hidden.ljp > report.txt || fail "report"
grep -q ' round hidden' report.txt || fail "$(cat report.txt)"
ok "by its socket: $(grep samples record.txt)"
if [ "$(id -u)" = 0 ]; then
  "$roots_ljprof" status -p ./hidden.sock > status.txt || fail "$(cat status.txt)"
  over
  mkdir closed
  same "a folder that may not be written to" \
    "nil closed/x.sock: no socket can be made there: Permission denied 13" \
    "$(./as_user "$luajit" -e 'print(misc.profile.listen("closed/x.sock"))' |
      tr '\t' ' ')"
  luajit=$roots_luajit
  script others "assert(misc.profile.listen('others.sock')) $loop"
  refuses "another user's program" 1 \
    "others.sock: the program belongs to root (user 0): join it as that user" \
    ./as_user "$ljprof" status -p ./others.sock
  chmod 666 others.sock
  refuses "... also if its socket lets others connect" 1 \
    "only user 0 and root may join this program" \
    ./as_user "$ljprof" status -p ./others.sock
  over
  cp "$BUILD_DIR/bin/luajit_no_markers" setuid
  LJPROF_LISTEN=$PWD/setuid.sock ./setuid -e 'assert(misc.profile.status().listen)' ||
    fail "a static program does not listen"
  # (The sanitizers' own checks do not work in such a program.)
  if ! grep -q __asan_init setuid; then
    chown 65534 setuid
    chmod u+s setuid
    LJPROF_LISTEN=$PWD/setuid.sock ./setuid -e '
      local f = io.open("/proc/self/status"):read("*a")
      print(f:match("Uid:%s+0%s+65534") and "setuid" or "plain",
        misc.profile.status().listen)' > setuid.txt
    if grep -q '^setuid' setuid.txt; then
      same "a setuid program ignores the variable" "setuid nil" \
        "$(tr '\t' ' ' < setuid.txt)"
    fi
  fi
  rm setuid
else
  over
fi
ljprof=$roots_ljprof
# An older kernel (no close_range), by a seccomp filter. It also ends the program for
# call 1000, which nobody makes, so we do not join it by ptrace.
filter='local ffi = require("ffi")
ffi.cdef[[struct ins { uint16_t code; uint8_t jt, jf; uint32_t k; };
  struct prog { unsigned short len; struct ins *ins; };
  int prctl(int, long, long, long, long); int close(int); int fork(void);
  int usleep(unsigned);]]
local ins = ffi.new("struct ins[6]", {{0x20, 0, 0, 0}, {0x15, 0, 1, 436},
  {6, 0, 0, 0x50026}, {0x15, 0, 1, 1000}, {6, 0, 0, 0x80000000}, {6, 0, 0, 0x7fff0000}})
assert(ffi.C.prctl(38, 1, 0, 0, 0) == 0)
local prog = ffi.new("struct prog", {6, ins})
assert(ffi.C.prctl(22, 2, ffi.cast("long", ffi.cast("void *", prog)), 0, 0) == 0)'
script filter "$filter assert(misc.profile.listen('filter.sock'))
  local child = ffi.C.fork()
  if child == 0 then ffi.C.usleep(3e7) os.exit() end
  print('ready', child) while true do local go = io.open('go')
  if go then go:close() break end end
  for fd = 3, 2000 do ffi.C.close(fd) end print('closed') while true do end"
child=$(sed 's/[^0-9]*//' filter.txt)
refuses "a program in a sandbox" 1 "LJPROF_LISTEN=/PATH" \
  "$ljprof" status -p "$host"
door=./filter.sock
answers || fail "$(cat status.txt)"
set -- "/proc/$host/fd"/5[1-9][0-9]
[ -e "$1" ] || fail "the socket has a low number: $(ls "/proc/$host/fd")"
set -- "/proc/$child/fd"/5[1-9][0-9]
[ ! -e "$1" ] || fail "a child has the socket: $1"
kill "$child"
touch go
eventually "the program has closed all descriptors" grep -q closed filter.txt
eventually "the door ends" no_door
[ ! -e filter.sock ] || fail "the door ended, and left its socket"
over
ok "without tables of our own: joined, not inherited, closed by the program"
