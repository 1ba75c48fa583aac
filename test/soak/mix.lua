-- A program that works, and meanwhile does with the profilers whatever it likes.
--
--   mix.lua SOURCE SEED SECONDS FOLDER   for this time; files go into the folder
--   mix.lua SOURCE SEED COUNT            so many works, without any profiler
--
-- Works are storms. Each prints one line, the same in both ways; what the profilers
-- are told is random, too, but goes to FOLDER/log. soak.py reads that, and judges.
--
-- A line of the log: seconds, what was done, what came of it, or "error:".
-- LJP_SOAK_STORMS: the storms to choose from, instead of all.
local source, seed, amount, folder = ...
local ffi = require("ffi")
ffi.cdef [[
  struct ljp_soak_time { long seconds, nanoseconds; };
  int clock_gettime(int clock, struct ljp_soak_time *time);
  int getpid(void);
  int kill(int process, int signal);
]]
local storms = assert(loadfile(source .. "/test/storm/storm.lua"))(source)

-- Two generators: works must not depend on what the profilers are told.
local function generator(state)
  state = state * 2 % 2147483647
  return function(n)
    for _ = 1, 3 do
      state = (state * 48271 + 11) % 2147483647
    end
    return state % n + 1
  end
end
local work_random, random = generator(tonumber(seed) + 7), generator(tonumber(seed) + 13)
local function chance(percent)
  return random(100) <= percent
