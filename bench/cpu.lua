-- What the CPU profiler delivers and costs; see cpu.sh.
--   cpu.lua WHAT FILE [TIMER]
local what, file, timer = ...
local ffi = require("ffi")
ffi.cdef([[
  struct timespec { long s, ns; };
  int clock_gettime(int, struct timespec *);
]])
local t = ffi.new("struct timespec")
local function clock(id)
  ffi.C.clock_gettime(id, t)
  return tonumber(t.s) + tonumber(t.ns) * 1e-9
end
local MONOTONIC, PROCESS, THREAD = 1, 2, 3
jit.off(clock) -- The measured code is compiled; the measuring code is not.

local function start(interval, source, compress)
  return misc.sysprof.start({ mode = "C", path = file, interval = interval,
    timer = source or timer, max_overhead = 0, compress = compress })
end
local function stop()
  assert(misc.sysprof.stop())
  return misc.sysprof.report()
end
local function bytes()
  local f = assert(io.open(file, "rb"))
  local size = f:seek("end")
  f:close()
  return size
end
local function median(list)
  table.sort(list)
  local n = #list
  return (list[math.floor((n + 1) / 2)] + list[math.floor(n / 2) + 1]) / 2
end

-- Half the distance between the quartiles of a list that median() has sorted.
local function spread(list)
  local n = #list
  return (list[math.ceil(n * 3 / 4)] - list[math.ceil(n / 4)]) / 2
end

-- A function that does the work of a benchmark's script once.
local function workload(name, size)
  local chunk = assert(loadfile("bench/workloads/" .. name .. ".lua"))
  setfenv(chunk, setmetatable({ arg = { size }, print = function() end },
    { __index = _G }))
  return chunk
end

local measures = {}

function measures.delivery()
  local work = workload("tables", 1)
  local longest = tonumber(os.getenv("LJP_BENCH_SECONDS")) or 4
  for _, interval in ipairs({ 10, 1, 0.1 }) do
    local ok, message = start(interval)
    if not ok then
      print(("timer %-5s not available: %s"):format(timer, message))
      return
    end
    local began, wall = clock(THREAD), clock(MONOTONIC)
    repeat
      work()
    until clock(THREAD) - began > longest
    local used = clock(THREAD) - began
    wall = clock(MONOTONIC) - wall
    local r = stop()
    local expected = used * 1000 / interval
    local lost = 0
    for _, n in pairs(r.losses) do
      lost = lost + n
    end
    print(("timer %-5s %5.1f ms: %6d of %8.1f samples = %6.2f %%, lost %d, " ..
      "merged %d; they stand for %.2f %% of %.2f s CPU (%.2f s wall)"):format(
      timer, interval, r.samples, expected, 100 * r.samples / expected, lost,
      r.overruns, 100 * r.seconds / used, used, wall))
  end
end

-- Calls work() below this number of host and guest frames.
local function under(hosts, guests, work)
  local nest = require("frames").nest
  local function deeper(n)
    if n > 1 then
      local r = deeper(n - 1)
      return r
    end
    work()
    return n
  end
  nest(hosts, function()
    deeper(guests - 1)
  end)
end

local function spin(seconds)
  local began, x = clock(THREAD), 0
  repeat
    for i = 1, 20000 do
      x = (x * 31 + i) % 1000003
    end
  until clock(THREAD) - began > seconds
  return x
end

-- The handler's time, by the number of frames and their kind.
function measures.handler()
  local rounds = tonumber(os.getenv("LJP_BENCH_ROUNDS")) or 9
  local function row(hosts, guests)
    local costs, samples = {}, 0
    under(hosts, guests, function()
      for i = 1, rounds do
        if not start(0.1) then
          return
        end
        spin(0.2)
        local r = stop()
        samples = samples + r.samples
        costs[i] = r.handler_seconds / r.samples * 1e9
      end
    end)
    if #costs > 0 then
      local middle = median(costs)
      print(("timer %-5s JIT %-3s %3d host + %3d guest frames and those of " ..
        "luajit: %6.0f ns +- %.0f, least %6.0f ns (%d samples)"):format(timer,
        jit.status() and "on" or "off", hosts, guests, middle, spread(costs),
        costs[1], samples))
    end
  end
  for _, n in ipairs({ 5, 30, 100 }) do
    row(n, n)
    row(1, n)
    row(n, 2)
  end
end

