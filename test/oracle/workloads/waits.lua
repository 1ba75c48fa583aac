-- System calls from everywhere: through the FFI, from C functions, in
-- coroutines, callbacks, metamethods, sorts and protected calls. A thread that
-- waits stands behind such a call.
local ffi = require("ffi")
ffi.cdef([[
int usleep(unsigned);
int poll(void *, unsigned long, int);
long syscall(long, ...);
typedef struct { long a, b; } pair;
void qsort(void *, size_t, size_t, int (*)(const int *, const int *));
]])
local C = ffi.C

local function sleep()
  assert(C.usleep(1) == 0)
end

local function poll(n)
  return n == 0 and C.poll(nil, 0, 0) or 1 + poll(n - 1)
end

-- More arguments than registers.
local function call(n)
  return C.syscall(24, n, 2, 3, 4, 5, 6, 7, 8)
end

local out = assert(io.open("/dev/null", "w"))
out:setvbuf("no")
local zero = assert(io.open("/dev/zero", "rb"))
zero:setvbuf("no")
local function files()
  out:write("x")
  return zero:read(1)
end

local meta = setmetatable({}, {
  __index = function(_, key) sleep() return key end,
  __add = function(_, n) return poll(n) end,
  __call = function(_, n) return call(n) end,
})

local numbers = ffi.new("int[3]", 3, 1, 2)
local compare = ffi.cast("int (*)(const int *, const int *)", function(a, b)
  sleep()
  return a[0] - b[0]
end)
local function callbacks()
  numbers[0], numbers[1], numbers[2] = 3, 1, 2
  C.qsort(numbers, 3, 4, compare)
end
jit.off(callbacks)

local function sorts()
  local t = { 3, 1, 2 }
  table.sort(t, function(a, b) sleep() return a < b end)
end

local function work()
  sleep()
  poll(3)
  call(1)
  files()
  callbacks()
  sorts()
  local _ = #meta.key + (meta + 2) + tonumber(meta(3))
  pcall(function() sleep() error("x") end)
  ;("abc"):gsub(".", function() poll(0) end)
end

local function coroutines()
  local co = coroutine.wrap(function()
    while true do
      work()
      coroutine.yield(poll(1))
    end
  end)
  co()
  co()
end

for _ = 1, 3 do
  work()
  coroutines()
end
for _ = 1, 100 do
  sleep()
  poll(2)
end
