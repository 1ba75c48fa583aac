-- A child of a raw clone(), for which no handlers of fork() run: it has neither
-- writer nor timers, and a session ends there at once.
-- Usage: raw_clone.lua PATH sysprof|memprof|profile
local ffi = require("ffi")
ffi.cdef "long syscall(long, ...); int waitpid(int, int *, int);"
local CLONE, SIGCHLD = 56, ffi.new("long", 17)
local none = ffi.new("long", 0)
local profiler = misc[arg[2]]
local function work() return ("x"):rep(100000):reverse():upper() end
assert(profiler.start{path = arg[1]})
work()
local pid = tonumber(ffi.C.syscall(CLONE, SIGCHLD, none, none, none, none))
if pid == 0 then
  local began = os.time()
  work()
  local ok, why = profiler.stop()
  assert(ok == nil and why:find("running$"), why)
  if arg[2] ~= "profile" then
    assert(profiler.start{path = arg[1] .. ".anew"}, "a child may start anew")
    work()
    assert(profiler.stop())
  end
  assert(os.time() - began < 5, "stop has waited")
  os.exit(0)
end
work()
local status = ffi.new("int[1]")
ffi.C.waitpid(pid, status, 0)
assert(status[0] == 0, "the child failed")
assert(profiler.stop())