end
local function one_of(list)
  return list[random(#list)]
end

local names = {}
for name in pairs(storms) do
  if type(storms[name]) == "function" then
    names[#names + 1] = name
  end
end
if os.getenv "LJP_SOAK_STORMS" then
  names = {}
  for name in os.getenv "LJP_SOAK_STORMS":gmatch("%a+") do
    names[#names + 1] = name
  end
end
table.sort(names)
local chosen = {} -- A program does a few things again and again.
for i = 1, 3 do
  chosen[i] = names[work_random(#names)]
end

local function work(number)
  local name, round = chosen[work_random(#chosen)], work_random(1000)
  if name == "labels" then -- It says whether there are any.
    misc.profile.label { route = false, step = false }
  end
  io.write(("%d %s %s\n"):format(number, name, storms[name](round)))
end

io.stdout:setvbuf("full")
if not folder then
  for number = 1, tonumber(amount) do
    work(number)
  end
  return
end

-- -- What the profilers are told ----------------------------------------------

local log = assert(io.open(folder .. "/log", "w"))
log:setvbuf("no") -- It is whole when the program is killed.
local function seconds_of(clock)
  local time = ffi.new("struct ljp_soak_time")
  assert(ffi.C.clock_gettime(clock, time) == 0)
  return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end
local function thread_seconds()
  return seconds_of(3) -- CLOCK_THREAD_CPUTIME_ID
end
local began = seconds_of(1)
local function note(...)
  log:write(("%.3f "):format(seconds_of(1) - began), table.concat({ ... }, " "), "\n")
end

-- What may be refused, since another session or snapshot is on its way.
local may_refuse = {
  "is running already", "is not running", "no profiler is running", "has joined",
  "being written", "Device or resource busy", "timer", "is recorded into",
  "shares its session", "already: end that first", "does not listen", "none is running",
}
local function told(what, ok, message, errno)
  if ok then
    note(what, "done")
    return ok
  end
  local known = false
  for _, text in ipairs(may_refuse) do
    known = known or tostring(message):find(text, 1, true)
  end
  note(known and "" or "error:", what, "refused:", tostring(message), tostring(errno))
end

local files = 0
local function new_file(kind)
  files = files + 1
  return ("%s/%s-%d.ljp"):format(folder, kind, files)
end

local function session_options(options)
  options.flush = one_of { 10, 50, 250 }
  if chance(20) then
    options.compress = one_of { 1, 3 }
  end
  if chance(15) then
    options.rotate_seconds = 0.3
  elseif chance(15) then
    options.rotate_bytes = 200000
  end
  if chance(30) then
    options.fork = "follow"
  end
  if chance(15) then
    options.duration = random(100) / 100
  end
  return options
end
local function cpu_options()
  return {
    interval = one_of { 0.1, 0.5, 1, 5 },
    event = chance(25) and "wall" or "cpu",
    timer = one_of { "auto", "auto", "perf", "posix", "tick" },
    threads = one_of { "lua", "all", "this" },
    max_overhead = one_of { 0, 5 },
    jitdump = false,
  }
end
local function memory_options()
  local options = {
    native = chance(50),
    vms = chance(30) and "all" or "own",
    snapshot = one_of { false, false, true, 0.2 },
  }
  if chance(50) then
    options.every = true
  else
    options.sample = one_of { 512, 16384, 524288 }
  end
  return options
end

-- The CPU session of which the time is compared with that of this thread.
local timed
local function timed_begins(options)
  timed = options.event == "cpu" and not options.duration and thread_seconds()
end
local function timed_ends(path)
  if timed then
    note("cpu-session", path, ("%.4f"):format(thread_seconds() - timed))
  end
  timed = nil
end

local cpu_path
local actions = {}
function actions.start_cpu()
  local options = session_options(cpu_options())
  options.path = new_file("cpu")
  if told("sysprof.start " .. options.path, misc.sysprof.start(options)) then
    cpu_path = options.path
    timed_begins(options)
  end
end
function actions.stop_cpu()
  if told("sysprof.stop", misc.sysprof.stop()) and cpu_path then
    timed_ends(cpu_path)
    cpu_path = nil
  end
end
function actions.start_memory()
  local options = session_options(memory_options())
  options.path = new_file(options.every and "every" or "sampled")
  told("memprof.start " .. options.path, misc.memprof.start(options))
end
function actions.stop_memory()
  told("memprof.stop", misc.memprof.stop())
end
function actions.start_both()
  local memory = memory_options()
  memory.every = nil
  memory.sample = memory.sample or 4096
  local options = session_options { cpu = cpu_options(), memory = memory }
  options.path = new_file("both")
  told("profile.start " .. options.path, misc.profile.start(options))
end
function actions.stop_both()
  told("profile.stop", misc.profile.stop())
end
function actions.snapshot()
  local options = {
    strings = one_of { 0, 64, 4096 },
    gc = chance(20),
    wait = chance(30),
    in_place = chance(30),
  }
  if chance(70) then
    options.path = new_file("heap")
  end
  local taken = told("snapshot", misc.memprof.snapshot(options))
  if taken and taken.heap_bytes and taken.heap_bytes ~= taken.bytes then
    note("error: the snapshot has", taken.bytes, "bytes, the VM", taken.heap_bytes)
  end
end
function actions.label()
  told("label", misc.profile.label { route = "/" .. random(9), step = random(5) })
  coroutine.wrap(function()
    misc.profile.with({ tenant = "t" .. random(20) }, function()
      return #tostring(random(1000))
    end)
  end)()
end
function actions.no_label()
  told("label", misc.profile.label { route = false, step = false })
end
function actions.look()
  misc.sysprof.status()
  misc.memprof.status()
  misc.sysprof.report()
  misc.getmetrics()
  told("mark", misc.memprof.mark("soak " .. random(100)))
end
function actions.listen()
  told("listen", misc.profile.listen(chance(60) and folder .. "/door-%p" or nil))
end
function actions.collect()
  collectgarbage(one_of { "collect", "step" })
end
function actions.compiler()
  require("jit").flush()
end
local kinds = {
  "start_cpu", "start_cpu", "stop_cpu", "start_memory", "start_memory", "stop_memory",
  "start_both", "stop_both", "snapshot", "snapshot", "label", "no_label", "look",
  "listen", "collect", "compiler",
}

local often = one_of { 2, 10, 40 }
note("process", ffi.C.getpid(), "works:", unpack(chosen))
local number = 0
repeat
  number = number + 1
  if chance(often) then
    actions[one_of(kinds)]()
  end
  work(number)
until seconds_of(1) - began > tonumber(amount)
-- The end: in order, with sessions that run, or killed.
local how = one_of { "stop", "stop", "return", "exit", "kill" }
note("works", number, "end", how)
if how == "stop" then
  actions.stop_both()
  actions.stop_cpu()
  actions.stop_memory()
elseif how == "exit" then
  os.exit(0)
elseif how == "kill" then
  io.stdout:flush()
  ffi.C.kill(ffi.C.getpid(), 9)
end
