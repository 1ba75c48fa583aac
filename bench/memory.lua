-- One run of one workload of bench/memory.sh:
--   luajit memory.lua WORKLOAD MODE FILE [PART]     MODE: plain, every,
--                                        native (every, with C frames), sample
-- With ".off" at the end of its name, a workload runs with the JIT compiler off.
-- Prints: wall seconds, collections, events, bytes written, CPU seconds of the
-- program's own thread, CPU seconds of the process (writer's thread included).
local name, mode, path, part = ...
part = tonumber(part) or 1 -- the fraction of the workload that is run
local ffi = require "ffi"
ffi.cdef "typedef struct { long s, ns; } ljp_bench_time; int clock_gettime(int, ljp_bench_time *);"
local clock = ffi.new "ljp_bench_time"
local WALL, PROCESS, THREAD = 1, 2, 3
local function now(which)
  ffi.C.clock_gettime(which, clock)
  return tonumber(clock.s) + tonumber(clock.ns) / 1e9
end

local keep -- makes the results of loops visible, so nothing is optimised away

local workloads = {}

-- Short-lived tables and strings.
function workloads.churn()
  for i = 1, 6000000 * part do keep = { i, i + 1 } end
  for i = 1, 600000 * part do keep = "key" .. i end
end

function workloads.closures()
  local function counter(n) return function() n = n + 1 return n end end
  for i = 1, 4000000 * part do keep = counter(i) end
end

-- Allocations in callbacks from C.
function workloads.callbacks()
  local words = ("lorem ipsum dolor sit amet "):rep(40)
  for i = 1, 1500 * part do
    keep = words:gsub("%a+", function(w) return w .. i end)
    local list = {}
    for n = 1, 50 do list[n] = { (n * 37) % 50 } end
    table.sort(list, function(a, b) return a[1] < b[1] end)
  end
end

-- Trees and objects with fields that live for a while.
function workloads.objects()
  local Node = {}
  Node.__index = Node
  function Node.new(depth)
    local node = setmetatable({ depth = depth, name = depth }, Node)
    if depth > 0 then
      node.left, node.right = Node.new(depth - 1), Node.new(depth - 1)
    end
    return node
  end
  for _ = 1, 60 * part do keep = Node.new(13) end
end

-- Hundreds of coroutines that allocate in turn, each a few calls deep.
function workloads.coroutines()
  local function work(n, i)
    if n > 0 then return work(n - 1, i) + 1 end
    keep = { i, n }
    coroutine.yield()
    return 0
  end
  local all = {}
  for i = 1, 300 do
    all[i] = coroutine.wrap(function() while true do work(i % 5, i) end end)
  end
  for _ = 1, 4000 * part do
    for i = 1, #all do all[i]() end
  end
end

-- Two allocation sites that take turns in a loop.
function workloads.sites2()
  local keep2
  for i = 1, 2000000 * part do
    keep = { i, i + 1 }
    keep2 = { x = i }
  end
  keep = keep2
end

-- A table constructor and an array that grows.
function workloads.growing()
  for i = 1, 500000 * part do
    keep = { i }
    local list = {}
    for n = 1, 5 do list[n] = n end
    keep = list
  end
end

-- A closure, a table and a string.
function workloads.sites3()
  local t, s
  for i = 1, 1000000 * part do
    keep = function() return i end
    t = { i, i }
    s = "k" .. i
  end
  keep = { t, s }
end

-- Five sites, each in a function of its own, at depths from one to three.
function workloads.sites5()
  local function point(i) return { x = i, y = i } end
  local function pair(i) return { point(i), point(i + 1) } end
  local function name(i) return "n" .. i end
  local function adder(i) return function(n) return n + i end end
  local function list(i)
    local all = {}
    for n = 1, 3 do all[n] = i end
    return all
  end
  local a, b, c
  for i = 1, 200000 * part do
    keep = pair(i)
    a = name(i)
    b = adder(i)
    c = list(i)
  end
  keep = { a, b, c }
end

-- Two sites in turn, forty calls deep.
function workloads.deep()
  local function down(n)
    if n > 0 then
      local last = down(n - 1)
      return last
    end
    local keep2
    for i = 1, 1000000 * part do
      keep = { i, i + 1 }
      keep2 = { x = i }
    end
    return keep2
  end
  keep = down(40)
end

-- A coroutine for each request, which allocates a few things and ends.
function workloads.requests()
  local function handle(i)
    local request = { i }
    local answer = { request }
    coroutine.yield(answer)
    return { answer }
  end
  for i = 1, 150000 * part do
    local run = coroutine.wrap(handle)
    keep = { run(i), run() }
  end
end

-- Counts collections: each one finalizes an object, whose finalizer makes a new one.
local collections = 0
local function sentinel()
  getmetatable(newproxy(true)).__gc = function()
    collections = collections + 1
    sentinel()
  end
end

local run = assert(workloads[(name:gsub("%.off$", ""))], "no workload of that name")
if name:find("%.off$") then jit.off() end
collectgarbage()
sentinel()
local events, bytes = 0, 0
if mode ~= "plain" then
  local options = { path = path }
  if mode == "sample" then options.sample = 512 * 1024 else options.every = true end
  options.native = mode == "native"
  assert(misc.memprof.start(options))
end
-- Start each run in another phase of a collection: with few collections, the garbage
-- at the start decides whether there is one more.
math.randomseed(tonumber(os.getenv("LJP_BENCH_SEED")) or
  tonumber(tostring(run):match("0x(%x+)"), 16) / 16 + os.time())
local before = {}
for i = 1, math.random(300) do before[i] = { i } end
before = nil
local from, cpu_from, process_from = now(WALL), now(THREAD), now(PROCESS)
run()
local seconds, cpu = now(WALL) - from, now(THREAD) - cpu_from
local process = now(PROCESS) - process_from
if mode ~= "plain" then
  assert(misc.memprof.stop()) -- the writer finishes
  process = now(PROCESS) - process_from
  local s = misc.memprof.status()
  events = (s.allocs or 0) + (s.frees or 0) + (s.reallocs or 0)
  local f = assert(io.open(path))
  bytes = f:seek("end")
  f:close()
end
print(seconds, collections, events, bytes, cpu, process)
