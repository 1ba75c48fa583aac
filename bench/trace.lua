-- What knowledge about traces costs; see trace.sh.
--   trace.lua sample FILE TIMER   a sample, by the number of inlined functions
--   trace.lua events FILE         trace events, while LuaJIT compiles
--   trace.lua jitdump FILE        a session with jitdump, while LuaJIT compiles
local what, file, timer = ...

-- CPU time for each trace with jitdump, less the time with a session alone, in pairs.
if what == "jitdump" then
  local ffi = require("ffi")
  ffi.cdef("int getpid(void);")
  local chunk = assert(loadfile("bench/micro/traces.lua"))
  setfenv(chunk, setmetatable({ arg = { 8 }, print = function() end },
    { __index = _G }))
  local traces = 0
  local function count(event)
    if event == "stop" then
      traces = traces + 1
    end
  end
  jit.attach(count, "trace")
  chunk()
  jit.attach(count)
  local function spent(jitdump)
    assert(misc.sysprof.start({ mode = "C", path = file, interval = 60000,
      jitdump = jitdump }))
    local began = os.clock()
    chunk()
    local seconds = os.clock() - began
    assert(misc.sysprof.stop())
    return seconds
  end
  local more = {}
  spent(true)
  for i = 1, 31 do
    local order = i % 2 == 0
    local first = spent(order)
    more[i] = (spent(not order) - first) * (order and -1 or 1) / traces * 1e6
  end
  os.remove(("/tmp/perf-%d.map"):format(ffi.C.getpid()))
  table.sort(more)
  print(("jitdump: %.1f us more of CPU time for each of %d traces " ..
    "(quartiles %.1f, %.1f)"):format(more[16], traces, more[8], more[24]))
  return
end

if what == "events" then
  local chunk = assert(loadfile("bench/micro/traces.lua"))
  setfenv(chunk, setmetatable({ arg = { 8 }, print = function() end },
    { __index = _G }))
  local function spent()
    local began = os.clock()
    chunk()
    return os.clock() - began
  end
  local ratios = {}
  spent()
  for i = 1, 31 do
    local off = spent()
    assert(misc.sysprof.start({ mode = "C", path = file, interval = 60000 }))
    local on = spent()
    assert(misc.sysprof.stop())
    ratios[i] = on / ((off + spent()) / 2)
  end
  table.sort(ratios)
  print(("trace events in a session: CPU time of the process %+.2f %% " ..
    "(quartiles %+.2f, %+.2f)"):format(100 * (ratios[16] - 1),
    100 * (ratios[8] - 1), 100 * (ratios[24] - 1)))
  return
end

-- A function with a loop whose trace inlines this number of functions; it
-- spends nearly all of its time in the innermost one.
local function make(depth)
  local parts = { "local function f0(x)\n" ..
    "  return 3 / (3 / (3 / (3 / (x + 1) + 1) + 1) + 1)\nend\n" }
  for i = 1, depth - 1 do
    parts[#parts + 1] = ("local function f%d(x)\n  local y = f%d(x)\n" ..
      "  return y\nend\n"):format(i, i - 1)
  end
  parts[#parts + 1] = ("return function(n)\n  local x = 1\n" ..
    "  for _ = 1, n do\n    x = f%d(x)\n  end\n  return x\nend\n"):format(
    depth - 1)
  return assert(loadstring(table.concat(parts), "=depth" .. depth))()
end

for _, depth in ipairs({ 1, 5, 20 }) do
  local run, costs, samples = make(depth), {}, 0
  run(1000)
  for _ = 1, 9 do
    local ok, message = misc.sysprof.start({ mode = "C", path = file,
      interval = 0.1, timer = timer, max_overhead = 0 })
    if not ok then
      print(("timer %-5s not available: %s"):format(timer, message))
      return
    end
    local began = os.clock()
    repeat
      run(100000)
    until os.clock() - began > 0.15
    assert(misc.sysprof.stop())
    local r = misc.sysprof.report()
    samples = samples + r.samples
    costs[#costs + 1] = r.handler_seconds / r.samples * 1e9
  end
  table.sort(costs)
  print(("timer %-5s %2d inlined: %6.0f ns a sample, least %6.0f ns " ..
    "(%d samples)"):format(timer, depth, costs[5], costs[1], samples))
end
