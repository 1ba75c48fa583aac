#!/bin/sh
# ljprof list: how many VMs and which sessions a program has, now; its child, too.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/join_lib.sh"

cat > work.lua << 'END'
local ffi = require("ffi")
ffi.cdef [[ int fork(void); int usleep(unsigned); int waitpid(int, int *, int);
  struct lua_State *luaL_newstate(void); void lua_close(struct lua_State *); ]]
local function wait(name)
  print(name)
  io.stdout:flush()
  while not io.open(name .. ".seen") do ffi.C.usleep(10000) end
end
wait("nothing")
local other = ffi.C.luaL_newstate()
assert(misc.sysprof.start { path = "cpu.ljp" })
wait("two")
assert(misc.memprof.start { path = "memory.ljp" })
wait("both")
local child = ffi.C.fork()
if child == 0 then
  while not io.open("end.seen") do ffi.C.usleep(10000) end
  os.exit(0)
end
print("child " .. child)
wait("forked")
assert(misc.sysprof.stop())
ffi.C.lua_close(other)
wait("memory")
assert(misc.memprof.stop())
wait("end")
ffi.C.waitpid(child, nil, 0)
END

"$BUILD_DIR/bin/luajit" work.lua > host.txt 2>&1 &
host=$!
# lists MOMENT VMS SESSIONS [PID]: what the list says then.
lists() {
  eventually "the program: $(cat host.txt)" grep -qx "$1" host.txt
  "$ljprof" list > list.txt 2>&1 || fail "$(cat list.txt)"
  same "$1: VMs and sessions" "$2 $3" \
    "$(awk -v pid="${4:-$host}" '$1 == pid { print $3, $4 }' list.txt)"
}
lists nothing 1 -
: > nothing.seen
lists two 2 cpu
: > two.seen
lists both 2 cpu,memory
: > both.seen
lists forked 2 cpu,memory
child=$(sed -n 's/^child //p' host.txt)
lists forked 2 - "$child"
: > forked.seen
lists memory 1 memory
: > memory.seen
lists end 1 -

"$ljprof" record -p "$host" -o joined.ljp > record.txt 2>&1 &
record=$!
joined() {
  "$ljprof" list > list.txt 2>&1 && grep -q "^ *$host .* cpu:$record " list.txt
}
eventually "no session of ljprof: $(cat list.txt record.txt)" joined
ok "a session of ljprof has its number"
kill -TERM $record
wait $record || fail "$(cat record.txt)"
lists end 1 -
: > end.seen
wait "$host" || fail "the program: $(cat host.txt)"
host=