function measures.bytes()
  for _, compress in ipairs({ 0, 1, 3 }) do
    local sizes, counts = {}, {}
    under(30, 30, function()
      for i = 1, 2 do
        assert(start(0.1, "auto", compress))
        spin(i == 1 and 0.5 or 2.5)
        counts[i] = stop().samples
        sizes[i] = bytes()
      end
    end)
    print(("compress = %d: %5.2f bytes a sample (%d samples of one stack, " ..
      "30 + 30 frames)"):format(compress,
      (sizes[2] - sizes[1]) / (counts[2] - counts[1]), counts[2] - counts[1]))
  end
end

-- A round runs the work without signals, with a handler that does nothing, and
-- with the profiler, in an order that rotates. The kernel's and the machine's
-- share of a signal is in both of the latter.
local function slowdown(name, size, interval)
  local floor = require("frames").floor
  local work = workload(name, size)
  local empty, thread, process, wall, above = {}, {}, {}, {}, {}
  local floor_us, profiler_us = {}, {}
  for _ = 1, 3 do
    work()
  end
  local function once(how)
    local signals = 0
    if how == 2 then
      floor(timer, interval / 1000)
    elseif how == 3 then
      assert(start(interval))
    end
    local w, p, t = clock(MONOTONIC), clock(PROCESS), clock(THREAD)
    work()
    t, p, w = clock(THREAD) - t, clock(PROCESS) - p, clock(MONOTONIC) - w
    if how == 2 then
      signals = floor()
    elseif how == 3 then
      signals = stop().samples
    end
    return { thread = t, process = p, wall = w, signals = signals }
  end
  for i = 1, tonumber(os.getenv("LJP_BENCH_ROUNDS")) or 15 do
    local r = {}
    for k = i, i + 2 do
      r[k % 3 + 1] = once(k % 3 + 1)
    end
    local off, none, on = r[1], r[2], r[3]
    empty[i] = none.thread / off.thread
    thread[i] = on.thread / off.thread
    process[i] = on.process / off.process
    wall[i] = on.wall / off.wall
    above[i] = on.thread / none.thread
    floor_us[i] = (none.thread - off.thread) / none.signals * 1e6
    profiler_us[i] = (on.thread - off.thread) / on.signals * 1e6
  end
  local threads, empties = median(thread), median(empty)
  print(("%-5s JIT %-3s %-9s %4.1f ms: thread %.4f +- %.4f process %.4f wall %.4f, " ..
    "%5.1f us a sample; empty handler %.4f +- %.4f, %5.1f us; above that %.4f"):format(
    timer, jit.status() and "on" or "off", name, interval, threads, spread(thread),
    median(process), median(wall), median(profiler_us), empties, spread(empty),
    median(floor_us), median(above)))
end

function measures.slowdown()
  if not start(1) then
    return
  end
  stop()
  local size = jit.status() and 30 or 5
  for _, interval in ipairs({ 1, 0.1 }) do
    slowdown("numeric", size * 12, interval)
    slowdown("tables", size * 6, interval)
    slowdown("callbacks", size * 6, interval)
  end
end

