-- misc.sysprof as Lua sees it: refused calls and their messages, modes, report,
-- status. Runs in a folder that it may write to.
local sysprof = misc.sysprof
local EBUSY, EINVAL, ENOENT, EISDIR = 16, 22, 2, 21
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check, fails, read = checks.check, checks.fails, checks.read

local sink = 0
local function spin(seconds)
  local t0 = os.clock()
  while os.clock() - t0 < seconds do
    for i = 1, 20000 do sink = sink + i % 7 end
  end
end

local function refused(what, errno, text, ...)
  fails(what, errno, text, sysprof.start(...))
  check(sysprof.status().state ~= "running", what .. ": not running")
end

check(sysprof.status().state == "idle", "before the first session")
check(sysprof.report().samples == 0, "a report before the first session")

-- A refused call leaves an existing file as it was.
local P = "kept.bin"
checks.keep(P)
refused("unknown option", EINVAL, "unknown option 'intervall'; the nearest is "
  .. "'interval'", {path = P, intervall = 1})
refused("another", EINVAL, "the nearest is 'timer'", {path = P, tmer = 1})
refused("nothing like it", EINVAL, "unknown option 'xyzzy'; the options are ",
  {path = P, xyzzy = 1})
refused("no names", EINVAL, "options have names", {"C"})
for _, mode in ipairs{"C", "L", "D"} do
  refused("a mode for a table", EINVAL, "'" .. mode .. "' is a mode: start{mode = "
    .. '"' .. mode .. '"}', mode)
end
refused("two arguments", EINVAL, "the second argument is 1", {path = P}, 1)
refused("a number", EINVAL, "the argument is 5", 5)
refused("a boolean", EINVAL, "the argument is true", true)
refused("a function", EINVAL, "the argument is a function", print)
refused("an empty name", EINVAL, "a string that is not empty", "")
refused("a name in no folder", ENOENT, "No such file or directory", "no/such")
refused("an option of memory", EINVAL, "unknown option 'sample': it is an option "
  .. "of misc.memprof.start", {path = P, sample = 4096})
refused("an option of both", EINVAL, "unknown option 'cpu': it is an option of "
  .. "misc.profile.start", {path = P, cpu = {}})
for _, interval in ipairs{0, -1, 0 / 0, 1 / 0, 0.0499, 60001, "10", true} do
  refused("interval " .. tostring(interval), EINVAL,
    "must be milliseconds, a number from 0.05", {path = P, interval = interval})
end
refused("mode", EINVAL, "the string 'X', but must be \"D\"", {path = P, mode = "X"})
refused("mode number", EINVAL, "option 'mode' is 1", {path = P, mode = 1})
refused("event", EINVAL, "\"cpu\" or \"wall\"", {path = P, event = "io"})
refused("timer", EINVAL, "\"tick\" or \"posix\"", {path = P, timer = "hpet"})
refused("threads", EINVAL, "\"this\"", {path = P, threads = 2})
refused("fork", EINVAL, "\"follow\"", {path = P, fork = true})
for _, signal in ipairs{0, 9, 11, 19, 32, 1000, 1.5, "KILL", "SEGV", "NONE"} do
  refused("signal " .. signal, EINVAL, "a signal that a program may handle",
    {path = P, signal = signal})
end
refused("overhead", EINVAL, "percent", {path = P, max_overhead = 101})
refused("depth", EINVAL, "frames from 8", {path = P, depth = 7})
refused("flush", EINVAL, "from 10 to 10000", {path = P, flush = 5})
refused("compress", EINVAL, "level", {path = P, compress = 20})
refused("sync", EINVAL, "true or false", {path = P, sync = 1})
refused("rotate_bytes", EINVAL, "bytes from 4096", {path = P, rotate_bytes = 5})
refused("rotate_seconds", EINVAL, "seconds", {path = P, rotate_seconds = "1"})
refused("keep", EINVAL, "number of files", {path = P, keep = -1})
refused("rotation without a file", EINVAL, "want a path",
  {mode = "D", rotate_seconds = 1})
