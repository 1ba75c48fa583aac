-- The Lua interface as scripts for Tarantool know it: results and errors, and
-- the figures of misc.getmetrics(), exactly. Usage: tarantool_api.lua; with the
-- compiler on or off.
local ffi = require("ffi")
local compiled = jit.status()
local checks = dofile((arg[0]:gsub("[^/]+$", "checks.lua")))
local check = checks.check

local function fails(what, text, ok, message, number)
  check(ok == nil and type(message) == "string" and message:find(text, 1, true)
    and type(number) == "number", what, ok, message, number)
end

-- Errors.
local MISUSE = "profiler misuse"
local RUNNING, IDLE = "profiler is running already", "profiler is not running"
local missing = "No such file or directory"
for _, mode in ipairs{"A", "", "CC", 1} do
  fails("mode", MISUSE, misc.sysprof.start{mode = mode})
end
fails("interval", MISUSE, misc.sysprof.start{mode = "C", interval = -1})
fails("interval 0", MISUSE, misc.sysprof.start{mode = "D", interval = 0})
fails("not a table", MISUSE, misc.sysprof.start("C"))
fails("folder", missing, misc.sysprof.start{mode = "C", path = "no/such"})
fails("no sysprof", IDLE, misc.sysprof.stop())
check(misc.sysprof.start{mode = "D"} == true, "start")
fails("twice", RUNNING, misc.sysprof.start{mode = "D"})
check(misc.sysprof.stop() == true, "stop")
local report = misc.sysprof.report()
for _, name in ipairs{"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT",
  "RECORD", "OPT", "ASM", "TRACE"} do
  check(type(report.vmstate[name]) == "number", "vmstate " .. name)
end
check(type(report.samples) == "number", "samples")
for _, mode in ipairs{"L", "C"} do -- into the default file
  check(misc.sysprof.start{mode = mode, interval = 1} == true, "mode " .. mode)
  check(misc.sysprof.stop() == true, "stop")
  check(checks.read("sysprof.bin"), "the default file")
  os.remove("sysprof.bin")
end
fails("memory folder", missing, misc.memprof.start("no/such"))
fails("memory misuse", MISUSE, misc.memprof.start(1))
fails("no memprof", IDLE, misc.memprof.stop())
check(misc.memprof.start("/dev/null") == true, "memory start")
fails("memory twice", RUNNING, misc.memprof.start("/dev/null"))
check(misc.memprof.stop() == true, "memory stop")

-- Metrics. The differences are taken after all figures are known, since the
-- work with them counts, too.
local get = misc.getmetrics
local function full()
  collectgarbage()
  collectgarbage()
end
local function difference(before, after)
  local d, fields = {}, 0
  for name, value in pairs(after) do
    d[name] = value - before[name]
    fields = fields + 1
  end
  check(fields == 19, "number of fields", fields)
  return d
end
local function equals(what, wanted, got)
  check(wanted == got, what, wanted, got)
end

full()
local names = get() -- Now the names exist.
local a = get()
local b = get()
local d = difference(a, b)
local TABLE = d.gc_allocated -- what the table of the figures takes
equals("hits of the names", 19, d.strhash_hit)
equals("no new strings", 0, d.strhash_miss)
equals("tables of figures", 1, d.gc_tabnum)
equals("freed without collection", 0, d.gc_freed)
equals("in use", d.gc_total, d.gc_allocated - d.gc_freed)

names, a, b, d = nil
full()
a = get()
local kept = {}
for i = 1, 31 do kept[i] = ffi.new("int[?]", i) end
for i = 1, 37 do kept[i + 31] = ffi.new("double", i) end
for i = 1, 41 do kept[i + 68] = newproxy() end
for i = 1, 43 do kept[i + 109] = {} end
for i = 1, 47 do kept[i + 152] = "new string " .. i end
b = get()
d = difference(a, b)
equals("cdata", 31 + 37, d.gc_cdatanum)
equals("userdata", 41, d.gc_udatanum)
equals("tables", 1 + 43 + 1, d.gc_tabnum)
check(d.strhash_miss >= 47, "new strings", d.strhash_miss)
equals("balance", d.gc_total, d.gc_allocated - d.gc_freed)
kept, b, d = nil
full()
b = get()
d = difference(a, b)
equals("cdata freed", 0, d.gc_cdatanum)
equals("userdata freed", 0, d.gc_udatanum)
equals("tables freed", 1, d.gc_tabnum)
equals("balance after collections", d.gc_total, d.gc_allocated - d.gc_freed)

