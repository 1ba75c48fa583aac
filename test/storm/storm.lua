-- The storms. Each is a function of the round's number and returns a string
-- that depends on that number alone. Each round prints one line.
--
--   storm.lua SOURCE NAME SECONDS HOW FILE   under a profiler, for this time
--   storm.lua SOURCE NAME ROUNDS             without a profiler
--
-- HOW: perf, posix (CPU samples by this timer), every (every memory
-- event), combined (CPU samples and every memory event in one session), sampled
-- (CPU samples and sampled memory events)
--
--   loadfile("storm.lua")(SOURCE)            returns the storms, and runs none
local source, name, amount, how, file = ...
local module
local storms = {}

-- A script of the benchmarks as a storm: its result is what the script prints.
local function workload(script, size)
  local chunk = assert(loadfile(source .. "/bench/workloads/" .. script))
  local said
  local env = setmetatable({ arg = { size }, print = function(...)
    said = table.concat({ ... }, " ")
  end }, { __index = _G })
  setfenv(chunk, env)
  return function()
    chunk()
    return said
  end
end

local seed = 1
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n + 1
end

function storms.sort(round)
  seed = round
  local list, strings = {}, {}
  for i = 1, 300 do
    list[i] = { key = random(1009) }
    strings[i] = "s" .. random(1009)
  end
  table.sort(list, function(a, b)
    return a.key < b.key
  end)
  table.sort(strings)
  local calls = 0
  -- A comparison that fails in the middle of a sort.
  local ok = pcall(table.sort, list, function(a, b)
    calls = calls + 1
    if calls == 100 + round % 100 then
      error("enough")
    end
    return b.key < a.key
  end)
  return list[1].key .. strings[1] .. strings[300] .. tostring(ok)
end

function storms.gsub(round)
  local text = ("the quick brown fox %d jumps "):format(round):rep(20)
  local count = 0
  local upper = text:gsub("%a+", function(word)
    count = count + #word
    return word:upper()
  end)
  local nested = text:sub(1, 200):gsub("%a+", function(word)
    return (word:gsub(".", function(c)
      return string.char(c:byte() + 1)
    end))
  end)
  local ok = pcall(string.gsub, text, "%d+", function()
    error("a number")
  end)
  for word in nested:gmatch("%S+") do
    count = count + #word
  end
  return #upper .. " " .. nested:sub(1, 9) .. count .. tostring(ok)
end

function storms.errors(round)
  local sum = 0
  local function fail(n)
    if n == 0 then
      error({ code = round })
    end
    return fail(n - 1) + 1
  end
  for i = 1, 200 do
    local _, e = pcall(fail, i % 13)
    sum = sum + e.code
    local _, text = pcall(error, "plain", 0)
    sum = sum + #text
    local _, got = xpcall(function()
      return nil + i
    end, function(message)
      return #message % 2
    end)
    sum = sum + got * 0
    sum = sum + select("#", pcall(string.rep))
  end
  return tostring(sum)
end

storms.coroutines = workload("coroutines.lua", 2)
storms.closures = workload("closures.lua", 1)
storms.tables = workload("tables.lua", 1)

-- Stacks that grow, in coroutines whose stacks begin small.
function storms.growth(round)
  local function deep(n, ...)
    if n == 0 then
      return select("#", ...)
    end
    local a, b, c, d, e, f = n, n + 1, n + 2, n + 3, n + 4, n + 5
    return deep(n - 1, a, ...) + (a + b + c + d + e + f) * 0
  end
  local sum = 0
  for i = 1, 40 do
    sum = sum + coroutine.wrap(function()
      return deep(1 + (round + i * 7) % 90)
    end)()
    sum = sum + select("#", unpack({}, 1, 100 + i * 150))
  end
  return tostring(sum)
end

-- Recursion beyond the limit of the Lua stack, also with a message handler, and
-- close to the limit of C calls (beyond which LuaJIT itself may crash).
function storms.overflow(round)
  local function forever(n)
    return 1 + forever(n + 1)
  end
  local function through_c(n)
    return (("x"):gsub("x", function()
      return n > 0 and through_c(n - 1) or "y"
    end))
  end
  local ok1, e1 = pcall(forever, 0)
  local ok2, e2 = pcall(through_c, 100 + round % 60)
  local ok3 = xpcall(forever, debug.traceback, 0)
  return tostring(round) .. tostring(ok1) .. tostring(ok2) .. tostring(ok3) ..
    (e1:match("stack overflow") or e1) .. e2
