-- Series for growth.sh: growth.lua WHAT FILE prints lines "x y least most". y is the median
-- of several rounds. Between the other two are half of the rounds, or, where rounds are
-- pairs, the median plus and minus its standard error.
local what, file = ...
local ffi = require("ffi")
ffi.cdef [[
  struct ljp_growth_time { long s, ns; };
  int clock_gettime(int clock, struct ljp_growth_time *time);
]]
local t = ffi.new("struct ljp_growth_time")
local function clock(id)
  ffi.C.clock_gettime(id, t)
  return tonumber(t.s) + tonumber(t.ns) * 1e-9
end
local MONOTONIC, PROCESS = 1, 2
jit.off(clock)
local rounds = tonumber(os.getenv("LJP_BENCH_ROUNDS")) or 11
local pairs_of_rounds = tonumber(os.getenv("LJP_BENCH_ROUNDS")) or 61

local function quartile(sorted, share)
  return sorted[math.max(1, math.min(#sorted, math.floor(#sorted * share + 0.5)))]
end
local function row(x, list)
  table.sort(list)
  print(("%g %.6g %.6g %.6g"):format(x, quartile(list, 0.5), quartile(list, 0.25),
    quartile(list, 0.75)))
end

-- The standard error of a median is 1.253 standard deviations divided by the root of the
-- count, and half of all normal values are within 0.6745 standard deviations.
local function row_of_pairs(x, list)
  table.sort(list)
  local median = quartile(list, 0.5)
  local deviation = (quartile(list, 0.75) - quartile(list, 0.25)) / (2 * 0.6745)
  local around = 1.253 * deviation / math.sqrt(#list)
  print(("%g %.6g %.6g %.6g"):format(x, median, median - around, median + around))
end

-- The work of a benchmark's script, some 50 ms.
local function workload(name, size)
  local chunk = assert(loadfile("bench/workloads/" .. name .. ".lua"))
  setfenv(chunk, setmetatable({ arg = { size }, print = function() end },
    { __index = _G }))
  return chunk
end
local function busy(seconds)
  local work, began, count = workload("tables", 1), clock(PROCESS), 0
  repeat
    work()
    count = count + 1
  until clock(PROCESS) - began > seconds
  return function()
    for _ = 1, count do
      work()
    end
  end
end
-- CPU time of the process for the work with a session, divided by that without; each
-- pair in turn.
local function ratios(x, work, start, stop)
  local list = {}
  for i = 1, pairs_of_rounds do
    local times = {}
    for _, on in ipairs(i % 2 == 0 and { 1, 2 } or { 2, 1 }) do
      if on == 2 then
        assert(start(x))
      end
      local began = clock(PROCESS)
      work()
      times[on] = clock(PROCESS) - began
      if on == 2 then
        assert(stop())
      end
    end
    list[i] = times[2] / times[1] - 1
  end
  row_of_pairs(x, list)
end

local series = {}

function series.rate()
  local work = busy(0.25)
  for _, hertz in ipairs { 100, 250, 500, 1000, 2000, 4000, 8000, 16000 } do
    ratios(hertz, work, function(x)
      return misc.sysprof.start { path = file, interval = 1000 / x, max_overhead = 0 }
    end, misc.sysprof.stop)
  end
end

function series.sampled_memory()
  local work = busy(0.25)
  for _, kib in ipairs { 2, 8, 32, 128, 512, 2048 } do
    ratios(kib, work, function(x)
      return misc.memprof.start { path = file, sample = x * 1024 }
    end, misc.memprof.stop)
  end
end

-- Nanoseconds in the handler for one sample, by the number of frames.
function series.depth()
  jit.off()
  local function spin()
    local began, x = clock(PROCESS), 0
    repeat
      for i = 1, 20000 do
        x = (x * 31 + i) % 1000003
      end
    until clock(PROCESS) - began > 0.1
  end
  local function deeper(n)
    if n <= 1 then
      spin()
      return 1
    end
    local r = deeper(n - 1)
    return r + 1
  end
  for _, depth in ipairs { 8, 16, 32, 64, 128, 256, 512, 1024 } do
    local list = {}
    for i = 1, rounds do
      assert(misc.sysprof.start { path = file, interval = 0.2, max_overhead = 0 })
      deeper(depth)
      assert(misc.sysprof.stop())
      local r = misc.sysprof.report()
      list[i] = r.handler_seconds / r.samples * 1e9
    end
    row(depth, list)
  end
end

-- Bytes of a file by the number of samples: of the same few stacks, again and again.
function series.file()
  local work = busy(0.1)
  local longest = 16
  assert(misc.sysprof.start { path = file, interval = 0.1, max_overhead = 0,
    flush = 10 })
  local next_count, passes = 1000, 0
  while next_count <= 1000 * longest do
    work()
    passes = passes + 1
    local status = misc.sysprof.status()
    if status.samples >= next_count then
      print(("%d %d"):format(status.samples, status.bytes))
      next_count = next_count * 2
    end
  end
  assert(misc.sysprof.stop())
end

-- Milliseconds of the program's pause, by MiB of its heap.
function series.pause()
  collectgarbage("setpause", 100)
  local all = {}
  for _, size in ipairs { 16, 32, 64, 128, 256, 512, 1024 } do
    while collectgarbage("count") < size * 1024 do
      for _ = 1, 1000 do
        all[#all + 1] = { id = #all, name = "name " .. #all, { #all } }
      end
    end
    collectgarbage()
    local list = {}
    for i = 1, rounds do
      list[i] = assert(misc.memprof.snapshot { path = file, wait = true }).pause * 1e3
    end
    row(size, list)
  end
end

-- Seconds of the walk, by thousands of objects.
function series.walk()
  local all, new_table = {}, require("table.new")
  for _, count in ipairs { 125, 250, 500, 1000, 2000, 4000 } do
    for i = #all + 1, count * 1000 do
      all[i] = new_table(2, 0)
    end
    for i = 1, #all do
      all[i][1], all[i][2] = all[math.random(#all)], all[math.random(#all)]
    end
    local list = {}
    for i = 1, 5 do
      list[i] = assert(misc.memprof.snapshot { path = file, wait = true }).walk
    end
    row(count, list)
  end
end

assert(series[what], "there is no series of that name")()