-- Each byte that is allocated and not in use any more has been freed. Sizes of
-- tables, buffers, stacks and strings change here.
jit.off()
full()
a = get()
local before = collectgarbage("count")
for i = 1, 53 do
  local t = {}
  for k = 1, i * 7 do t[k] = k t["x" .. k] = k end
  local text = {}
  for k = 1, i do text[k] = ("y"):rep(k * 11) end
  local _ = table.concat(text) .. tostring(i)
  coroutine.wrap(function(...) return select("#", ...) end)(unpack(t))
  assert(loadstring("local z = {} return function() return z end"))()
end
full()
b = get()
d = difference(a, b)
equals("balance of resized memory", d.gc_total, d.gc_allocated - d.gc_freed)
check(d.gc_freed > 1e6, "much was freed", d.gc_freed)
equals("in use as counted", collectgarbage("count") * 1024 - before * 1024 >= 0,
  true)

-- Steps of the collector.
collectgarbage()
collectgarbage("stop")
a = get()
collectgarbage()
collectgarbage("stop")
b = get()
d = difference(a, b)
equals("pause", 1, d.gc_steps_pause)
equals("atomic", 1, d.gc_steps_atomic)
for _, name in ipairs{"propagate", "sweepstring", "sweep"} do
  check(d["gc_steps_" .. name] >= 1, name, d["gc_steps_" .. name])
end
equals("finalize", 0, d.gc_steps_finalize)
collectgarbage()
collectgarbage()
collectgarbage()
d = difference(b, get())
equals("three cycles", 3, d.gc_steps_pause)
equals("three atomic steps", 3, d.gc_steps_atomic)
local finalized = 0
for _ = 1, 59 do
  getmetatable(newproxy(true)).__gc = function() finalized = finalized + 1 end
end
a = get()
full()
d = difference(a, get())
equals("finalizers", 59, finalized)
check(d.gc_steps_finalize >= 59, "finalize", d.gc_steps_finalize)

-- The compiler.
a = get()
equals("no code without the compiler", 0,
  compiled and 0 or a.jit_mcode_size + a.jit_trace_num)
if compiled then
  jit.on()
  jit.opt.start(0, "hotloop=1")
  jit.flush()
  full()
  equals("traces flushed", 0, get().jit_trace_num)
  a = get()
  local sum = 0
  for i = 1, 20 do sum = sum + i end
  b = get()
  d = difference(a, b)
  equals("traces", 1, d.jit_trace_num)
  equals("exits", 1, d.jit_snap_restore)
  check(b.jit_mcode_size > 0, "machine code", b.jit_mcode_size)
  -- Compiled allocation of cdata counts as well.
  jit.opt.start(3, "hotloop=5")
  jit.flush()
  kept = {}
  local function make(n)
    for i = 1, n do kept[i] = ffi.new("int64_t", i) end
  end
  for _ = 1, 100 do make(101) end -- The trace recorder makes cdata, too.
  full()
  collectgarbage("stop")
  a = get()
  make(101)
  d = difference(a, get())
  equals("compiled cdata", 101, d.gc_cdatanum)
  check(d.jit_snap_restore > 0, "in compiled code", d.jit_snap_restore)
  collectgarbage("restart")
  -- Recordings that are given up: closures of a loop's variable.
  local aborts = 0
  local function count(what)
    if what == "abort" then aborts = aborts + 1 end
  end
  jit.flush()
  jit.attach(count, "trace")
  a = get()
  for i = 1, 31 do kept[i] = function() return i end end
  b = get()
  jit.attach(count)
  check(aborts > 0, "aborts", aborts)
  equals("aborts", aborts, difference(a, b).jit_trace_abort)
end
print("ok", TABLE)