function measures.start()
  local loaded = 0
  for _, name in ipairs({ "libLLVM-15.so.1", "libLLVM-14.so.1",
    "libclang-14.so.14.0.6", "libpython3.11.so.1.0", "libz3.so.4",
    "libcrypto.so.3", "libperl.so.5.36", "libstdc++.so.6",
    "libicui18n.so.72" }) do
    if loaded < 6 and pcall(ffi.load, name) then
      loaded = loaded + 1
    end
  end
  local starts, stops, cpu = {}, {}, {}
  for i = 1, 21 do
    local began, used = clock(MONOTONIC), clock(THREAD)
    assert(start(1, "auto"))
    starts[i] = (clock(MONOTONIC) - began) * 1000
    cpu[i] = (clock(THREAD) - used) * 1000
    -- After a shorter time the unwind tables would still be in the making, and
    -- stop() waits for that or ends it.
    spin(i <= 11 and 0.002 or 0.3)
    began = clock(MONOTONIC)
    stop()
    stops[i] = (clock(MONOTONIC) - began) * 1000
  end
  local first, first_cpu = starts[1], cpu[1]
  print(("%d large libraries: first start %.2f ms (%.2f ms of it " ..
    "on the CPU), median %.2f ms (%.2f); stop median %.2f ms"):format(loaded, first,
    first_cpu, median(starts), median(cpu), median(stops)))
  print(("worst start %.2f ms, worst stop %.2f ms"):format(starts[#starts],
    stops[#stops]))
  -- The first session notes chunk and lines of each function that is alive.
  local all = {}
  for i = 1, 93 do
    all[i] = loadstring("return {" .. ("function() return 1 end,"):rep(1000) .. "}")()
  end
  for i = 1, 6 do
    local began, used = clock(MONOTONIC), clock(THREAD)
    assert(start(1, "auto"))
    starts[i] = (clock(MONOTONIC) - began) * 1000
    cpu[i] = (clock(THREAD) - used) * 1000
    spin(0.1)
    stop()
  end
  first, first_cpu = table.remove(starts, 1), table.remove(cpu, 1)
  print(("%d functions alive: first start %.2f ms (%.2f ms of it on the CPU), " ..
    "later median %.2f ms (%.2f)"):format(#all * 1000, first, first_cpu,
    median({ unpack(starts, 1, 5) }), median({ unpack(cpu, 1, 5) })))
end

-- The watcher of a wall-clock session, with threads that wait for ever and with
-- threads that wake up every 5 ms.
function measures.waiting()
  require("ffi").cdef("int usleep(unsigned);")
  local usleep = require("ffi").C.usleep
  local count = 0
  for _, case in ipairs({ { 1, 0 }, { 16, 0 }, { 64, 0 }, { 64, 5 } }) do
    require("frames").waiters(case[1] - count, case[2])
    count = case[1]
    assert(misc.sysprof.start({ path = file, event = "wall", threads = "all",
      max_overhead = 0 }))
    usleep(500000)
    local before = misc.sysprof.report()
    usleep(2000000)
    local after = misc.sysprof.report()
    misc.sysprof.stop()
    local looks = after.looks - before.looks
    local seconds = after.watcher_seconds - before.watcher_seconds
    print(("%2d threads that wait %s: %6.0f looks a second and thread, " ..
      "%5.2f us a look, %.2f %% of a CPU"):format(count,
      case[2] == 0 and "for ever" or "5 ms each", looks / 2 / count,
      seconds / looks * 1e6, seconds / 2 * 100))
    if case[1] == 64 then
      count = 0
    end
  end
end

-- What the timer costs at each wait of a sampled thread. The interval is that of
-- the preset production, so that hardly a sample is among the waits.
function measures.switches()
  local pingpong = require("frames").pingpong
  local waits = 5000
  local function once(source)
    if source and not start(10, source) then
      return nil
    end
    local began = clock(PROCESS)
    pingpong(waits)
    local used = clock(PROCESS) - began
    if source then
      stop()
    end
    return used / waits * 1e6
  end
  once()
  for _, source in ipairs({ "tick", "perf", "posix" }) do
    local more, plain = {}, {}
    for i = 1, tonumber(os.getenv("LJP_BENCH_ROUNDS")) or 31 do
      local off, on
      if i % 2 == 0 then
        off, on = once(), once(source)
      else
        on, off = once(source), once()
      end
      if not on then
        print(("timer %-5s not available"):format(source))
        break
      end
      more[i], plain[i] = on - off, off
    end
    if #more > 0 then
      local middle = median(more)
      print(("timer %-5s %5.2f us +- %.2f more for a wait; without a session a wait " ..
        "and its answer take %.2f us"):format(source, middle, spread(more),
        median(plain)))
    end
  end
end

-- Labels, without a session: a call with two labels that change, and switching
-- between coroutines with and without labels; then the same while labels are published
-- for other profilers, and afterwards.
function measures.labels()
  local label, sets = misc.profile.label,
    { { route = "/a", tenant = "x" }, { route = "/b", tenant = "x" } }
  local function switch(labels)
    return coroutine.wrap(function()
      label(labels)
      while true do
        coroutine.yield()
      end
    end)
  end
  local none, labelled = switch({}), switch(sets[1])
  local cases = {
    { "label() with two labels", function(n)
      for i = 1, n do
        label(sets[i % 2 + 1])
      end
    end },
    { "resume and yield of a coroutine without labels", function(n)
      for _ = 1, n do
        none()
      end
    end },
    { "the same with labels", function(n)
      for _ = 1, n do
        labelled()
      end
    end },
  }
  local function run(how)
    for _, case in ipairs(cases) do
      local list, n = {}, 100000
      case[2](1000)
      for i = 1, 15 do
        local began = clock(THREAD)
        case[2](n)
        list[i] = (clock(THREAD) - began) / n * 1e9
      end
      local middle = median(list)
      print(("%-58s %5.0f ns +- %.1f"):format(case[1] .. how, middle, spread(list)))
    end
  end
  run("")
  assert(misc.profile.publish_labels(true))
  run(", published")
  assert(misc.profile.publish_labels(false))
  run(", no longer")
end

assert(measures[what], "cpu.lua: there is no such measure")()
