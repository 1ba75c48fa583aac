-- One run of one workload of bench/memory.sh:
--   luajit memory.lua WORKLOAD MODE FILE [PART]     MODE: plain, every,
--                                        native (every, with C frames), sample
-- prints: wall seconds, collections, events, bytes written, CPU seconds of the
-- program's own thread.
local name, mode, path, part = ...
part = tonumber(part) or 1 -- of the whole of it
local ffi = require "ffi"
ffi.cdef "typedef struct { long s, ns; } ljp_bench_time; int clock_gettime(int, ljp_bench_time *);"
local clock = ffi.new "ljp_bench_time"
local WALL, THREAD = 1, 3
local function now(which)
  ffi.C.clock_gettime(which, clock)
  return tonumber(clock.s) + tonumber(clock.ns) / 1e9
end

local keep -- what a loop makes is seen by somebody, so nothing is optimised away

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

-- From a callback that C calls.
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

-- Collections are counted by an object that is made anew by each of them.
local collections = 0
local function sentinel()
  getmetatable(newproxy(true)).__gc = function()
    collections = collections + 1
    sentinel()
  end
end

local run = assert(workloads[name], "no workload of that name")
collectgarbage()
sentinel()
local events, bytes = 0, 0
if mode ~= "plain" then
  local options = { path = path }
  if mode == "sample" then options.sample = 512 * 1024 else options.every = true end
  options.native = mode == "native"
  assert(misc.memprof.start(options))
end
-- In another phase of a collection in each run: with few collections, what is there
-- by then decides whether there is one more.
math.randomseed(tonumber(os.getenv("LJP_BENCH_SEED")) or
  tonumber(tostring(run):match("0x(%x+)"), 16) / 16 + os.time())
local before = {}
for i = 1, math.random(300) do before[i] = { i } end
before = nil
local from, cpu_from = now(WALL), now(THREAD)
run()
local seconds, cpu = now(WALL) - from, now(THREAD) - cpu_from
if mode ~= "plain" then
  assert(misc.memprof.stop())
  local s = misc.memprof.status()
  events = (s.allocs or 0) + (s.frees or 0) + (s.reallocs or 0)
  local f = assert(io.open(path))
  bytes = f:seek("end")
  f:close()
end
print(seconds, collections, events, bytes, cpu)
