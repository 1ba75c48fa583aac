-- A session with known content: the main chunk calls `middle`, which calls
-- `leaf`. Usage: sysprof_work.lua PATH HOW [OPTIONS]
local path, how = arg[1], arg[2]
local options = loadstring("return {" .. (arg[3] or "") .. "}")()
options.path = path
assert(misc.sysprof.start(options))
jit.off()
local sum = 0
local function leaf(n)
  for i = 1, n do
    sum = sum + i % 3 -- the line of the work
  end
end
local function middle(n)
  leaf(n)
  return sum
end
local t0 = os.clock()
while os.clock() - t0 < 0.4 do
  middle(50000)
end
if how == "stop" then
  assert(misc.sysprof.stop())
elseif how == "exit" then
  os.exit(7)
elseif how == "error" then
  error("on purpose")
elseif how == "kill" then
  local ffi = require("ffi")
  ffi.cdef "int kill(int, int); int getpid(void);"
  ffi.C.kill(ffi.C.getpid(), 9)
end
