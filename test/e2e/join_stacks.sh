#!/bin/sh
# ljprof dump-stacks -p: the stacks of all threads and suspended coroutines of a
# program that runs, waits or hangs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

refuses "no process" 2 "-p PID is missing" "$ljprof" dump-stacks
refuses "no number" 2 "-p is 'x'" "$ljprof" dump-stacks -p x
refuses "an argument" 2 "unexpected argument 'a'" "$ljprof" dump-stacks -p 1 a
refuses "an unknown option" 2 "did you mean --locals?" \
  "$ljprof" dump-stacks -p 1 --local
refuses "a process that is gone" 1 "there is no process 4194304" \
  "$ljprof" dump-stacks -p 4194304

# stacks OPTION...: the stacks of $host in stacks.txt. Who starts ljprof may ignore
# SIGCHLD.
stacks() {
  env --ignore-signal=CHLD "$ljprof" dump-stacks -p "$host" "$@" > stacks.txt 2> error.txt ||
    fail "$mode: $(cat error.txt)"
  same "$mode: no complaint" "" "$(cat error.txt)"
}
# entry HEAD: the lines of the thread or coroutine whose first line begins so,
# with single spaces.
entry() {
  awk -v head="$1" '
    /^(Thread|Coroutine)/ { on = index($0, head) == 1; next }
    /^$/ { on = 0 }
    on' stacks.txt | sed 's/^ *//; s/   */ | /'
}
# has_lines WHAT TEXT: fails unless these lines are in it, in this order and next
# to each other.
has_lines() {
  case "
$2
" in
  *"
$3
"*) ok "$1" ;;
  *) fail "$1: wanted '$3' in: $2" ;;
  esac
}

# -- Coroutines, a loop, locals ----------------------------------------------------
cat > loop.lua << 'END2'
local function inner(n)
  local text = "a\n" .. n
  coroutine.yield(n)
  return text
end
local function middle(n)
  local t = {n}
  pcall(inner, n + 1)
  return t
end
local function outer(n)
  middle(n + 1)
  return 1
end
local suspended = coroutine.create(outer)
coroutine.resume(suspended, 5)
local fresh = coroutine.create(outer)
local over = coroutine.create(function() end)
coroutine.resume(over)
local wrong = coroutine.create(function() error("x") end)
coroutine.resume(wrong)
local function work(step)
  local name, sum = "work", 0
  io.open("begun", "w"):close()
  while true do
    sum = sum + step
    if sum > 1e9 then sum = 0 end
  end
end
local function call(a)
  local held = true
  work(a + 7)
  return held
end
coroutine.wrap(function() call(4) end)()
return suspended, fresh, over, wrong
END2
# lua MODE OPTION...: runs a script in the background: $host.
lua() {
  mode=$1
  shift
  rm -f begun
  "$BUILD_DIR/bin/luajit" "$@" > host.txt 2>&1 &
  host=$!
  eventually "$mode: $(cat host.txt)" test -e begun
}
over() {
  kill -9 "$host"
  wait "$host" 2> killed.txt || :
  host=
}
lua interpreter -joff loop.lua
stacks --locals
same "two coroutines are suspended" 2 "$(grep -c '^Coroutine' stacks.txt)"
grep -q "^process $host (luajit): 1 thread, 2 suspended coroutines\$" stacks.txt ||
  fail "the head: $(cat stacks.txt)"
thread=$(entry "Thread $host")
has_lines "a loop in the interpreter, with locals" "$(echo "$thread" | sed 's/^sum = [0-9]*$/sum = N/; s/^work | loop.lua:.*/work/')" \
  'work
step = 11
name = "work"
sum = N
call | loop.lua:32
a = 4
held = true
function:35 | loop.lua:35'
echo "$thread" | grep -qE '^work \| loop.lua:2[567]$' || fail "the line: $thread"
ok "it is in the loop"
has_lines "the C below" "$(echo "$thread" | sed 's/ |.*//')" 'lua_pcall'
suspended=$(grep '^Coroutine.*: suspended$' stacks.txt)
same "one is suspended" 1 "$(echo "$suspended" | wc -l)"
same "a coroutine that is suspended three deep" 'coroutine.yield | builtin
inner | loop.lua:3
n = 7
text = "a\x0a7"
pcall | builtin
middle | loop.lua:8
n = 6
t = table: ADDRESS
outer | loop.lua:12
n = 5' "$(entry "$suspended" | sed 's/0x[0-9a-f]*$/ADDRESS/')"
same "one that has not begun" 'outer | loop.lua:11' \
  "$(entry "$(grep '^Coroutine.*: not started$' stacks.txt)")"
stacks
same "no locals unless asked for" 0 "$(grep -c ' = ' stacks.txt)"
"$ljprof" dump-stacks -p "$host" --json --locals > stacks.json || fail "JSON"
python3 - "$host" << 'END2' || fail "JSON: $(cat stacks.json)"
import json, sys
d = json.load(open("stacks.json"))
assert d["pid"] == int(sys.argv[1]) and d["program"] == "luajit" and d["all_objects"]
t, = d["threads"]
assert (t["state"], t["vm"], t["read"], t["changing"]) == ("R", 1, True, False), t
names = [f["function"] for f in t["frames"] if f["kind"] == "Lua"]
assert names == ["work", "call", "function:35", "main chunk"], names
assert t["frames"][-1]["kind"] == "host", t["frames"][-1]
a, b = d["coroutines"]
assert (a["started"], b["started"]) == (False, True)
assert [f["place"] for f in b["frames"]] == ["", "loop.lua:3", "", "loop.lua:8", "loop.lua:12"]
assert b["frames"][1]["locals"] == [{"name": "n", "value": "7"},
                                    {"name": "text", "value": "\"a\\x0a7\""}]
