#!/bin/sh
# The stream has the history of traces, in agreement with LuaJIT's own view:
# also where there is little room for code, where the JIT is switched off, and
# in combined sessions.
. "$(dirname "$0")/lib.sh"

luajit=$BUILD_DIR/bin/luajit
script=$SOURCE_DIR/test/e2e/trace_events.lua

"$luajit" "$script" work stream.ljp facts.txt || fail "the program"
"$BUILD_DIR/bin/ljprof" check stream.ljp > check.txt || fail "$(cat check.txt)"
"$BUILD_DIR/bin/ljprof" dump stream.ljp > dump.txt
"$luajit" "$script" check dump.txt facts.txt > told.txt 2>&1 ||
  fail "$(cat told.txt)"
ok "traces and their history: $(cat told.txt)"

# Each new trace needs room that only a flush can make; then the JIT is off.
# Each trace that is started is finished or aborted, and no event is lost.
cat > tiny.lua <<'END'
local options, start = ...
if options ~= "" then jit.opt.start("hotloop=3", unpack(loadstring("return " .. options)())) end
assert(loadstring(start))()
for k = 1, 400 do
  local code = ("local t = 0 for i = 1, 100 do if i %% 3 == 0 then t = t + %d end end return t"):format(k)
  assert(loadstring(code))()
  if k == 300 then jit.off() end
  if k == 350 then jit.on() jit.flush(1) end
end
END
summary() { # FILE
  "$BUILD_DIR/bin/ljprof" check "$1" > check.txt || fail "$(cat check.txt)"
  "$BUILD_DIR/bin/ljprof" dump "$1" | awk '
    /^  trace-event / {
      match($0, /action="[a-z]*"/)
      n[substr($0, RSTART + 8, RLENGTH - 9)]++
    }
    /^  loss / { lost++ }
    END {
      printf "start=%d stop=%d abort=%d flush=%d lost=%d", n["start"],
        n["stop"], n["abort"], n["flush"], lost
      exit !(n["start"] == n["stop"] + n["abort"] && !lost)
    }' || fail "$1: a start without an end"
}
cpu='misc.sysprof.start{mode = "C", path = "t.ljp"}'
both='misc.profile.start{path = "t.ljp"}'
for options in '{"maxtrace=10"}' '{"sizemcode=32", "maxmcode=32"}' \
  '{"maxrecord=20"}' '{"maxside=0"}'; do
  for how in "$cpu" "$both"; do
    "$luajit" tiny.lua "$options" "$how" || fail "$options"
    told=$(summary t.ljp) || fail "$options: $told"
    ok "$options, $how: $told"
    case $options:$told in
      *maxtrace*flush=[1-9]* | *maxmcode*flush=[1-9]*) ;;
      *maxtrace* | *maxmcode*) fail "nothing was flushed" ;;
      *maxrecord*abort=0*) fail "nothing was aborted" ;;
    esac
  done
done

# A session that only counts gets no trace events.
"$luajit" tiny.lua '' 'misc.sysprof.start{mode = "D", path = "t.ljp"}' ||
  fail "mode D"
same "no trace events in mode D" "start=0 stop=0 abort=0 flush=0 lost=0" \
  "$(summary t.ljp)"

# A second VM, made and closed during the session, has events of its own; when
# it closes there is no event for each of its traces.
cat > second.lua <<'END'
local ffi = require("ffi")
ffi.cdef[[
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void); void luaL_openlibs(lua_State *); void lua_close(lua_State *);
int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int);]]
jit.off(true, true)
assert(misc.sysprof.start{mode = "C", path = "second.ljp", flush = 10})
local other = ffi.C.luaL_newstate()
ffi.C.luaL_openlibs(other)
assert(ffi.C.luaL_loadstring(other, [[
  jit.opt.start("hotloop=3")
  for k = 1, 200 do assert(loadstring("local t = 0 for i = 1, 20 do t = t + i end return t"))() end
]]) == 0)
assert(ffi.C.lua_pcall(other, 0, 0, 0) == 0)
ffi.C.lua_close(other)
local stop = os.clock() + 0.1
repeat until os.clock() > stop
assert(misc.sysprof.stop())
END
"$luajit" second.lua || fail "two VMs"
"$BUILD_DIR/bin/ljprof" check second.ljp > check.txt || fail "$(cat check.txt)"
"$BUILD_DIR/bin/ljprof" dump second.ljp > dump.txt
awk '
  /^  trace-event / {
    match($0, /vm=[0-9]+ action="[a-z]+"/)
    n[substr($0, RSTART, RLENGTH)]++
  }
  /^  vm-close / && / vm=2/ { closed = 1 }
  END {
    for (what in n) printf "%s: %d; ", what, n[what]
    exit !(n["vm=2 action=\"stop\""] >= 100 && !n["vm=1 action=\"stop\""] &&
      n["vm=2 action=\"free\""] < n["vm=2 action=\"stop\""] && closed)
  }' dump.txt > told.txt || fail "two VMs: $(cat told.txt)"
ok "two VMs: $(cat told.txt)"

# Samples in the compiler show the program's frames.
script=$SOURCE_DIR/test/e2e/trace_compiler.lua
for timer in perf posix; do
  "$luajit" "$script" work c.ljp $timer > told.txt || fail "$timer: $(cat told.txt)"
  if grep -q '^not permitted' told.txt; then
    ok "$timer: $(cat told.txt)"
    continue
  fi
  "$BUILD_DIR/bin/ljprof" dump c.ljp > dump.txt
  "$luajit" "$script" check dump.txt > told.txt 2>&1 ||
    fail "$timer: $(tail -n 5 told.txt)"
  ok "$timer: whole stacks of samples in the compiler: $(cat told.txt)"
done
