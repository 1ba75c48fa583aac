#!/bin/sh
# From the start of the first session on, the loader binds no call of ours any
# more, in the library and in a program that has it linked in: binding takes a
# caller's stack, which may be a signal handler's. The loader itself tells what
# it binds (LD_DEBUG).
. "$(dirname "$0")/lib.sh"

cat > sessions.lua << 'END'
local start, stop = ...
local ffi = require("ffi")
ffi.cdef("int tcgetsid(int); int tcflow(int, int);")
local function work()
  local keep, till = {}, os.clock() + 0.05
  repeat
    for i = 1, 200 do
      keep[i] = { tostring(i), function() return i end }
      pcall(error, keep)
    end
    loadstring("local function f() return {} end return f()")()
  until os.clock() > till
  collectgarbage()
end
assert(loadstring(start))()
assert(ffi.C.tcgetsid) -- the loader tells of this
work()
assert(ffi.C.tcflow)
assert(loadstring(stop))()
END

# bound WHAT START STOP: neither program has a call bound between the two names.
bound() {
  for program in luajit luajit_no_markers; do
    rm -f bindings.*
    LD_DEBUG=bindings LD_DEBUG_OUTPUT=bindings "$BUILD_DIR/bin/$program" \
      sessions.lua "$2" "$3" || fail "$1: $program failed"
    sed -n 's/.*binding file \([^ ]*\) .* symbol `\([^'"'"']*\).*/\1 \2/p' \
      bindings.* > names.txt
    awk -v at=before '
      { sub(".*/", "", $1) }
      $2 == "tcflow" { at = "after" }
      $1 ~ /^luajit|^libluajit/ { print at, $2 }
      $2 == "tcgetsid" { at = "between" }' names.txt > ours.txt
    for told in "before tcgetsid" "after tcflow"; do
      grep -qx "$told" ours.txt ||
        fail "$1: the loader does not say what it binds"
    done
    same "$1, $program: no call is bound while the session runs" "" \
      "$(sed -n 's/^between //p' ours.txt)"
  done
}

bound "a CPU session" "assert(misc.sysprof.start{path = 'a.ljp'})" \
  "assert(misc.sysprof.stop())"
bound "a wall session" \
  "assert(misc.sysprof.start{path = 'b.ljp', event = 'wall'})" \
  "assert(misc.sysprof.stop())"
bound "a memory session" \
  "assert(misc.memprof.start{path = 'c.ljp', every = true, native = true})" \
  "assert(misc.memprof.stop())"
bound "a combined session" "assert(misc.profile.start{path = 'd.ljp'})" \
  "assert(misc.profile.stop())"
LJPROF_RECORD="path=$PWD/e.ljp"
export LJPROF_RECORD
bound "a session that the environment asks for" "" ""
