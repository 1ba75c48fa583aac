#!/bin/sh
# Programs that cannot be joined, or not now: wedged in malloc(), waiting for a child
# of vfork(), without room for a thread, of 32 bits, traced, with a note that lies;
# and an ljprof that may not use ptrace. Each is said in one line, in a bounded time,
# and the program goes on as if nothing had been.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

# stuck MODE: join_faulty in the background, in the state where it is stuck: $host.
stuck() {
  rm -f go
  : > faulty.txt
  "$BUILD_DIR/bin/join_faulty" "$1" > faulty.txt 2>&1 &
  host=$!
  eventually "$1: $(cat faulty.txt)" grep -q "${2:-stuck}" faulty.txt
  sleep 0.3
}
# goes_on WHAT: it can be joined now, and ends as always.
goes_on() {
  "$ljprof" status -p "$host" > status.txt 2>&1 || fail "$1: $(cat status.txt)"
  kill -TERM "$host"
  wait "$host" || fail "$1: the program ended with $?: $(cat faulty.txt)"
  host=
  ok "$1: the program goes on, and can be joined"
}

if ldd "$BUILD_DIR/bin/join_faulty" | grep -q 'libc\.so\.6'; then
  stuck wedged
  refuses "a thread holds malloc's lock" 1 "it waits for memory (malloc), or is stopped" \
    timeout 60 "$ljprof" status -p "$host"
  refuses "the next one" 1 "an earlier ljprof has not finished joining it: a thread is still in our library" \
    timeout 60 "$ljprof" status -p "$host"
  touch go
  ours() { grep -qs ljprof- "/proc/$host/task"/*/comm; }
  nothing() { ! ours; }
  eventually "nothing of ours is left" nothing
  goes_on "malloc's lock is free"

  stuck wedged_all
  refuses "each thread waits for malloc's lock or holds it" 1 \
    "there was no moment at which a thread could be used safely" \
    timeout 60 "$ljprof" status -p "$host"
  touch go
  goes_on "all threads were in malloc"
fi

stuck vfork
child=$(pgrep -P "$host")
refuses "the child of a vfork()" 1 "shares the memory of its parent $host" \
  "$ljprof" status -p "$child"
refuses "the parent of a vfork()" 1 "it does not stop" \
  timeout 60 "$ljprof" status -p "$host"
touch go
goes_on "the parent of a vfork()"

stuck nproc ready
refuses "no room for a thread" 1 \
  "no room for what joining takes: Resource temporarily unavailable (a limit of threads" \
  "$ljprof" status -p "$host"
kill -TERM "$host"
wait "$host" || fail "nproc: the program ended with $?: $(cat faulty.txt)"
host=

# -- A sandbox, in which another thread than the one that is stopped is. ---------------
stuck sandbox
for command in "record -o old.ljp" "record --memory --no-cpu -o old.ljp" heap \
  "jitdump -o ."; do
  # shellcheck disable=SC2046,SC2086 # words
  refuses "a thread in a sandbox: $command" 1 "is in a sandbox (seccomp), which may end" \
    timeout 60 "$ljprof" ${command%% *} -p "$host" $(echo "$command " | cut -d' ' -f2-)
done
[ "$(find . -name '*.ljp' -o -name 'jit-*')" = "" ] || fail "a file was written: $(ls)"
shows_stack() { # A busy machine may not stop the thread in time.
  "$ljprof" dump-stacks -p "$host" > stacks.txt 2>&1 || fail "$(cat stacks.txt)"
  grep -q 'main chunk  *host:1' stacks.txt
}
eventually "the thread's stack" shows_stack
kill -0 "$host" || fail "the program has ended"
goes_on "a thread in a sandbox"

# -- A container's filter only lets calls fail. Only root can see that. ----------------
stuck container ready
if "$ljprof" status -p "$host" > status.txt 2>&1; then
  "$ljprof" record -p "$host" --duration 500ms -o contained.ljp 2> record.txt ||
    fail "$(cat record.txt)"
  "$ljprof" record -p "$host" --memory --no-cpu --duration 500ms -o memory.ljp \
    2> record.txt || fail "$(cat record.txt)"
  "$ljprof" heap -p "$host" --vm 2 -o heap.ljp > heap.txt 2>&1 || fail "$(cat heap.txt)"
  "$ljprof" dump-stacks -p "$host" > stacks.txt 2>&1 || fail "$(cat stacks.txt)"
  for file in contained memory heap; do
    "$ljprof" check $file.ljp > check.txt || fail "$file: $(cat check.txt)"
  done
  "$ljprof" report --top 0 contained.ljp > report.txt || fail "$(cat report.txt)"
  grep -q ' main chunk' report.txt || fail "$(cat report.txt)"
  if [ "$(id -u)" = 0 ] && setpriv --bounding-set -sys_admin true 2> setpriv.txt; then
    refuses "a container, and no right to see its filter" 1 \
      "try sudo, since only root can see whether it does" \
      setpriv --bounding-set -sys_admin "$ljprof" status -p "$host"
  fi
else
  grep -q "try sudo, since only root can see whether it does" status.txt ||
    fail "a container: $(cat status.txt)"
fi
goes_on "a container"

# -- Tracers. ------------------------------------------------------------------------
begin epoll
: > tracer.txt
"$BUILD_DIR/bin/join_faulty" tracer "$host" > tracer.txt 2>&1 &
tracer=$!
eventually "a tracer: $(cat tracer.txt)" grep -q ready tracer.txt
refuses "a program that is traced" 1 \
  "is traced by process $tracer (join_faulty): end that first" \
  "$ljprof" status -p "$host"
kill $tracer
wait $tracer || :
"$ljprof" status -p "$host" > status.txt 2>&1 || fail "untraced: $(cat status.txt)"
end "a tracer"
# Another thread than the first one is traced: the client takes one that is not.
begin storm
for thread in "/proc/$host/task"/*; do
  thread=${thread##*/}
  [ "$thread" = "$host" ] || break
