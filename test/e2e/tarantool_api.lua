-- The Lua interface as scripts for Tarantool know it: results and errors. Usage:
-- tarantool_api.lua; with the compiler on or off.
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
print("ok")