end

-- 20,000 coroutines, resumed in random order.
local many
function storms.many(round)
  if not many then
    many = {}
    for i = 1, 20000 do
      many[i] = coroutine.wrap(function(v)
        local kept = i
        while true do
          v = coroutine.yield(v + kept)
        end
      end)
    end
  end
  seed = round
  local sum = 0
  for _ = 1, 20000 do
    sum = (sum + many[random(20000)](sum)) % 1000003
  end
  return tostring(sum)
end

-- Coroutines with labels of their own, which change, in turn; some die.
local labelled
function storms.labels(round)
  local profile = misc.profile
  labelled = labelled or {}
  seed = round
  local sum = 0
  local function work(n, text)
    local t = { n, text .. n % 10 }
    if n % 97 == 0 then
      error("dies")
    end
    return coroutine.yield(#t[2] + n)
  end
  for _ = 1, 20000 do
    local at = random(200)
    local co = labelled[at]
    if not co or coroutine.status(co) == "dead" then
      co = coroutine.create(function(n)
        assert(profile.label { route = "/" .. at % 7 })
        while true do
          if n % 3 == 0 then
            assert(profile.label { tenant = n % 5 })
          end
          n = profile.with({ phase = n % 4 }, work, n, "text")
        end
      end)
      labelled[at] = co
    end
    local ok, got = coroutine.resume(co, random(1000))
    sum = (sum + (ok and got or 1)) % 1000003
  end
  return sum .. " " .. (next(profile.labels()) and "labels" or "none")
end

-- Two threads, each with a VM of its own.
local busy = [[
  local round = ...
  local list, sum = {}, 0
  for i = 1, 300000 do
    list[i % 500 + 1] = { i, tostring(i) }
    sum = sum + #list[i % 500 + 1][2] + round
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  local text = ("abc "):rep(300):gsub("%a", function(c) return c .. round end)
  local wrapped = coroutine.wrap(function()
    for i = 1, 20000 do coroutine.yield(i) end
  end)
  for i = 1, 20000 do sum = sum + wrapped() end
  return sum .. " " .. #text
]]
-- Only the memory of the VM that starts the session is recorded: that of the
-- first thread. Every second session ends by lua_close(). The other thread's VM
-- cannot end the session.
local recorded = [[
  local profiler = %q == "every" and misc.memprof or misc.profile
  if ... == %d then
    assert(profiler.start(%s))
  else
    assert(not profiler.stop())
  end
  local function work(...)
    %s
  end
  local result = work(...)
  if ... == %d and %d %% 2 == 0 then
    assert(profiler.stop())
  end
  return result
]]
local options
function storms.threads(round)
  local text = busy
  if how == "every" or how == "combined" or how == "sampled" then
    text = recorded:format(how, round, options, busy, round, round)
  end
  return table.concat({ module.threads(text, round) }, " ")
end

-- Two VMs in one thread that call each other.
local text_second = [[
  local number = ...
  local sum = 0
  for i = 1, 200 do
    sum = sum + first(i + number)
    local co = coroutine.wrap(function(v) return first(v) end)
    sum = sum + co(i)
  end
  return tostring(sum)
]]
function storms.vms(round)
  return module.second(text_second, function(n)
    local sum = 0
    for i = 1, 20 do
      sum = sum + #tostring(i * n)
    end
    return sum
  end, round)
end

-- Code that is loaded and unloaded while samples fall into it.
local library
function storms.plugin(round)
  library = library or package.searchpath("storm_plugin", package.cpath)
  local function work()
    local sum = 0
    for i = 1, 300 do
      sum = sum + #(tostring(i) .. round)
    end
    return sum
  end
  return tostring(module.plugin(library, work, round % 17))
end

-- Children that work and end.
function storms.fork(round)
  local function work(n)
    local sum = 0
    for i = 1, 3000 do
      sum = sum + #tostring(i * n)
    end
    return tostring(sum)
  end
  return work(round) .. module.fork(work, round)
end

-- C code that calls Lua back through the FFI.
function storms.callbacks(round)
  local ffi = require("ffi")
  if not storms.declared then
    ffi.cdef([[void qsort(void *, size_t, size_t,
                          int (*)(const int *, const int *));]])
    -- Only once: each declaration adds a type, and the room for types is
    -- limited.
    storms.type = ffi.typeof("int (*)(const int *, const int *)")
    storms.compare = ffi.cast(storms.type, function(a, b)
      return a[0] - b[0]
    end)
    storms.declared = true
  end
  local list = ffi.new("int[300]")
  seed = round
  for i = 0, 299 do
    list[i] = random(1009)
  end
  ffi.C.qsort(list, 300, 4, storms.compare)
  local again = ffi.cast(storms.type, function(a, b)
    return b[0] - a[0]
  end)
  ffi.C.qsort(list, 50, 4, again)
  again:free()
  return list[0] .. " " .. list[299]
end
-- A compiled call to C that calls back would end the process.
jit.off(storms.callbacks)

-- Hooks of every kind, set and removed.
function storms.hook(round)
  local counts = { call = 0, ["return"] = 0, line = 0, count = 0 }
  local function hook(event)
    if event == "tail call" or event == "tail return" then
      event = "call"
    end
    counts[event] = counts[event] + 1
  end
  local function work(n)
    local sum = 0
    for i = 1, n do
      sum = sum + #tostring(i)
    end
    return sum
  end
  local result = 0
  local kinds = { "c", "r", "l", "crl", "" }
  debug.sethook(hook, kinds[round % 5 + 1], round % 5 == 4 and 7 or 0)
  result = result + work(500)
  local co = coroutine.wrap(function()
    return work(100)
  end)
  result = result + co()
  local ok = pcall(error, "x")
  debug.sethook()
  result = result + work(200)
  -- The number of calls depends on what is compiled, so it is not in the
  -- result.
  return tostring(result) .. tostring(ok)
end

-- -- The run ------------------------------------------------------------------

local function run(round)
  return ("%d %s\n"):format(round, storms[name](round))
end

if not name then
  local _, loaded = pcall(require, "storm_module")
  module = loaded
  return storms
end
assert(storms[name], "there is no storm of that name")
if name == "threads" or name == "vms" or name == "plugin" or name == "fork" then
  module = require("storm_module")
end
io.stdout:setvbuf("full")
if not how then
  for round = 1, tonumber(amount) do
    io.write(run(round))
  end
  return
end
local profiler = how == "every" and misc.memprof
  or (how == "combined" or how == "sampled") and misc.profile or misc.sysprof
local native = os.getenv "LJP_STORM_NATIVE" and "true" or "false"
local snapshots = os.getenv "LJP_STORM_SNAPSHOTS" and how
local more = ", native = " .. native .. (snapshots and ", snapshot = 0.1" or "")
options = how == "every" and "{ path = %q, every = true" .. more .. " }"
  or how == "combined" and [[{ path = %q, memory = { every = true]] .. more .. [[ },
       cpu = { interval = 0.1, max_overhead = 0 } }]]
  or how == "sampled" and [[{ path = %q, memory = { sample = 16384]] .. more .. [[ },
       cpu = { interval = 0.1, max_overhead = 0 } }]]
  or [[{ path = %q, mode = "C", interval = 0.1, max_overhead = 0,
       timer = "]] .. how .. [[" }]]
options = options:format(file)
local elsewhere = name == "threads" and profiler ~= misc.sysprof
if not elsewhere then
  local ok, message = profiler.start(loadstring("return " .. options)())
  if not ok then
    print(message)
    os.exit(77)
  end
end
local round, began, looked = 0, os.clock(), 0
repeat
  round = round + 1
  io.write(run(round))
  if snapshots and not elsewhere and os.clock() - looked > 0.05 then
    looked = os.clock()
    local taken, message, errno = misc.memprof.snapshot {}
    assert(taken or errno == 16, message) -- The last one is being written.
  end
until os.clock() - began > tonumber(amount)
if not elsewhere then
  assert(profiler.stop())
  local status = profiler ~= misc.sysprof and misc.memprof.status() or {}
  assert((status.differed or 0) == 0,
    "of " .. (status.checked or 0) .. " remembered stacks " ..
    (status.differed or 0) .. " differ from a full walk")
end
