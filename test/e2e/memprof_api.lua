-- misc.memprof and misc.profile as Lua sees them: what is refused and how, status,
-- marks, and what programs do to a session. Run in a folder that may be written to.
local EPERM, EBUSY, EINVAL, ENOENT, EISDIR = 1, 16, 22, 2, 21
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check, fails, read = checks.check, checks.fails, checks.read

local function running()
  return misc.memprof.status().state == "running"
    or misc.sysprof.status().state == "running"
end

local profiler
local function refused(what, errno, text, ...)
  fails(what, errno, text, profiler.start(...))
  check(not running(), what .. ": not running")
end

local P = "kept.bin"
checks.keep(P)

-- What both refuse, in the table of options itself.
local function session_options()
  refused("unknown option", EINVAL, "unknown option 'pth'; the nearest is 'path'",
    { pth = P })
  refused("no names", EINVAL, "options have names", { "x" })
  refused("two arguments", EINVAL, "start", { path = P }, 1)
  refused("a number", EINVAL, "the argument is 5", 5)
  refused("a function", EINVAL, "start", print)
  refused("fork", EINVAL, "\"follow\"", { path = P, fork = true })
  refused("flush", EINVAL, "from 10 to 10000", { path = P, flush = 5 })
  refused("flush NaN", EINVAL, "from 10 to 10000", { path = P, flush = 0 / 0 })
  refused("compress", EINVAL, "level", { path = P, compress = 20 })
  refused("sync", EINVAL, "true or false", { path = P, sync = 1 })
  refused("rotate_bytes", EINVAL, "bytes from 4096", { path = P, rotate_bytes = 5 })
  refused("rotate_seconds", EINVAL, "seconds", { path = P, rotate_seconds = "1" })
  refused("keep", EINVAL, "number of files", { path = P, keep = -1 })
  refused("path type", EINVAL, "name of a file", { path = 5 })
  refused("path empty", EINVAL, "name of a file", { path = "" })
  refused("path with a zero", EINVAL, "name of a file", { path = "a\0b" })
  refused("no folder", ENOENT, "No such file or directory", { path = "no/such" })
  refused("a folder", EISDIR, "Is a directory", { path = "." })
  refused("a long path", 36, "too long", { path = ("x"):rep(5000) })
end

-- Those of memory: alone, or under the name memory.
local function memory_options(wrap)
  refused("sampel", EINVAL, "unknown option 'sampel'; the nearest is 'sample'",
    wrap { sampel = 4096 })
  for _, sample in ipairs { 0, -1, 0.5, 0 / 0, 1 / 0, 2 ^ 41, "4096", true, {} } do
    refused("sample " .. tostring(sample), EINVAL,
      "the mean number of bytes between two samples", wrap { sample = sample })
  end
  for _, depth in ipairs { 0, 7, 2049, 8.5, -8, 0 / 0, "9", true } do
    refused("depth " .. tostring(depth), EINVAL, "frames from 8",
      wrap { depth = depth })
  end
  refused("every", EINVAL, "true or false", wrap { every = 1 })
  refused("native", EINVAL, "true or false", wrap { native = "yes" })
  refused("both", EINVAL, "contradict each other",
    wrap { every = true, sample = 4096 })
end

check(misc.memprof.status().state == "idle", "before the first session")
check(misc.memprof.status().allocs == 0, "nothing counted")
profiler = misc.memprof
session_options()
memory_options(function(options)
  options.path = P
  return options
end)
refused("a name that is empty", EINVAL, "name of a file", "")
refused("a name with a zero", EINVAL, "name of a file", "a\0b")
refused("a name in no folder", ENOENT, "No such file or directory", "no/such")
refused("an option of cpu", EINVAL, "unknown option 'interval': it is an option "
  .. "of misc.sysprof.start", { path = P, interval = 1 })
refused("an option of both", EINVAL, "unknown option 'memory': it is an option of "
  .. "misc.profile.start", { path = P, memory = {} })

profiler = misc.profile
session_options()
memory_options(function(options)
  return { path = P, memory = options }
end)
refused("a path of memory alone", EINVAL, "unknown option 'path'",
  { path = P, memory = { path = "x" } })
refused("a path of cpu alone", EINVAL, "unknown option 'path'",
  { path = P, cpu = { path = "x" } })
for _, interval in ipairs { 0, -1, 0 / 0, 1 / 0, "10" } do
  refused("interval " .. tostring(interval), EINVAL, "must be milliseconds",
    { path = P, cpu = { interval = interval } })
end
refused("nesting: cpu", EINVAL, "unknown option 'interval': it belongs in "
  .. "cpu: start{cpu = {interval = ...}}", { path = P, interval = 1 })
refused("another word", EINVAL, "unknown option 'file'; the options are cpu, "
  .. "memory, ", { file = P })
refused("nesting: memory", EINVAL, "it belongs in memory: start{memory = {every "
  .. "= ...}}", { path = P, every = true })
refused("nesting: either", EINVAL, "it belongs in cpu = {} or memory = {}",
  { path = P, depth = 8 })
refused("nesting: beside cpu", EINVAL, "it belongs beside cpu, not in it: "
  .. "start{path = ..., cpu = {}}", { cpu = { path = P } })
refused("nesting: beside memory", EINVAL, "it belongs beside memory, not in it",
  { path = P, memory = { flush = 10 } })
refused("nesting: the other part", EINVAL, "it belongs in memory",
  { path = P, cpu = { sample = 4096 } })
