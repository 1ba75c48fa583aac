-- A child that is not recorded, of fork() or of a raw clone(), for which no
-- handlers of fork() run: it has neither writer nor timers. The session ends
-- there at once, and another may begin.
-- Usage: raw_clone.lua PATH sysprof|memprof|profile fork|clone
local ffi = require("ffi")
ffi.cdef "long syscall(long, ...); int fork(); int waitpid(int, int *, int);"
local CLONE, SIGCHLD = 56, ffi.new("long", 17)
local none = ffi.new("long", 0)
local profiler = misc[arg[2]]
local function work() return ("x"):rep(100000):reverse():upper() end
assert(profiler.start{path = arg[1]})
work()
local pid = arg[3] == "fork" and ffi.C.fork() or
  tonumber(ffi.C.syscall(CLONE, SIGCHLD, none, none, none, none))
if pid == 0 then
  work()
  local ok, why = profiler.stop()
  assert(ok == nil and why:find("running$"), why)
  ok, why = profiler.start{path = arg[1] .. ".anew"}
  if not ok and arg[3] == "clone" and why:find("while the loader was busy") then
    os.exit(0) -- see copy_host.c
  end
  assert(ok, why)
  work()
  assert(profiler.stop())
  os.exit(0)
end
work()
local status = ffi.new("int[1]")
ffi.C.waitpid(pid, status, 0)
assert(status[0] == 0, "the child failed")
assert(profiler.stop())
