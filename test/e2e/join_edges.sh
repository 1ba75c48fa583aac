#!/bin/sh
# What a client does not expect while it joins a program, and what must do no harm.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

# start MODE: join_edges in the background: $host.
start() {
  rm -f go began
  : > edges.txt
  "$BUILD_DIR/bin/join_edges" "$1" > edges.txt 2>&1 &
  host=$!
  eventually "$1: ready" grep -q ready edges.txt
  sleep 0.1
}
# reaches STEP: the client that runs does nothing for two seconds from this step
# on.
reaches() {
  LJPROF_JOIN_STEP=$1:sleep=2000 timeout 60 "$faults" status -p "$host" \
    > edge.txt 2>&1 &
  client=$!
  sleep 0.5
}

# The program executes another one, which keeps its number.
for case in exec_leader:seized exec_thread:seized exec_thread:checked \
  exec_thread:claimed; do
  start "${case%:*}"
  reaches "${case#*:}"
  touch go
  wait $client && fail "$case: the client has joined something" || code=$?
  same "$case: exit code" 1 "$code"
  # The second if the machine is so busy that the other program began after the pause.
  grep -qE "process $host (became another program while|.*has become another program)" \
    edge.txt || fail "$case: $(cat edge.txt)"
  eventually "$case: the other program begins" test -e began
  wait "$host" || fail "$case: $(cat edges.txt)"
  host=
  same "$case: the other program is left alone" "bytes written: 0" \
    "$(tail -n 1 edges.txt)"
done

# A client that is killed before it has blocked the signals of the thread: the
# program's handlers run on its own threads all the same.
start two
LJPROF_JOIN_STEP=registers:kill "$faults" status -p "$host" > edge.txt 2>&1 || :
ours() { grep -l '^ljprof-' "/proc/$host/task"/*/comm; }
eventually "our threads" ours > ours.txt
for thread in $(ours); do
  mask=$(sed -n 's/^SigBlk:.*\(....\)$/\1/p' "${thread%comm}status") || continue
  [ "$((0x$mask & 0x4200))" = "$((0x4200))" ] || # SIGUSR1, SIGTERM
    fail "$(cat "$thread") takes signals of the program: $mask"
done
kill -TERM "$host"
wait "$host" || fail "the program ended with $?: $(cat edges.txt)"
host=
ok "a client that is killed at the wrong time: our threads take no signal"

# A client that takes the socket too late: its number is one of the program's own.
start numbers
LJPROF_JOIN_STEP=ready:sleep=3000 timeout 60 "$faults" status -p "$host" \
  > edge.txt 2>&1 &
client=$!
eventually "the door" ours > ours.txt
touch go
wait "$client" && code=0 || code=$?
same "a client that is late each time: exit code" 1 "$code"
grep -q "this ljprof came too late" edge.txt || fail "$(cat edge.txt)"
kill -TERM "$host" 2> kill.txt || fail "$(cat edges.txt)"
wait "$host" || fail "the program ended with $?: $(cat edges.txt)"
host=
ok "a client that is late writes into no connection of the program"

# Ctrl-Z while a thread of the program is stopped: the client stops, and the thread
# goes on.
start two
python3 - "$faults" "$host" << 'END'
import os, signal, subprocess, sys, time

def state(pid):
    with open("/proc/%s/status" % pid) as f:
        return [line for line in f if line.startswith("State:")][0].split()[1]

def await_state(pid, good, what):
    end = time.time() + 30
    while not good(state(pid)):
        if time.time() > end:
            sys.exit(what + ": " + state(pid))
        time.sleep(0.01)

faults, host = sys.argv[1:]
client = subprocess.Popen(
    [faults, "status", "-p", host], preexec_fn=os.setpgrp,
    env=dict(os.environ, LJPROF_JOIN_STEP="stopped:sleep=1000"))
threads = os.listdir("/proc/%s/task" % host)
await_state(host, lambda s: any(state(t) == "t" for t in threads), "stopped")
os.killpg(client.pid, signal.SIGTSTP)
await_state(client.pid, lambda s: s == "T", "the client")
for thread in threads:
    await_state(thread, lambda s: s != "t", "thread " + thread)
os.killpg(client.pid, signal.SIGCONT)
sys.exit(client.wait())
END
kill -TERM "$host"
wait "$host" || fail "the program ended with $?: $(cat edges.txt)"
host=
ok "Ctrl-Z stops no thread of the program"

# A thread that waits, and gets a processor only every 300 ms: it stops after the
# client has tried another one, and its wait begins again all the same.
quota=/sys/fs/cgroup/cpu/ljprof-test-$$
if mkdir "$quota" 2> mkdir.txt && [ -w "$quota/cpu.cfs_quota_us" ]; then
  at_end="$at_end; rmdir '$quota'"
  start busy
  echo 300000 > "$quota/cpu.cfs_period_us"
  echo 1000 > "$quota/cpu.cfs_quota_us"
  echo "$host" > "$quota/cgroup.procs"
  for _ in 1 2 3 4 5; do
    "$ljprof" status -p "$host" > status.txt 2>&1 || cat status.txt
  done
  kill -TERM "$host" 2> kill.txt || fail "a late thread: $(cat edges.txt)"
  wait "$host" || fail "a late thread: $(cat edges.txt)"
  host=
  ok "the wait of a thread that stops late begins again"
fi

# A client that dies before the thread that it has sent has run: the next one must
# not send another thread onto the same stack. Here all threads are frozen.
mkdir groups
if [ "$(id -u)" = 0 ] && mount -t cgroup2 none groups 2> mount.txt; then
  group=$SCRATCH/groups/ljprof-test-$$
  at_end="$at_end; rmdir '$group'; umount '$SCRATCH/groups'"
  mkdir "$group"
  start two
  echo "$host" > "$group/cgroup.procs"
  reaches masked
  echo 1 > "$group/cgroup.freeze"
  eventually "frozen" grep -q '^frozen 1' "$group/cgroup.events"
  sent=$(ps -o pid= --ppid "$(ps -o pid= --ppid "$client" | tr -d ' ')")
  # shellcheck disable=SC2086 # a number
  kill -9 $sent
  wait "$client" || :
  "$ljprof" status -p "$host" > status.txt 2>&1 &
  client=$!
  sleep 2
  same "the next client waits" "" "$(cat status.txt)"
  echo 0 > "$group/cgroup.freeze"
  wait "$client" || fail "the next client: $(cat status.txt)"
  sleep 0.3
  kill -TERM "$host"
  wait "$host" || fail "a thread that was frozen: the program ended with $?"
  host=
  ok "a thread that was frozen on its way: the program is well"
fi