END2
ok "JSON has the same"
over
lua compiled loop.lua
compiled() {
  stacks --locals
  grep -q '^Thread.*running; VM 1, compiled' stacks.txt
}
eventually "a compiled loop" compiled
has_lines "a compiled loop" "$(entry "Thread $host" | sed 's/loop.lua:2[567]/LINE/')" 'work | LINE
call | loop.lua:32
function:35 | loop.lua:35'
# It goes on as before, and nothing of ours stays.
alone() {
  [ "$(ls "/proc/$host/task")" = "$host" ]
}
eventually "no thread of ours stays" alone
grep -q '^TracerPid:.*[1-9]' "/proc/$host/status" && fail "a tracer stays"
[ "$(sed 's/.*) \(.\).*/\1/' "/proc/$host/stat")" = R ] || fail "it does not run"
ok "the program runs on"
# A session of another client does not mind.
record other.ljp
stacks
has_lines "beside a recording" "$(entry "Thread $host")" 'call | loop.lua:32'
kill -INT "$client"
wait "$client" || fail "$(cat record.txt)"
"$ljprof" check other.ljp > check.txt || fail "$(cat check.txt)"
over

# -- Threads that hang, each with a VM -----------------------------------------------
cat > threads.lua << 'END2'
function blocked()
  local function round(n)
    begins()
    while true do n = (n + 1) % 997 end
  end
  jit.off(round)
  coroutine.wrap(round)(3)
end
local function critical(what)
  local depth = #what
  take_lock()
  return depth
end
function locked()
  local ok = pcall(critical, "four")
  return ok
end
function sleeps()
  kept = coroutine.wrap(function(x) coroutine.yield(x) end)
  kept(1)
  table.sort({1, 2}, function() sleep() end)
end
END2
mode=threads
"$BUILD_DIR/bin/stacks_host" threads.lua > host.txt 2>&1 &
host=$!
eventually "threads: $(cat host.txt)" grep -q ready host.txt
stacks --locals
same "four threads" 4 "$(grep -c '^Thread' stacks.txt)"
# thread NAME: its lines.
thread() {
  entry "$(grep "^Thread.*\"$1\"" stacks.txt)"
}
has_lines "a loop with all signals blocked" "$(thread blocked)" \
  'blocked | threads.lua:7'
thread blocked | grep -qE '^round \| threads.lua:4$' ||
  fail "blocked: $(cat stacks.txt)"
has_lines "a lock that is never released" "$(thread locked)" \
  'critical | threads.lua:11
what = "four"
depth = 4'
has_lines "through pcall" "$(thread locked | grep -v '=')" 'pcall | builtin
locked | threads.lua:15'
thread locked | grep -q '^host_take_lock |' || fail "no C: $(cat stacks.txt)"
grep -q '^Thread.*"locked": waiting in .*futex.*; VM ' stacks.txt ||
  fail "it waits for a futex: $(cat stacks.txt)"
ok "C functions between them, and where it waits"
has_lines "Lua that C has called" "$(thread sleeps | grep -e threads.lua -e builtin)" \
  'function:21 | threads.lua:21
table.sort | builtin
sleeps | threads.lua:21'
grep -q "^Thread $host .*waiting" stacks.txt || fail "$(cat stacks.txt)"
thread stacks_host | grep -q '^main |' || fail "the first: $(cat stacks.txt)"
ok "a thread without Lua"
same "each VM has its coroutines" 1 "$(grep -c '^Coroutine.*suspended' stacks.txt)"
same "three VMs" 3 "$(grep -o 'VM [0-9]*' stacks.txt | sort -u | wc -l)"
over
# -- No helper can start, since malloc's lock is held for ever. -----------------------
if [ -x "$BUILD_DIR/bin/wedged_host" ]; then
  mode=wedged
  "$BUILD_DIR/bin/wedged_host" > host.txt 2>&1 &
  host=$!
  eventually "wedged: $(cat host.txt)" grep -q ready host.txt
  code=0
  "$ljprof" dump-stacks -p "$host" > stacks.txt 2> error.txt || code=$?
  same "wedged: it fails" 1 "$code"
  grep -q "only machine code can be shown" error.txt || fail "$(cat error.txt)"
  has_lines "wedged: who holds the lock" "$(sed 's/^ *//; s/   */ | /' stacks.txt)" \
    'wedged_in_the_allocator | wedged_host
wedged_hold | wedged_host'
  grep -q "^Thread $host " stacks.txt || fail "$(cat stacks.txt)"
  grep -q '^TracerPid:.*[1-9]' "/proc/$host/status" && fail "a tracer stays"
  ok "wedged: no thread is held"
  over
fi
echo "$passed checks passed"
