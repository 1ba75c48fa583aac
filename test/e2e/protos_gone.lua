-- Under a profiler, loads very many chunks, runs each one and leaves it to the
-- collector. A function's name, line, chunk and size of its allocations all
-- give the same number (test/e2e/protos_judge.c). The memory that is kept for
-- freed functions must stay bounded.
--
--   protos_gone.lua HOW LOADS FILE     HOW: cpu, memory, both
local how, loads, file = ...
loads = tonumber(loads)
local ffi = require("ffi")
local new = ffi.new

local in_use = dofile((arg[0]:gsub("e2e/[^/]+$", "support/resident.lua")))
local function resident()
  collectgarbage()
  return in_use()
end

-- The function is on one line.
local text = [[local function f_%d(new, list)
 for i = 1, 3 do list[i] = new("char[?]", 2000 + %d) end
 return list end return f_%d]]
text = text:gsub("\n", "")
local list = {}
local function round(n)
  local source = ("\n"):rep(n % 97) .. text:format(n, n % 1009, n)
  assert(loadstring(source, "=c" .. n))()(new, list)
end

local cpu = { interval = 0.1, max_overhead = 0 }
if how == "cpu" then
  assert(misc.sysprof.start({ path = file, mode = "C", interval = 0.1,
    max_overhead = 0 }))
elseif how == "memory" then
  assert(misc.memprof.start({ path = file, every = true }))
else
  assert(misc.profile.start({ path = file, cpu = cpu,
    memory = { every = true } }))
end
local early
for n = 1, loads do
  round(n)
  if n == math.floor(loads / 4) then
    early = resident()
  end
end
local late = resident()
local profiler = how == "cpu" and misc.sysprof or how == "memory"
  and misc.memprof or misc.profile
assert(profiler.stop())
print(("%d chunks; resident after a quarter %d KiB, at the end %d KiB")
  :format(loads, early, late))
-- In between, the writer's tables grow to their bounds.
assert(late - early < 24 * 1024, "memory grows without bound")
