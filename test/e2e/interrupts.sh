#!/bin/sh
# ljprof record can be interrupted in each of its phases: its exit code tells the
# signal, what was recorded until then is readable, and nothing else is left.
. "$(dirname "$0")/lib.sh"
unset DEBUGINFOD_URLS

ljprof=$BUILD_DIR/bin/ljprof
luajit=$BUILD_DIR/bin/luajit
export LUAJIT="$luajit"

# await WHAT COMMAND...: until the command succeeds.
await() {
  awaited=$1
  shift
  for _ in $(seq 1 600); do
    if "$@" > /dev/null 2>&1; then return; fi
    sleep 0.05
  done
  fail "never: $awaited: $(cat out err)"
}

# begin OPTION...: ljprof record in a process group of its own, since a shell
# lets its background jobs ignore SIGINT. Its number is in $record.
begin() {
  rm -f ready pid
  # shellcheck disable=SC2016 # the inner shell's
  setsid env --default-signal=INT,QUIT sh -c '
    echo $$ > pid
    exec "$@"' sh "$ljprof" record --force --flush 10 "$@" > out 2> err &
  job=$!
  await "record begins" test -s pid
  record=$(cat pid)
}

# ends WHAT CODE: record's exit code; 128 and a signal, however it came about.
ends() {
  code=0
  wait "$job" || code=$?
  same "$1: exit code" "$2" "$code"
  same "$1: nothing else is left" "" \
    "$(find . -name '*.ljp-*' -o -name '.out*' -o -name '*.ljp.??????')"
}

# The program runs, and says so, until it gets a signal.
cat > runs.lua << 'EOL'
local ffi = require("ffi")
ffi.cdef("void (*signal(int, void (*)(int)))(int);")
ffi.C.signal(2, nil) -- The interpreter has its own handler.
local function work(seconds)
  local stop = os.clock() + seconds
  repeat local t = {} for i = 1, 1000 do t[i] = {i} end until os.clock() > stop
end
work(0.2)
io.open("ready", "w"):close()
work(60)
EOL
number() {
  case $1 in HUP) echo 1 ;; INT) echo 2 ;; QUIT) echo 3 ;; TERM) echo 15 ;; esac
}
# shellcheck disable=SC2016 # the inner shell's
for signal in INT TERM HUP QUIT; do
  begin -o out.ljp -- sh -c 'ulimit -c 0; exec "$LUAJIT" runs.lua'
  await "the program runs" test -e ready
  kill "-$signal" "$record"
  ends "the program runs, $signal" $((128 + $(number $signal)))
  "$ljprof" report out.ljp > report.txt 2>&1 ||
    fail "$signal: not readable: $(cat report.txt)"
  [ $signal != INT ] || continue
  begin -o out.ljp -- sh -c 'ulimit -c 0; exec "$LUAJIT" runs.lua'
  await "the program runs" test -e ready
  kill "-$signal" "-$record"
  ends "the program runs, $signal to all" $((128 + $(number $signal)))
done

# A FIFO that nobody reads: the program runs unrecorded.
mkfifo fifo
for signal in INT TERM HUP; do
  begin -o fifo -- "$luajit" runs.lua
  await "the program runs" test -e ready
  kill "-$signal" "$record"
  ends "a FIFO without a reader, $signal" $((128 + $(number $signal)))
  grep -q 'not recorded: ' err || fail "not told: $(cat err)"
done
begin -o fifo -- "$luajit" -e 'os.exit(7)'
ends "a FIFO without a reader, to the end" 7

# A FIFO whose reader has stopped reading: the program's end waits for it.
cat > fills.lua << 'EOL'
local ffi = require("ffi")
ffi.cdef("void (*signal(int, void (*)(int)))(int);")
ffi.C.signal(2, nil)
local stop = os.clock() + 0.5
repeat local t = {} for i = 1, 1000 do t[i] = {i} end until os.clock() > stop
io.open("ready", "w"):close()
EOL
for signal in INT TERM HUP; do
  exec 9<> fifo
  begin -o fifo --memory --every -- "$luajit" fills.lua
  await "the program ends" test -e ready
  kill "-$signal" "$record"
  ends "a FIFO with a slow reader, $signal" $((128 + $(number $signal)))
  exec 9<&-
done

# The program has ended, and its symbols come from a server that never answers.
if ! command -v python3 > /dev/null ||
  ! ldconfig -p | grep -q 'libdebuginfod\.so\.1'; then
  echo "no server of symbols here: that part is not tested"
  exit 0
fi
python3 -c '
import os, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(64)
open("port.new", "w").write(str(s.getsockname()[1]))
os.rename("port.new", "port")
held = []
while True:
    held.append(s.accept())
    open("asked", "a").close()
' &
server=$!
trap 'kill $server; rm -rf "$SCRATCH"' EXIT
await "the server begins" test -s port
DEBUGINFOD_URLS=http://127.0.0.1:$(cat port)
export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH="$SCRATCH/cache"
cat > spin.c << 'EOL'
volatile unsigned long spin_count;
int luaopen_spin(void *L);
int luaopen_spin(void *L)
{
  (void)L;
  for (int i = 0; i < 50000000; i++)
    spin_count++;
  return 0;
}
EOL
"${CC:-cc}" -O1 -s -shared -fPIC -Wl,--build-id -o spin.so spin.c ||
  fail "no module"
for signal in INT TERM HUP; do
  rm -rf asked cache
  begin -o out.ljp --embed-symbols -- "$luajit" -e '
    package.loadlib("./spin.so", "luaopen_spin")()
    os.exit(0) -- lua_close() would unload it, maybe before the writer saw it'
  await "the server is asked" test -e asked
  kill "-$signal" "$record"
  ends "symbols are embedded, $signal" $((128 + $(number $signal)))
  "$ljprof" check out.ljp > check.txt || fail "not whole: $(cat check.txt)"
done
