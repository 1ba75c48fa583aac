-- Ground truth: three functions that measure the CPU time that they use in Lua,
-- in long system calls and in short ones. The profile must agree, on each
-- timer. Usage: sysprof_truth.lua PATH TIMER; prints the shares.
local ffi = require("ffi")
ffi.cdef [[
struct time { long s, ns; };
int clock_gettime(int, struct time *);
int open(const char *, int, ...);
long read(int, void *, size_t);
]]
local now = ffi.new("struct time")
local function cpu()
  ffi.C.clock_gettime(3, now)
  return tonumber(now.s) + tonumber(now.ns) * 1e-9
end
local zero = ffi.C.open("/dev/zero", 0)
local BIG = 4 * 1024 * 1024
local buffer = ffi.new("char[?]", BIG)
jit.off()

local used = {in_lua = 0, in_long_calls = 0, in_short_calls = 0}
local sum = 0
local function in_lua(seconds)
  local t0 = cpu()
  repeat
    for i = 1, 20000 do sum = sum + i % 3 end
  until cpu() - t0 > seconds
  used.in_lua = used.in_lua + cpu() - t0
end
local function in_long_calls(seconds)
  local t0 = cpu()
  repeat ffi.C.read(zero, buffer, BIG) until cpu() - t0 > seconds
  used.in_long_calls = used.in_long_calls + cpu() - t0
end
local function in_short_calls(seconds)
  local t0 = cpu()
  repeat
    for _ = 1, 200 do ffi.C.read(zero, buffer, 64) end
  until cpu() - t0 > seconds
  used.in_short_calls = used.in_short_calls + cpu() - t0
end

local ok, message = misc.sysprof.start{path = arg[1], timer = arg[2],
  interval = 0.1, max_overhead = 0}
if not ok then
  print("not permitted: " .. message)
  os.exit(0)
end
for _ = 1, 25 do
  in_lua(0.023)
  in_long_calls(0.017)
  in_short_calls(0.013)
end
assert(misc.sysprof.stop())
local all = used.in_lua + used.in_long_calls + used.in_short_calls
for name, seconds in pairs(used) do
  print(name, ("%.3f"):format(seconds / all * 100))
end
print("seconds", ("%.4f"):format(all))