refused("nesting: a part in a part", EINVAL, "beside memory, not in it",
  { path = P, memory = { cpu = {} } })
refused("an empty name", EINVAL, "a string that is not empty", "")
refused("a name in no folder", ENOENT, "No such file or directory", "no/such")
refused("cpu", EINVAL, "true, false, or a table", { path = P, cpu = 1 })
refused("memory", EINVAL, "true, false, or a table", { path = P, memory = "x" })
refused("neither", EINVAL, "nothing would be recorded",
  { path = P, cpu = false, memory = false })
check(read(P) == "precious", "an existing file is untouched", read(P))

-- Without a session.
fails("stop", EINVAL, "is not running", misc.memprof.stop())
fails("stop of both", EINVAL, "no profiler is running", misc.profile.stop())
fails("mark", EINVAL, "is not running", misc.memprof.mark("x"))
fails("mark without a name", EINVAL, "mark takes a name", misc.memprof.mark())
fails("mark by a number", EINVAL, "mark takes a name", misc.memprof.mark(5))
fails("two marks", EINVAL, "mark takes a name", misc.memprof.mark("a", "b"))

-- Start twice, in all ways; the first session goes on.
local function busy(what, first, ...)
  for i = 1, select("#", ...) do
    local start = select(i, ...)
    local ok, message, number = start { path = P }
    check(ok == nil and number == EBUSY and message:find("running already", 1, true),
      what, ok, message, number)
  end
  check(read(P) == "precious", "nor by a second start")
  check(running(), "the first goes on")
end
check(misc.memprof.start("twice.bin") == true, "start")
busy("memory twice", nil, misc.memprof.start, misc.profile.start)
check(misc.memprof.status().every and misc.memprof.status().path == "twice.bin",
  "its options stay")
check(misc.memprof.mark("a mark") == true, "mark")
check(misc.memprof.mark("") == true, "a mark without a text")
check(misc.memprof.mark(("long "):rep(20000)) == true, "a long mark")
check(misc.memprof.mark("zero\0inside") == true, "a mark with a zero")
local before = misc.memprof.status().allocs
local held = {}
for i = 1, 1009 do held[i] = { i } end
local status = misc.memprof.status()
check(status.allocs >= before + 1009, "status while it runs", status.allocs, before)
check(status.losses == 0 and status.cut == 0 and status.failed == 0, "no losses")
check(coroutine.wrap(function() return misc.memprof.stop() end)() == true,
  "a coroutine of the same VM may stop it")
check(misc.memprof.status().state == "stopped", "stopped")
check(misc.memprof.status().bytes > 0, "bytes")
fails("stop twice", EINVAL, "is not running", misc.memprof.stop())

-- A string is the path, and nothing else is different. A file that no one names.
for _, name in ipairs { "named.ljp", "profile.ljp" } do
  check(misc.profile.start(name ~= "profile.ljp" and name or nil) == true, "start")
  check(misc.profile.status().cpu.path == name
    and not misc.memprof.status().every, "the path", misc.sysprof.status().path)
  check(misc.profile.stop() == true, "stop")
  check(read(name):sub(1, 4) == "\137LJP", "a stream")
end
check(misc.profile.start { path = "both.bin", memory = { every = true } } == true,
  "start of both")
busy("both twice", nil, misc.memprof.start, misc.profile.start, misc.sysprof.start)
check(misc.memprof.mark("in both") == true, "a mark in a session of both")
check(misc.profile.status().memory.state == "running"
  and misc.profile.status().cpu.state == "running", "status of both")
check(misc.profile.stop() == true, "stop of both")

-- From inside of a finalizer: of a userdata, of a cdata; a hook; a metamethod.
local function collected(what, make)
  local ok, message
  make(function() ok, message = misc.memprof.stop() end)
  check(misc.memprof.start { path = what .. ".bin", every = true } == true, "start")
  collectgarbage()
  collectgarbage()
  check(ok == true, "stop in a finalizer: " .. what, ok, message)
  check(not running(), what)
end
collected("userdata", function(stop)
  getmetatable(newproxy(true)).__gc = stop
end)
collected("cdata", function(stop)
  require("ffi").gc(require("ffi").new("char[7]"), stop)
end)
collected("start-in-one", function(stop)
  getmetatable(newproxy(true)).__gc = function()
    stop()
    local ok = misc.memprof.start { path = "again.bin", every = true }
    check(ok == true and misc.memprof.stop() == true, "start in a finalizer")
  end
end)
check(misc.memprof.start("hook.bin") == true, "start")
local stopped
debug.sethook(function()
  debug.sethook()
  stopped = misc.memprof.stop()
end, "", 1)
for i = 1, 100 do held[i] = { i } end
check(stopped == true, "stop in a hook", stopped)

-- Errors and memory errors pass through; strings too large for any memory.
check(misc.memprof.start("errors.bin") == true, "start")
local ok, message = pcall(string.rep, ("x"):rep(2 ^ 20), 2 ^ 20)
check(not ok and (message:find("too large", 1, true) or message:find("not enough memory")),
  "an error on its way", ok, message)
for _ = 1, 100 do pcall(error, {}) end
check(misc.memprof.stop() == true, "stop")

-- Another file at the same place, again and again.
for i = 1, 50 do
  check(misc.memprof.start { path = "again.bin", sample = i % 2 == 0 and 64 or nil,
    every = i % 2 == 1 } == true, "start again")
  held[i] = ("x"):rep(1009 + i)
  check(misc.memprof.stop() == true, "stop again")
end
print(checks.count .. " checks")