refused("path type", EINVAL, "name of a file", {path = 5})
refused("path empty", EINVAL, "name of a file", {path = ""})
refused("path with a zero", EINVAL, "name of a file", {path = "a\0b"})
refused("no folder", ENOENT, "No such file or directory", {path = "no/such"})
refused("a folder", EISDIR, "Is a directory", {path = "."})
refused("a long path", 36, "too long", {path = ("x"):rep(5000)})
check(read(P) == "precious", "an existing file is untouched", read(P))

local ok, message, number = sysprof.stop()
check(ok == nil and message == "profiler is not running" and number == EINVAL,
  "stop without start", ok, message, number)

-- A string is the path.
check(sysprof.start("named.ljp") == true, "start by a name")
check(sysprof.status().path == "named.ljp" and sysprof.status().mode == "C",
  "it is the path", sysprof.status().path)
check(sysprof.stop() == true, "stop")
check(read("named.ljp"):sub(1, 4) == "\137LJP", "a stream")

-- Start twice; the first session goes on.
check(sysprof.start{path = "twice.bin"} == true, "start")
ok, message, number = sysprof.start{path = P}
check(ok == nil and message == "profiler is running already"
  and number == EBUSY, "start twice", ok, message, number)
check(read(P) == "precious", "nor by a second start")
check(sysprof.status().state == "running", "still running")
spin(0.05)
check(coroutine.wrap(function() return sysprof.stop() end)() == true,
  "a coroutine of the same VM may stop it")

-- Status and report, while running and afterwards.
local LOSSES = {"RING_FULL", "TOO_BIG", "THROTTLE", "NESTED", "BUSY",
  "NO_MEMORY", "WRITE_ERROR", "STOPPING", "BAD_RECORD"}
local STATES = {"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD",
  "OPT", "ASM", "TRACE", "HOST", "UNKNOWN"}
local function sane(report)
  local sum = 0
  for _, name in ipairs(STATES) do
    check(type(report.vmstate[name]) == "number", "a counter for " .. name)
    sum = sum + report.vmstate[name]
  end
  for _, name in ipairs(LOSSES) do
    check(report.losses[name] == 0, "losses by " .. name, report.losses[name])
  end
  check(sum == report.samples, "states sum up to samples", sum, report.samples)
end

local function session(options, seconds)
  local ok, message = sysprof.start(options)
  check(ok == true, "start", ok, message)
  spin(seconds)
  local middle, status = sysprof.report(), sysprof.status()
  check(middle.samples > 0, "a report while it runs", middle.samples)
  check(status.state == "running" and status.threads == 1, "status", status.state,
    status.threads)
  spin(0.02)
  check(sysprof.stop() == true, "stop")
  local report = sysprof.report()
  check(report.samples >= middle.samples, "a report after it has stopped")
  check(sysprof.status().state == "stopped", "stopped")
  sane(report)
  return report, status
end

jit.off()
jit.flush()
for _, timer in ipairs{"perf", "trap", "tick", "posix"} do
  local options = {path = timer .. ".bin", timer = timer, interval = 1}
  if timer == "posix" or timer == "tick" or sysprof.start(options) then
    sysprof.stop()
    local report, status = session(options, 0.4)
    check(status.timer == (timer == "trap" and "perf" or timer),
      "the timer asked for", status.timer)
    check(status.signal == 23, "its signal", status.signal)
    local tick = timer == "tick"
    check((status.interval == 1 or tick) and status.path == timer .. ".bin"
      and status.event == "cpu" and status.mode == "C", "status", status.path)
    check(status.bytes > 0, "bytes", status.bytes)
    -- tick: about 100, but 4 were seen beside much other work.
    check(report.samples > (tick and 0 or 150), timer .. " samples", report.samples)
    -- Timer posix follows real time, and a busy machine needs more of it.
    check(timer == "posix" or report.samples < 600, timer .. " samples",
      report.samples)
    -- All CPU time is accounted for, whatever else the machine does. But tick
    -- expires at the kernel's ticks only, and on a busy machine a thread may use
    -- the CPU for a while without one: the last of it is told as not sampled.
    check(report.seconds > (tick and 0 or 0.38) and report.seconds < 0.6,
      timer .. " seconds", report.seconds)
    check(report.vmstate.LFUNC > report.samples / 2, "a Lua function",
      report.vmstate.LFUNC, report.samples)
    check(report.vmstate.TRACE == 0, "no trace with JIT off")
  else
    print("timer " .. timer .. " is not available here")
  end