done
: > tracer.txt
"$BUILD_DIR/bin/join_faulty" tracer "$thread" > tracer.txt 2>&1 &
tracer=$!
eventually "a tracer: $(cat tracer.txt)" grep -q ready tracer.txt
"$ljprof" status -p "$host" > status.txt 2>&1 || fail "one thread: $(cat status.txt)"
kill $tracer
wait $tracer || :
ok "a thread that is traced is left alone"
end "a traced thread"

# -- ptrace is forbidden. -------------------------------------------------------------
# Usage: forbid.py NUMBER COMMAND...: this system call fails with EPERM.
cat > forbid.py << 'END'
import ctypes, os, struct, sys
def op(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
program = (op(0x20, 0, 0, 0) +                    # the call's number
           op(0x15, 0, 1, int(sys.argv[1])) +     # is it this one?
           op(0x06, 0, 0, 0x00050000 | 1) +       # EPERM
           op(0x06, 0, 0, 0x7fff0000))            # any other: go on
room = ctypes.create_string_buffer(program)
class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Fprog(4, ctypes.addressof(room))), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
END
begin epoll
refuses "no ptrace()" 1 "may not be traced: the system forbids it" \
  python3 forbid.py 101 "$ljprof" status -p "$host"
refuses "no process_vm_readv()" 1 "may not be looked at" \
  python3 forbid.py 310 "$ljprof" status -p "$host"
refuses "no pidfd_getfd()" 1 "process $host (join_host)" \
  python3 forbid.py 438 "$ljprof" status -p "$host"
"$ljprof" record -p "$host" -o old.ljp --duration 100ms 2> record.txt ||
  fail "$(cat record.txt)"
cp old.ljp wanted.ljp
refuses "no linkat()" 1 "this file system cannot name a file" \
  python3 forbid.py 265 "$ljprof" record -p "$host" -o old.ljp --force
cmp old.ljp wanted.ljp || fail "the old recording is lost"
ok "where links are forbidden, --force keeps the old recording"
end "ptrace is forbidden"

# -- 32 bits. -------------------------------------------------------------------------
python3 - << 'END'
import os, struct
# pause(); again
code = bytes([0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7])
head = b"\x7fELF\1\1\1" + bytes(9) + struct.pack(
    "<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
load = struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, 84 + len(code), 84 + len(code),
                   5, 4096)
with open("narrow", "wb") as f:
    f.write(head + load + code)
os.chmod("narrow", 0o755)
END
./narrow 2> narrow.txt &
other=$!
sleep 0.3
if kill -0 $other 2> /dev/null && grep -q narrow "/proc/$other/maps"; then
  refuses "a program of 32 bits" 1 "process $other (narrow) is a 32-bit program" \
    "$ljprof" status -p $other
  kill $other
fi

# -- A program that lies. ---------------------------------------------------------------
for case in "version:its library is newer than this ljprof, or is not ours" \
  "nowhere:or is not ours" "data:or is not ours" "code:or is not ours" \
  "long:or is not ours" "odd:or is not ours" "stack:or is not ours" \
  "state:or is not ours" \
  "never:is not done yet, and goes on when it can: it has not run since" \
  "file:an earlier ljprof has not finished joining it" \
  "garbage:does not answer as a library of ours does" \
  "silent:does not answer" "wrong:does not answer"; do
  lie=${case%%:*}
  : > forged.txt
  "$BUILD_DIR/bin/join_forged" "$lie" > forged.txt 2>&1 &
  host=$!
  eventually "$lie: $(cat forged.txt)" grep -q ready forged.txt
  refuses "a note that lies: $lie" 1 "${case#*:}" \
    timeout 60 "$ljprof" status -p "$host"
  kill -TERM "$host"
  wait "$host" || fail "$lie: the program ended with $?: $(cat forged.txt)"
  host=
done
