-- A child of fork(): records into a file of its own, or not at all.
-- Usage: sysprof_fork.lua PATH stop|follow
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int);"
jit.off()
local sum = 0
local function spin(seconds)
  local t0 = os.clock()
  while os.clock() - t0 < seconds do
    for i = 1, 10000 do sum = sum + i % 3 end
  end
end
local function in_child() spin(0.3) end
local function in_parent() spin(0.3) end
assert(misc.sysprof.start{path = arg[1], fork = arg[2]})
spin(0.05)
local pid = ffi.C.fork()
if pid == 0 then
  in_child()
  local state, ok = misc.sysprof.status().state, misc.sysprof.stop()
  if arg[2] == "follow" then
    assert(state == "running" and ok == true, state)
  else
    assert(state == "stopped" and ok == nil, state)
    assert(misc.sysprof.start{mode = "D"}, "a child may start anew")
    assert(misc.sysprof.stop())
  end
  os.exit(0)
end
in_parent()
local status = ffi.new("int[1]")
ffi.C.waitpid(pid, status, 0)
assert(status[0] == 0, "the child failed")
assert(misc.sysprof.stop())