end
jit.on()
local report = session({mode = "D", interval = 1}, 0.3)
check(report.vmstate.TRACE > report.samples / 2, "compiled code",
  report.vmstate.TRACE, report.samples)
local _, status = session({mode = "L", path = "leaf.bin", interval = 0.5}, 0.2)
check(status.mode == "L" and status.interval == 0.5, "leaf")
session({mode = "C", path = "usr1.bin", signal = "SIGUSR1"}, 0.1)
if os.getenv("LJP_NO_ZSTD") then -- no libzstd for this C library
  refused("zstd", 95, "there is no libzstd.so.1", {path = P, compress = 3})
else
  session({mode = "C", path = "packed.bin", compress = 3}, 0.1)
end
session({path = "turn.bin", rotate_seconds = 0.1, keep = 2, flush = 10}, 0.6)
check(not io.open("turn.bin") and not io.open("turn.bin.s1"),
  "old segments are removed")
local kept = {}
for i = 2, 10000 do
  local segment = io.open("turn.bin.s" .. i)
  if segment then kept[#kept + 1] = i; segment:close() end
end
check(#kept == 2 and kept[2] == kept[1] + 1, "the last two are kept",
  table.concat(kept, " "))
check(read("usr1.bin"):sub(1, 4) == "\137LJP", "a stream")

-- A waiting thread: no sample for event "cpu", samples for "wall".
local ffi = require("ffi")
ffi.cdef "int usleep(unsigned);"
local function sleepy(options)
  assert(sysprof.start(options))
  local t0 = os.time()
  local cut = 0
  for _ = 1, 10 do cut = cut + ffi.C.usleep(20000) end
  sysprof.stop()
  return sysprof.report(), cut
end
for _, timer in ipairs{"auto", "trap", "tick", "posix"} do
  -- Where that timer is not available, auto takes its place.
  timer = sysprof.start{path = "sleep.bin", timer = timer} and timer or "auto"
  sysprof.stop()
  local cut
  report, cut = sleepy{path = "sleep.bin", timer = timer, interval = 1}
  check(cut == 0, timer .. " interrupts no wait", cut)
  check(report.samples < 10 and report.seconds < 0.02,
    "a waiting thread uses no CPU time, timer " .. timer, report.samples,
    report.seconds)
end
-- The waits of wall time are seen from outside, so no call ends early.
for _, timer in ipairs{"auto", "posix", "tick"} do
  timer = sysprof.start{path = "sleep.bin", timer = timer} and timer or "auto"
  sysprof.stop()
  -- On a busy machine the watcher may miss the last of the waits; their time is
  -- in the stream as not sampled then.
  for _ = 1, 6 do
    local cut
    report, cut = sleepy{path = "sleep.bin", event = "wall", timer = timer}
    check(cut == 0, "wall: " .. timer .. " interrupts no wait", cut)
    if report.seconds >= 0.19 then break end
  end
  check(report.vmstate.WAITING > 0 and report.seconds >= 0.19,
    "wall: waiting time, timer " .. timer, report.vmstate.WAITING,
    report.seconds)
end
print(checks.count .. " checks")
